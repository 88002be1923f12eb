"""DistributedDataParallel with the plan behind its communication hook."""

import pytest
from models import ResidualNetwork, Transformer, assert_same, batches, make, numbers, step, train_by_ddp
from ranks import on_ranks
from torch.nn.parallel import DistributedDataParallel

import commtune.torch

RANKS, STEPS = 3, 20


@pytest.mark.parametrize("servers", [0, 2])
@pytest.mark.parametrize("kind", [ResidualNetwork, Transformer])
def test_losses_and_parameters_are_those_of_ddp_alone(kind, servers):
    def body(rank):
        theirs = train_by_ddp(kind, rank, STEPS)
        model, optimizer = make(kind, rank)
        wrapped = DistributedDataParallel(model, bucket_cap_mb=0.01)  # several buckets, built anew after the first pass
        communication = commtune.torch.ddp_hook(wrapped, "buckets")
        communication.adopt(communication.bucket_plan(commtune.BucketOptions(1000, 4000, servers)) if rank == 0 else None)
        losses = [step(wrapped, optimizer, *batch) for batch in batches(kind, rank, STEPS)]
        assert communication.statistics().iterations == STEPS
        communication.close()
        assert_same((losses, numbers(model)), theirs)

    on_ranks(RANKS, body)


def test_passes_without_sync_send_nothing():
    def body(rank):
        model, optimizer = make(Transformer, rank)
        wrapped = DistributedDataParallel(model)
        communication = commtune.torch.ddp_hook(wrapped, "buckets")
        data = batches(Transformer, rank, 4)
        with wrapped.no_sync():
            step(wrapped, optimizer, *data[0])
        for batch in data[1:]:
            step(wrapped, optimizer, *batch)
        assert communication.statistics().iterations == 3
        communication.close()

    on_ranks(RANKS, body)
