#!/usr/bin/env python3
"""One rank of a training job: ordinary training steps (autograd, optimizer, loss) by each of several systems.

Started once per rank with RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT and GLOO_SOCKET_IFNAME set, and told in JSON what to train
and by which systems. Each is a process of its own, which obeys commands on stdin (ddp/rank_jobs.py):

  J ready          that it is, and what it is
  J losses K       K steps from the beginning; their losses on this rank
  J run W K        W steps of warm-up, then K timed ones
  quit

Needs PyTorch 2.13 (tests/api/python/environment) and the package in api/python.
"""

import functools
import gc
import itertools
import json
import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from networks import SEED, make
from torch.nn.parallel import DistributedDataParallel

import commtune.torch

sys.path.append(str(Path(__file__).resolve().parents[1] / "ddp"))
from rank_jobs import TimeLine, cpu_seconds, peak_bytes, serve  # noqa: E402  of the bench's other folder

BATCHES = 8  # made beforehand: nobody waits for data


def alone(network, _optimizer, _options):
    """No exchange at all."""
    return network, lambda: None


def by_ddp(network, _optimizer, options):
    """options  DistributedDataParallel's own"""
    return DistributedDataParallel(network, **options), lambda: None


def by_hook(network, _optimizer, options):
    """options  "plan", the rest DistributedDataParallel's own"""
    wrapped = DistributedDataParallel(network, **{name: value for name, value in options.items() if name != "plan"})
    return wrapped, commtune.torch.ddp_hook(wrapped, options["plan"]).close


def by_wrap(network, optimizer, options):
    """options  of commtune.torch.wrap"""
    training = commtune.torch.wrap(network, optimizer, options["plan"], barrier=options["barrier"])
    return network, training.close


SYSTEMS = {"alone": alone, "ddp": by_ddp, "hook": by_hook, "wrap": by_wrap}


class Trainee:
    """A network that one system trains."""

    def __init__(self, model, system):
        rank = dist.get_rank()
        self.network, self.optimizer = make(model, TimeLine(), rank)
        self.trained, self.close = SYSTEMS[system["kind"]](self.network, self.optimizer, system["options"])
        generator = torch.Generator().manual_seed(1000 * SEED + rank)
        self.batches = itertools.cycle([self.network.batch(generator) for _ in range(BATCHES)])

    def step(self):
        """One of an ordinary script."""
        inputs, labels = next(self.batches)
        self.optimizer.zero_grad()
        loss = self.network.loss(self.trained(inputs), labels)
        loss.backward()
        self.optimizer.step()
        return loss

    def losses(self, steps):
        return {"losses": [self.step().item() for _ in range(steps)]}

    def run(self, warmup, steps):
        """When the step before the timed ones ended, and each of them; this process's processor seconds over all of them, and
        its largest resident set so far."""
        gc.collect()
        gc.disable()
        for _ in range(warmup):
            self.step()
        before, ends = cpu_seconds(), [time.monotonic_ns()]
        for _ in range(steps):
            self.step()
            ends.append(time.monotonic_ns())
        after = cpu_seconds()
        gc.enable()
        return {
            "ends_ns": ends,
            "cpu_seconds": after - before,
            "peak_bytes": peak_bytes(),
        }


def work(order, serial, commands, answers):
    """One system, from its first line on `commands` to the end of that stream."""
    os.environ["MASTER_PORT"] = str(int(os.environ["MASTER_PORT"]) + serial)
    torch.set_num_threads(1)
    baseline = peak_bytes()
    dist.init_process_group("gloo")
    trainee = Trainee(order["model"], order["systems"][serial])
    for line in commands:
        command, *numbers = line.split()
        if command == "ready":
            answer = {"torch": torch.__version__, "baseline_bytes": baseline, "pid": os.getpid()}
        elif command == "losses":
            answer = trainee.losses(int(numbers[0]))
        elif command == "run":
            answer = trainee.run(int(numbers[0]), int(numbers[1]))
        else:
            raise SystemExit(f"{command}: not a command")
        print(json.dumps(answer), file=answers, flush=True)
    trainee.close()
    dist.destroy_process_group()


def main():
    if len(sys.argv) != 2:
        raise SystemExit('usage: rank.py ORDER.json    # {"model": PROFILE or name, "systems": [{"kind", "options"}, ...]}')
    order = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    serve([functools.partial(work, order, serial) for serial in range(len(order["systems"]))])


if __name__ == "__main__":
    main()
