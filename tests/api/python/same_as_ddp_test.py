"""Training by plans has the losses and parameters of DistributedDataParallel's."""

import pytest
from models import ResidualNetwork, Transformer, assert_same, train_by_ddp
from ranks import on_ranks
from same_as_ddp import STEPS, train


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
