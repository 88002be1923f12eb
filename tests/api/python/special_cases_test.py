"""What DistributedDataParallel scripts do beside the plain loop: each works as there, or says clearly why not."""

import contextlib

import pytest
import torch
from models import ResidualNetwork, Transformer, assert_same, batches, make, numbers, step, train_by_ddp
from ranks import on_ranks
from torch import nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

import commtune.torch

RANKS, STEPS = 2, 6


def both_ways(kind, loop, change=lambda model: None, barrier="full", **options):
    """loop(trained, model, optimizer, no_sync, batches) by ours and by DDP: the same on every rank."""

    def body(rank):
        results = []
        for ours in (True, False):
            model, optimizer = make(kind, rank)
            change(model)
            if ours:
                training = commtune.torch.wrap(model, optimizer, "buckets", barrier=barrier, **options)
                results.append((loop(model, model, optimizer, training.no_sync, batches(kind, rank, STEPS)), numbers(model)))
                training.close()
            else:
                trained = DistributedDataParallel(model, **options)
                results.append((loop(trained, model, optimizer, trained.no_sync, batches(kind, rank, STEPS)), numbers(model)))
        assert_same(*results)

    on_ranks(RANKS, body)


def refused(kind, match, change=lambda model: None, loop=None, **options):
    """Every rank hears the same clear error, from wrap() or in the first step."""

    def body(rank):
        model, optimizer = make(kind, rank)
        change(model)
        with pytest.raises(commtune.CommtuneError, match=match):
            commtune.torch.wrap(model, optimizer, "buckets", **options)
            for inputs, labels in batches(kind, rank, 1):
                (loop or step)(model, optimizer, inputs, labels)

    on_ranks(RANKS, body)


def plain(trained, _model, optimizer, _no_sync, data):
    return [step(trained, optimizer, *batch) for batch in data]


class HalfUsed(nn.Module):
    """Each rank's passes use another half; one layer is used by nobody."""

    def __init__(self):
        super().__init__()
        self.common, self.even, self.odd, self.idle = (nn.Linear(4, 4) for _ in range(4))
        self.passes = 0

    def forward(self, inputs):
        self.passes += 1
        half = self.even if (torch.distributed.get_rank() + self.passes) % 2 == 0 else self.odd
        return half(torch.tanh(self.common(inputs)))

    @staticmethod
    def batch(generator):
        return torch.randn(5, 4, generator=generator), torch.randint(4, (5,), generator=generator)


def test_unused_parameters_count_as_zeros_if_asked_for():
    both_ways(HalfUsed, plain, find_unused_parameters=True)


def test_unused_parameters_are_named_otherwise():
    refused(HalfUsed, r"4 parameters got no gradient in this pass: (even|odd)\.weight, .*find_unused_parameters=True|rank . .*got no gradient")


def test_shared_parameters_travel_once():
    both_ways(Transformer, plain)


@pytest.mark.parametrize("barrier", ["full", "layer"])
def test_accumulation_without_sync(barrier):
    def loop(trained, _model, optimizer, no_sync, data):
        losses = []
        for number in range(0, STEPS, 2):
            optimizer.zero_grad()
            for place, (inputs, labels) in enumerate(data[number : number + 2]):
                with no_sync() if place == 0 else contextlib.nullcontext():
                    loss = functional.cross_entropy(trained(inputs), labels) / 2
                    loss.backward()
                losses.append(loss.item())
            optimizer.step()
        return losses

    both_ways(Transformer, loop, barrier=barrier)


@pytest.mark.parametrize("barrier", ["full", "layer"])
@pytest.mark.parametrize("set_to_none", [True, False])
def test_zero_grad_either_way(set_to_none, barrier):
    def loop(trained, _model, optimizer, _no_sync, data):
        losses = []
        for inputs, labels in data:
            optimizer.zero_grad(set_to_none=set_to_none)
            loss = functional.cross_entropy(trained(inputs), labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    both_ways(ResidualNetwork, loop, barrier=barrier)


@pytest.mark.parametrize("barrier", ["full", "layer"])
def test_gradients_that_nobody_zeroes_add_up(barrier):
    def loop(trained, _model, optimizer, _no_sync, data):
        for inputs, labels in data:
            functional.cross_entropy(trained(inputs), labels).backward()
        optimizer.step()
        return []

    both_ways(Transformer, loop, barrier=barrier)


def test_clipping_of_the_global_norm():
    def loop(trained, model, optimizer, _no_sync, data):
        norms = []
        for inputs, labels in data:
            optimizer.zero_grad()
            functional.cross_entropy(trained(inputs), labels).backward()
            norms.append(nn.utils.clip_grad_norm_(model.parameters(), 0.1).item())
            optimizer.step()
        return norms

    both_ways(ResidualNetwork, loop)


def test_mixed_precision_with_a_scaler():
    def loop(trained, model, optimizer, _no_sync, data):
        scaler, losses = torch.amp.GradScaler("cpu", init_scale=1024.0), []
        for inputs, labels in data:
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = functional.cross_entropy(trained(inputs), labels)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            losses.append(loss.item())
        return losses

    both_ways(Transformer, loop)


def freeze_stem(model):
    model.stem.requires_grad_(False)


def test_frozen_layers_do_not_travel():
    both_ways(ResidualNetwork, plain, change=freeze_stem)


def test_a_model_of_bfloat16():
    def body(rank):
        model, optimizer = make(Transformer, rank)
        model.to(torch.bfloat16)
        training = commtune.torch.wrap(model, optimizer, "buckets")
        losses = [step(model, optimizer, *batch) for batch in batches(Transformer, rank, 30)]
        training.close()
        assert losses[-1] < losses[0]
        return numbers(model)

    first, second = on_ranks(RANKS, body)
    assert first == second


def test_parameters_of_several_types_are_refused():
    refused(ResidualNetwork, "parameters of several types.*float32.*bfloat16", change=lambda model: model.head.to(torch.bfloat16))


def test_a_device_that_gradients_do_not_travel_from_is_refused():
    refused(ResidualNetwork, "parameter stem.weight is on meta: gradients travel from cpu and cuda", change=lambda model: model.to("meta"))


def test_double_precision_is_refused():
    refused(ResidualNetwork, "parameter stem.weight is of torch.float64", change=lambda model: model.double())


class Sparse(nn.Module):
    """An embedding with sparse gradients."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(9, 4, sparse=True)

    def forward(self, rows):
        return self.table(rows)

    @staticmethod
    def batch(generator):
        return torch.randint(9, (5,), generator=generator), torch.randint(4, (5,), generator=generator)


def test_sparse_gradients_are_refused():
    refused(Sparse, "table.weight is sparse.*sparse=False|rank . .*sparse=False")


def test_gradients_of_gradients_are_refused():
    def loop(model, _optimizer, inputs, labels):
        functional.cross_entropy(model(inputs), labels).backward(create_graph=True)

    refused(HalfUsed, "create_graph=True", loop=loop)


class Reentrant(nn.Module):
    """Recomputes each layer in a backward pass of its own."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, inputs):
        inputs = checkpoint(self.first, inputs.requires_grad_(), use_reentrant=True)
        return checkpoint(self.second, inputs, use_reentrant=True)

    batch = staticmethod(HalfUsed.batch)


def test_reentrant_checkpoints_are_refused():
    refused(Reentrant, "first.weight, first.bias; .*use_reentrant=False")


def test_channels_last():
    both_ways(ResidualNetwork, plain, change=lambda model: model.to(memory_format=torch.channels_last))


@pytest.mark.parametrize("barrier", ["full", "layer"])
def test_compiled_models(barrier):
    def body(rank):
        model, optimizer = make(Transformer, rank)
        training = commtune.torch.wrap(model, optimizer, "buckets", barrier=barrier)
        compiled = torch.compile(model, backend="aot_eager")
        losses = [step(compiled, optimizer, *batch) for batch in batches(Transformer, rank, STEPS)]
        ours = losses, numbers(model)
        training.close()
        assert_same(ours, train_by_ddp(Transformer, rank, STEPS))

    on_ranks(RANKS, body)


def test_models_are_wrapped_once_and_are_as_before_when_closed():
    def body(rank):
        model, optimizer = make(ResidualNetwork, rank)
        before = optimizer.step
        training = commtune.torch.wrap(model, optimizer, "buckets", barrier="layer")
        with pytest.raises(commtune.CommtuneError, match="wrapped already"):
            commtune.torch.wrap(model, optimizer, "buckets")
        step(model, optimizer, *batches(ResidualNetwork, rank, 1)[0])
        training.close()
        assert optimizer.step == before
        assert type(model) is ResidualNetwork
        step(model, optimizer, *batches(ResidualNetwork, rank, 1)[0])  # alone
        commtune.torch.wrap(model, optimizer, "buckets").close()

    on_ranks(RANKS, body)


def test_without_a_process_group_it_says_what_to_call():
    model, optimizer = make(ResidualNetwork)
    with pytest.raises(commtune.CommtuneError, match="init_process_group"):
        commtune.torch.wrap(model, optimizer)


def test_a_barrier_that_there_is_not():
    model, optimizer = make(ResidualNetwork)
    with pytest.raises(commtune.CommtuneError, match='barrier = "loose": must be "full" or "layer"'):
        commtune.torch.wrap(model, optimizer, barrier="loose")


def test_two_models_of_one_process():
    def body(rank):
        made = [make(kind, rank) for kind in (Transformer, ResidualNetwork)]
        trainings = [commtune.torch.wrap(model, optimizer, "buckets") for model, optimizer in made]
        for pair in zip(batches(Transformer, rank, STEPS), batches(ResidualNetwork, rank, STEPS), strict=True):
            for (model, optimizer), batch in zip(made, pair, strict=True):
                step(model, optimizer, *batch)
        for training in trainings:
            assert training.statistics().iterations == STEPS
            training.close()

    on_ranks(RANKS, body)


def test_a_process_group_of_some_ranks():
    def body(rank):
        groups = [torch.distributed.new_group([0, 2]), torch.distributed.new_group([1, 3])]
        model, optimizer = make(Transformer, rank)
        training = commtune.torch.wrap(model, optimizer, "buckets", process_group=groups[rank % 2])
        for batch in batches(Transformer, rank, 3):
            step(model, optimizer, *batch)
        training.close()
        return numbers(model)

    learnt = on_ranks(4, body)
    assert learnt[0] == learnt[2]
    assert learnt[1] == learnt[3]
    assert learnt[0] != learnt[1]
