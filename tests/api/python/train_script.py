"""An ordinary script, as a user would start it: by torchrun, or a process a rank.

train_script.py [--die RANK STEP] [--steps N] [--barrier full|layer]
"""

import argparse
import os
import signal
import sys

import torch.distributed as dist
from models import Transformer, batches, make, step

import commtune.torch

parser = argparse.ArgumentParser()
parser.add_argument("--die", type=int, nargs=2)
parser.add_argument("--steps", type=int, default=20)
parser.add_argument("--barrier", default="full")
options = parser.parse_args()

dist.init_process_group("gloo")
rank = dist.get_rank()
model, optimizer = make(Transformer, rank)
commtune.torch.wrap(model, optimizer, "buckets", barrier=options.barrier)
for number, batch in enumerate(batches(Transformer, rank, options.steps)):
    if options.die == [rank, number]:
        os.kill(os.getpid(), signal.SIGKILL)
    loss = step(model, optimizer, *batch)
model.eval()
print(f"rank {rank}: {loss:.4f}", file=sys.stderr)
