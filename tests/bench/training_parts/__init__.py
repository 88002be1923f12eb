"""What tests/bench/training is made of. Python 3.9 or later; the files of ranks need PyTorch 2.13, the others nothing."""
