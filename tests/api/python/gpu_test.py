"""A model on a GPU: the same losses and parameters as by DistributedDataParallel, and times of its layers.

Ranks share one GPU. Skipped where PyTorch can use none.
"""

import os

import pytest
import torch
import torch.distributed as dist
from models import ResidualNetwork, Transformer, assert_same, batches, make, numbers, step
from ranks import on_ranks
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import commtune.torch
import commtune.torch.profile as profiles

os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"  # ranks are forked: this process may not start CUDA

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch can use no GPU here")

RANKS, STEPS = 2, 20


def on_gpu(kind, rank):
    """Model, optimizer and batches there."""
    model, _ = make(kind, rank)
    model = model.cuda()
    fed = [tuple(tensor.cuda() for tensor in batch) for batch in batches(kind, rank, STEPS)]
    return model, torch.optim.SGD(model.parameters(), lr=kind.rate, momentum=0.9), fed


def learnt(model):
    return numbers(model.cpu())


def train_by_ddp(kind, rank, hook=False):
    model, optimizer, fed = on_gpu(kind, rank)
    wrapped = DistributedDataParallel(model)
    communication = commtune.torch.ddp_hook(wrapped, "buckets") if hook else None
    losses = [step(wrapped, optimizer, *batch) for batch in fed]
    if communication is not None:
        communication.close()
    return losses, learnt(model)


def train_by_wrap(kind, rank, barrier):
    model, optimizer, fed = on_gpu(kind, rank)
    training = commtune.torch.wrap(model, optimizer, "buckets", barrier=barrier)
    losses = []
    for number, batch in enumerate(fed):
        if number == STEPS // 2:
            servers = training.bucket_plan(commtune.BucketOptions(first_bytes=2000, bytes=6000, servers=2, per_layer=True))
            training.adopt(servers if rank == 0 else None)
        losses.append(step(model, optimizer, *batch))
    training.close()
    return losses, learnt(model)


@pytest.mark.parametrize("system", ["full", "layer", "hook"])
@pytest.mark.parametrize("kind", [ResidualNetwork, Transformer])
def test_losses_and_parameters_are_those_of_ddp(kind, system):
    def body(rank):
        torch.backends.cudnn.deterministic = True
        theirs = train_by_ddp(kind, rank)
        ours = train_by_ddp(kind, rank, hook=True) if system == "hook" else train_by_wrap(kind, rank, system)
        assert_same(ours, theirs)

    on_ranks(RANKS, body)


def test_parameters_that_a_pass_does_not_use_count_as_zeros():
    def body(rank):
        model = nn.ModuleList([nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False)]).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        training = commtune.torch.wrap(model, optimizer, "buckets", find_unused_parameters=True)
        model[rank](torch.ones(1, 4, device="cuda")).sum().backward()
        for layer in model:
            assert torch.equal(layer.weight.grad.cpu(), torch.full((4, 4), 1 / RANKS))
        training.close()

    on_ranks(RANKS, body)


def test_times_are_the_gpus():
    def body(_rank):
        with torch.device("cuda"):
            model = nn.Sequential(nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 64))
            document = profiles.profile((model, torch.ones(4096, 4096)), 4096, budget=1)
        first, second = document["layers"]
        assert first["forward_seconds"] > second["forward_seconds"] > 0
        assert first["backward_seconds"] > 0
        assert document["origin"]["device"] == torch.cuda.get_device_name()
        assert dist.is_initialized()

    on_ranks(1, body)
