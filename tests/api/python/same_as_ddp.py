"""Training by plans and by DistributedDataParallel, to be compared; as a script, on one rank of a job that torchrun's variables
describe, it prints both in JSON.

same_as_ddp.py KIND BARRIER
"""

import json
import sys

import torch
import torch.distributed as dist
from models import KINDS, batches, make, numbers, step, train_by_ddp

import commtune.torch

STEPS = 100


def plans(training):
    """All-to-all, then servers; buckets small enough that there are several."""
    for servers in (0, 3):
        yield training.bucket_plan(commtune.BucketOptions(first_bytes=2000, bytes=6000, servers=servers, per_layer=True))


def train(kind, rank, barrier):
    """Half of the steps by one plan, half by another."""
    model, optimizer = make(kind, rank)
    training = commtune.torch.wrap(model, optimizer, "buckets", barrier=barrier)
    chosen = list(plans(training))
    losses = []
    for number, batch in enumerate(batches(kind, rank, STEPS)):
        if number % (STEPS // 2) == 0:
            plan = chosen[number // (STEPS // 2)]
            training.adopt(plan if rank == 0 else None)
        losses.append(step(model, optimizer, *batch))
    learnt = numbers(model)
    assert training.statistics().iterations == STEPS
    assert training.statistics().messages >= 3
    training.close()
    return losses, learnt


def main():
    name, barrier = sys.argv[1:]
    kind = KINDS[name]
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    theirs = train_by_ddp(kind, rank, STEPS)
    print(json.dumps({"ours": train(kind, rank, barrier), "theirs": theirs}))
    dist.barrier()


if __name__ == "__main__":
    main()
