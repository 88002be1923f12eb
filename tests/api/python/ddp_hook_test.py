"""DistributedDataParallel with the plan behind its communication hook."""

import time

import pytest
import torch
from models import ResidualNetwork, Transformer, assert_same, batches, make, numbers, step, train_by_ddp
from ranks import on_ranks
from torch.nn.parallel import DistributedDataParallel

import commtune.torch
from commtune.torch.gradients import FlatGradients

RANKS, STEPS = 3, 20


@pytest.mark.parametrize("servers", [0, 2])
@pytest.mark.parametrize("kind", [ResidualNetwork, Transformer])
def test_losses_and_parameters_are_those_of_ddp_alone(kind, servers):
    def body(rank):
        theirs = train_by_ddp(kind, rank, STEPS)
        model, optimizer = make(kind, rank)
        wrapped = DistributedDataParallel(model, bucket_cap_mb_list=[0.004] * 4)  # several buckets, built anew after the first pass
        communication = commtune.torch.ddp_hook(wrapped, "buckets")
        communication.adopt(communication.bucket_plan(commtune.BucketOptions(1000, 4000, servers)) if rank == 0 else None)
        losses = [step(wrapped, optimizer, *batch) for batch in batches(kind, rank, STEPS)]
        assert communication.statistics().iterations == STEPS
        communication.close()
        assert_same((losses, numbers(model)), theirs)

    on_ranks(RANKS, body)


def test_a_bucket_comes_back_before_the_last_one_is_there_also_under_a_full_barrier():
    def body(rank):
        model, optimizer = make(Transformer, rank)
        wrapped = DistributedDataParallel(model, bucket_cap_mb_list=[0.004] * 4)
        communication = commtune.torch.ddp_hook(wrapped, "buckets")
        communication.adopt(communication.bucket_plan(commtune.BucketOptions(1, 1)) if rank == 0 else None)
        on_bucket, futures = communication.on_bucket, []

        def first_is_back_before_the_last(bucket):
            if bucket.is_last() and futures:
                until = time.monotonic() + 30
                while not futures[0].done() and time.monotonic() < until:
                    time.sleep(0.001)
                assert futures[0].done()
            futures.append(on_bucket(bucket))
            return futures[-1]

        communication.on_bucket = first_is_back_before_the_last
        for number, batch in enumerate(batches(Transformer, rank, 3)):
            futures.clear()
            step(wrapped, optimizer, *batch)
            assert len(futures) > 1 or number == 0  # buckets are built anew after the first pass
        communication.close()

    on_ranks(RANKS, body)


def test_gradients_side_by_side_in_both_are_one_stretch():
    sizes = {"a": 2, "b": 3, "empty": 0, "c": 4, "d": 5}
    parameters = [(name, torch.nn.Parameter(torch.zeros(size))) for name, size in sizes.items()]
    gradients = FlatGradients(parameters)  # d, c, empty, b, a
    gradients.flat.copy_(torch.arange(14.0))
    bucket = torch.tensor([5.0, 6, 7, 8, 9, 10, 11, 0, 1, 2, 3, 4, 12, 13])  # c, empty, b; d; a
    stretches = gradients.beside(bucket, [3, 2, 1, 4, 0])
    assert [len(ours) for ours, _ in stretches] == [7, 5, 2]
    assert all(ours.equal(theirs) for ours, theirs in stretches)
    whole = gradients.beside(gradients.flat.clone(), [4, 3, 2, 1, 0])
    assert [len(ours) for ours, _ in whole] == [14]


@pytest.mark.parametrize("caps", [[0.004] * 4, [25.0]])
def test_buckets_that_were_built_anew_take_fewer_copies_than_gradients(caps):
    def body(rank):
        model, optimizer = make(Transformer, rank)
        wrapped = DistributedDataParallel(model, bucket_cap_mb_list=caps)
        communication = commtune.torch.ddp_hook(wrapped, "buckets")
        gradients, seen = communication._gradients, []

        def beside(buffer, indices, original=gradients.beside):
            stretches = original(buffer, indices)
            seen.append((buffer.numel(), indices, [len(theirs) for _, theirs in stretches]))
            return stretches

        gradients.beside = beside
        for batch in batches(Transformer, rank, 3):
            seen.clear()  # of the pass before: buckets are built anew after the first
            step(wrapped, optimizer, *batch)
        communication.close()
        for size, indices, copied in seen:
            # Gradients fill a bucket without gaps: what a stretch stands on.
            assert size == sum(gradients.parameters[index].numel() for index in indices)
            assert sum(copied) == size
            # Some were made in the order in which they lie here, such as a linear layer's bias and weight.
            assert len(copied) < len(indices) or len(indices) == 1
        assert sorted(index for _, indices, _ in seen for index in indices) == list(range(len(gradients.parameters)))

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
