"""An ordinary script, as a user would start it: by torchrun, or a process a rank.

train_script.py [--die RANK STEP] [--steps N] [--barrier full|layer] [--model NAME]
"""

import argparse
import os
import signal
import sys

import torch.distributed as dist
from models import KINDS, batches, make, step

import commtune.torch

parser = argparse.ArgumentParser()
parser.add_argument("--die", type=int, nargs=2)
parser.add_argument("--steps", type=int, default=20)
parser.add_argument("--barrier", default="full")
parser.add_argument("--model", choices=KINDS, default="Transformer")
options = parser.parse_args()

dist.init_process_group("gloo")
rank = dist.get_rank()
kind = KINDS[options.model]
model, optimizer = make(kind, rank)
commtune.torch.wrap(model, optimizer, "buckets", barrier=options.barrier)
for number, batch in enumerate(batches(kind, rank, options.steps)):
    if options.die == [rank, number]:
        os.kill(os.getpid(), signal.SIGKILL)
    loss = step(model, optimizer, *batch)
model.eval()
print(f"rank {rank}: {loss:.4f}", file=sys.stderr)
