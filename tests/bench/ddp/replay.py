#!/usr/bin/python3
"""One rank of a PyTorch DDP job that replays a profile: the peer that `tests/bench/race` measures.

Each layer of the profile is one autograd node. Its forward and backward end at absolute times (the end of the layer
before plus the layer's own time), as on an accelerator that leaves the processor idle; parameters and gradients have the
profile's true sizes and really travel through DistributedDataParallel's buckets over gloo. What DDP does with them is
DDP's own: nothing of it is replaced.

DDP as a careful user would set it up: gradient_as_bucket_view (no copy from gradient to bucket), static_graph, no
buffers to broadcast, one thread for element-wise work, the garbage collector kept out of the timed iterations.

Started once per rank with RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT and GLOO_SOCKET_IFNAME set. Has a job, which is a
process of its own, for each bucket size it is given: they differ by MASTER_PORT, and share only what importing PyTorch
takes. Then obeys commands on stdin, a line each that begins with the number of a job (0, 1, ...), and answers each with
one line of JSON on stdout:

  J ready          that it is, and what it is
  J check          two iterations in which every element of every gradient is compared with the known mean
  J run W K        W iterations of warm-up, then K timed ones; see Replay.run for the answer
  quit

Needs PyTorch with gloo, for a list of caps 2.13: tests/api/python/environment.
"""

import argparse
import functools
import gc
import json
import os
import time

import torch
import torch.distributed as dist
from rank_jobs import TimeLine, cpu_seconds, peak_bytes, serve
from torch.nn.parallel import DistributedDataParallel

class LayerStep(torch.autograd.Function):
    """One layer of the profile; the tensor that is handed on only keeps the nodes in order."""

    @staticmethod
    def forward(ctx, layer, hidden, *_parameters):
        layer.line.skip(layer.forward_ns)
        ctx.layer = layer
        return hidden + 1

    @staticmethod
    def backward(ctx, gradient):
        layer = ctx.layer
        layer.line.spend(layer.backward_ns)
        return (None, gradient, *layer.produce())


class Layer(torch.nn.Module):
    """A layer's times and parameters, and how its gradients come to be."""

    def __init__(self, description, line, first_tensor, element_bytes):
        super().__init__()
        self.line = line
        self.forward_ns = round(description["forward_seconds"] * 1e9)
        self.backward_ns = round(description["backward_seconds"] * 1e9)
        self.update_ns = round(description.get("update_seconds", 0) * 1e9)
        counts = [tensor["bytes"] // element_bytes for tensor in description["tensors"]]
        self.tensors = torch.nn.ParameterList(torch.nn.Parameter(torch.zeros(count)) for count in counts)
        self.first_tensor = first_tensor
        self.plain = list(self.tensors)
        self.kept = (None,) * len(counts)
        self.produce = self.produce_in_place

    def forward(self, hidden):
        return LayerStep.apply(self, hidden, *self.plain)

    def produce_in_place(self):
        """As an accelerator leaves them: the gradients lie in memory where DDP expects them, at no cost to the processor.

        DDP's gradients are views of its buckets, so a node that says "no further gradient" hands over what is there.
        """
        return self.kept

    def produce_written(self):
        """Fresh gradients with known values, written to where DDP expects them."""
        for index, parameter in enumerate(self.plain):
            known = pattern(self.first_tensor + index, parameter.numel())
            if parameter.grad is None:
                parameter.grad = torch.empty_like(parameter)
            parameter.grad.copy_(known * (dist.get_rank() + 1))
        return self.kept

    def produce_returned(self):
        """Gradients in fresh memory for autograd to pass on, as a layer computed by the processor would make them."""
        return tuple(torch.ones(parameter.numel()) for parameter in self.plain)


def pattern(tensor, count):
    """What rank 0 puts in for a tensor, rank r puts in r + 1 times: small integers, so that sums are exact."""
    return ((torch.arange(count) * 31 + tensor * 17) % 251).float()


class Network(torch.nn.Module):
    def __init__(self, profile, line):
        super().__init__()
        if profile.get("data_type", "float32") != "float32":
            raise SystemExit(f"data_type = {profile['data_type']}: the replay has float32 only")
        layers, first_tensor = [], 0
        for description in profile["layers"]:
            layers.append(Layer(description, line, first_tensor, element_bytes=4))
            first_tensor += len(description["tensors"])
        self.layers = torch.nn.ModuleList(layers)
        self.sequence = layers

    def forward(self, hidden):
        for layer in self.sequence:
            hidden = layer(hidden)
        return hidden


class Replay:
    def __init__(self, profile, buckets, settings):
        self.line = TimeLine()
        self.network = Network(profile, self.line)
        self.update_ns = sum(layer.update_ns for layer in self.network.sequence)
        self.start = torch.zeros(1)
        self.keep_gradients = True
        self.ddp = DistributedDataParallel(
            self.network,
            **buckets,
            broadcast_buffers=False,
            gradient_as_bucket_view=settings.bucket_view,
            static_graph=settings.static_graph,
        )

    def produce(self, how):
        for layer in self.network.sequence:
            layer.produce = getattr(layer, how)

    def iterate(self):
        """One iteration, as its user's training loop has it: forward, backward (which waits for all gradients), update."""
        output = self.ddp(self.start)
        output.backward()
        self.line.resume()
        self.line.spend(self.update_ns)
        if not self.keep_gradients:
            for parameter in self.network.parameters():
                parameter.grad = None

    def check(self):
        """Compares every element with the mean of what the ranks put in; ends the job where one differs."""
        self.produce("produce_written")
        self.keep_gradients = True
        for _ in range(2):  # DDP rebuilds its buckets after the first
            self.iterate()
        return {"checked_tensors": self.compare()}

    def compare(self):
        """Number of tensors, all of them equal to the mean of what the ranks put in."""
        mean = (dist.get_world_size() + 1) / 2
        tensors = 0
        for layer in self.network.sequence:
            for index, parameter in enumerate(layer.plain):
                tensor = layer.first_tensor + index
                if not torch.allclose(parameter.grad, pattern(tensor, parameter.numel()) * mean, rtol=1e-5, atol=0):
                    raise SystemExit(f"rank {dist.get_rank()}: tensor {tensor} is not the mean of what the ranks put in")
                tensors += 1
        return tensors

    def run(self, warmup, iterations, gradients):
        """Timed iterations, each ending with its update.

        Answers with when the one before them ended, and each of them, this process's processor seconds over all of them, and
        its largest resident set so far.
        """
        self.keep_gradients = gradients == "in-place"
        self.produce("produce_in_place" if self.keep_gradients else "produce_returned")
        gc.collect()
        gc.disable()
        self.line.resume()
        for _ in range(warmup):
            self.iterate()
        before, ends = cpu_seconds(), [time.monotonic_ns()]
        for _ in range(iterations):
            self.iterate()
            ends.append(time.monotonic_ns())
        after = cpu_seconds()
        gc.enable()
        if self.keep_gradients:
            self.compare()  # the mean of means is the mean again: what travelled was not lost on the way
        return {
            "ends_ns": ends,
            "cpu_seconds": after - before,
            "peak_bytes": peak_bytes(),
        }


def bucket_settings(settings):
    """What DDP is told of its buckets, by job."""
    jobs = [{"bucket_cap_mb": mib} for mib in settings.bucket_mib]
    return [*jobs, {"bucket_cap_mb_list": settings.bucket_list}] if settings.bucket_list else jobs


def work(settings, serial, commands, answers):
    """One job, from its first line on `commands` to the end of that stream."""
    os.environ["MASTER_PORT"] = str(int(os.environ["MASTER_PORT"]) + serial)
    torch.set_num_threads(1)
    baseline = peak_bytes()
    dist.init_process_group("gloo")
    with open(settings.profile, encoding="utf-8") as file:
        replay = Replay(json.load(file), bucket_settings(settings)[serial], settings)
    replay.check()
    for line in commands:
        command, *numbers = line.split()
        if command == "ready":
            values = {"torch": torch.__version__, "baseline_bytes": baseline, "pid": os.getpid()}
        elif command == "check":
            values = replay.check()
        elif command == "run":
            values = replay.run(int(numbers[0]), int(numbers[1]), settings.gradients)
        else:
            raise SystemExit(f"{command}: not a command")
        print(json.dumps(values), file=answers, flush=True)
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(
        description="One rank of DDP jobs that replay a profile; commands on stdin: J ready, J check, J run W K, quit.",
        epilog="example: RANK=0 WORLD_SIZE=4 MASTER_ADDR=10.0.0.1 MASTER_PORT=29500 replay.py resnet50.json --bucket-mib 25 5",
    )
    parser.add_argument("profile", help='file of format "commtune/profile/1"')
    parser.add_argument("--bucket-mib", type=float, nargs="+", default=[25], help="DDP's bucket_cap_mb, a job each (default 25)")
    parser.add_argument("--bucket-list", type=json.loads, metavar="[MIB,...]", help="DDP's bucket_cap_mb_list: one more job")
    parser.add_argument("--no-bucket-view", dest="bucket_view", action="store_false", help="gradients apart from buckets")
    parser.add_argument("--no-static-graph", dest="static_graph", action="store_false")
    parser.add_argument(
        "--gradients",
        choices=("in-place", "returned"),
        default="in-place",
        help="in-place: they lie where DDP wants them, as an accelerator leaves them; returned: fresh memory from autograd",
    )
    settings = parser.parse_args()
    serve([functools.partial(work, settings, serial) for serial in range(len(bucket_settings(settings)))])


if __name__ == "__main__":
    main()
