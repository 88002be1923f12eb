"""A training with plan="auto" that nobody has a plan for, on one rank: says in JSON what became of it.

auto_script.py STEPS
"""

import json
import sys

import torch
import torch.distributed as dist
from models import Transformer, batches, make, step

import commtune.torch
from commtune.torch import own_plan

own_plan.PATIENCE = 0.0
torch.set_num_threads(1)
dist.init_process_group("gloo")
rank = dist.get_rank()
model, optimizer = make(Transformer, rank)
training = commtune.torch.wrap(model, optimizer, "auto", probe_budget=5.0)
states = []
for batch in batches(Transformer, rank, int(sys.argv[1])):
    step(model, optimizer, *batch)
    states.append(training.own_plan_state)
    if states[-1] == "planning" and rank == 0:
        training._own._planning.join(60)  # a busy machine may be slow
print(json.dumps({"states": sorted(set(states)), "digest": training.plan_digest}))
training.close()
dist.barrier()
