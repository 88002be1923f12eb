"""What tests/bench/probes is made of. Python 3.9 or later, standard library only."""
