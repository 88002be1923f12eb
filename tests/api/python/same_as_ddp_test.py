"""Training by plans has the losses and parameters of DistributedDataParallel's."""

import pytest
from models import ResidualNetwork, Transformer, assert_same, batches, make, numbers, step, train_by_ddp
from ranks import on_ranks

import commtune.torch

STEPS = 100


def plans(training):
    """All-to-all, then servers; buckets small enough that there are several."""
    for servers in (0, 3):
        yield training.bucket_plan(commtune.BucketOptions(first_bytes=2000, bytes=6000, servers=servers, per_layer=True))


def train(kind, rank, barrier, change=None):
    """Half of the steps by one plan, half by another."""
    model, optimizer = make(kind, rank)
    training = commtune.torch.wrap(model, optimizer, "buckets", barrier=barrier)
    chosen = list(plans(training))
    losses = []
    for number, batch in enumerate(batches(kind, rank, STEPS)):
        if number % (STEPS // 2) == 0:
            plan = chosen[number // (STEPS // 2)]
            training.adopt(plan if rank == 0 else None)
        if change is not None:
            change(optimizer, number)
        losses.append(step(model, optimizer, *batch))
    learnt = numbers(model)
    assert training.statistics().iterations == STEPS
    assert training.statistics().messages >= 3
    training.close()
    return losses, learnt


@pytest.mark.parametrize("barrier", ["full", "layer"])
@pytest.mark.parametrize("kind", [ResidualNetwork, Transformer])
def test_losses_and_parameters_are_those_of_ddp(kind, barrier):
    def body(rank):
        theirs = train_by_ddp(kind, rank, STEPS)
        ours = train(kind, rank, barrier)
        assert_same(ours, theirs)
        assert ours[0][-1] < ours[0][0]
        return ours[1]

    learnt = on_ranks(4, body)
    # Statistics of batch normalization are each rank's own after the last pass; parameters are equal.
    if kind is Transformer:
        assert all(each == learnt[0] for each in learnt)
