"""barrier="layer": updates are made before a layer is used again, and wherever else somebody looks."""

import copy

import pytest
import torch
from models import ResidualNetwork, Transformer, assert_same, batches, make, numbers, step, train_by_ddp
from ranks import on_ranks
from torch import nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

import commtune.torch
from commtune.torch import deferred

RANKS, STEPS = 2, 8


def wrapped(kind, rank, barrier="layer"):
    model, optimizer = make(kind, rank)
    return model, optimizer, commtune.torch.wrap(model, optimizer, "buckets", barrier=barrier)


def test_step_remembers_what_a_scheduler_changes_afterwards():
    def body(rank):
        def train(wrap):
            model, optimizer = make(Transformer, rank)
            trained = wrap(model, optimizer)
            scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
            losses = []
            for batch in batches(Transformer, rank, STEPS):
                losses.append(step(trained, optimizer, *batch))
                scheduler.step()
            return losses, numbers(model)

        def ours(model, optimizer):
            commtune.torch.wrap(model, optimizer, "buckets", barrier="layer")
            return model

        assert_same(train(ours), train(lambda model, _: DistributedDataParallel(model)))

    on_ranks(RANKS, body)


ALL = list(range(20))


@pytest.mark.parametrize(
    ("away", "expected"),
    [([2, 3], [ALL[:2] + ALL[4:], [2, 3]]), ([0, 1], [[0, 1], ALL[2:]])],
    ids=["while a later layer waits", "but not while the first one does"],
)
def test_what_is_back_is_updated_together(monkeypatch, away, expected):
    def body(rank):
        model = nn.Sequential(*(nn.Linear(4, 4) for _ in range(10)))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        training = commtune.torch.wrap(model, optimizer, "buckets", barrier="layer")
        updated = []
        before = training._deferred._update
        monkeypatch.setattr(training._deferred, "_update", lambda due: updated.append(list(due)) or before(due))
        for number in range(4):
            optimizer.zero_grad()
            model(torch.ones(1, 4)).sum().backward()
            optimizer.step()
            training._session.wait_all()
            if number == 2:  # the first pass after a step shows who reads early, and updates layer by layer
                updated.clear()
                monkeypatch.setattr(training._session, "are_back", lambda: bytes(index not in away for index in ALL))
        assert updated == expected
        training.close()

    on_ranks(RANKS, body)


def test_the_next_layers_are_updated_together_as_long_as_that_costs_less_than_a_call(monkeypatch):
    def body(rank):
        model = nn.Sequential(*(nn.Linear(4, 4, bias=False) for _ in range(10)))  # 64 bytes each
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        training = commtune.torch.wrap(model, optimizer, "buckets", barrier="layer")
        updated = []
        before = training._deferred._update
        monkeypatch.setattr(training._deferred, "_update", lambda due: updated.append(list(due)) or before(due))
        monkeypatch.setattr(deferred, "TOGETHER_BYTES", 250)
        monkeypatch.setattr(training._session, "are_back", lambda: bytes([1] * 10))
        for _ in range(4):
            updated.clear()
            optimizer.zero_grad()
            model(torch.ones(1, 4)).sum().backward()
            optimizer.step()
            training._session.wait_all()
        assert updated == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
        training.close()

    on_ranks(RANKS, body)


@pytest.mark.parametrize("optimizer_of", [torch.optim.AdamW, torch.optim.RMSprop])
def test_optimizers_with_state_and_groups(optimizer_of):
    def body(rank):
        def train(barrier):
            model, _ = make(Transformer, rank)
            named = list(model.named_parameters())
            groups = [{"params": [p for n, p in named if "bias" in n], "weight_decay": 0.0}, {"params": [p for n, p in named if "bias" not in n]}]
            optimizer = optimizer_of(groups, lr=1e-3, weight_decay=0.01)
            training = commtune.torch.wrap(model, optimizer, "buckets", barrier=barrier)
            losses = [step(model, optimizer, *batch) for batch in batches(Transformer, rank, STEPS)]
            training.close()
            return losses, numbers(model)

        assert_same(train("layer"), train("full"))

    on_ranks(RANKS, body)


def test_saving_evaluating_and_listing_see_all_updates():
    looks = {
        "state_dict": lambda model: model.state_dict()["head.bias"].tolist(),
        "eval": lambda model: model.eval().head.bias.tolist(),
        "parameters": lambda model: list(model.parameters())[-1].tolist(),
    }

    def body(rank):
        for look in looks.values():
            seen = []
            for barrier in ("layer", "full"):
                model, optimizer, training = wrapped(ResidualNetwork, rank, barrier)
                for batch in batches(ResidualNetwork, rank, 2):
                    step(model, optimizer, *batch)
                seen.append(look(model))
                training.close()
            torch.testing.assert_close(*map(torch.tensor, seen))

    on_ranks(RANKS, body)


def test_reading_gradients_under_way_says_which_barrier_to_use():
    def body(rank):
        model, optimizer, training = wrapped(ResidualNetwork, rank)
        inputs, labels = batches(ResidualNetwork, rank, 1)[0]
        functional.cross_entropy(model(inputs), labels).backward()
        with pytest.raises(commtune.CommtuneError, match='need barrier="full"'):
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler = torch.amp.GradScaler("cpu")
        scaler.scale(torch.ones(()))
        with pytest.raises(commtune.CommtuneError, match='need barrier="full"'):
            scaler.unscale_(optimizer)
        with pytest.raises(commtune.CommtuneError, match='closure. needs barrier="full"'):
            optimizer.step(lambda: None)
        optimizer.step()
        training.close()

    on_ranks(RANKS, body)


class Recomputing(Transformer):
    """Recomputes its layers in the backward pass."""

    reentrant = False

    def forward(self, tokens):
        made = self.embedding(tokens)
        for layer in self.layers.layers:
            made = checkpoint(layer, made, use_reentrant=self.reentrant)
        return self.head(made).flatten(0, 1)


@pytest.mark.parametrize("barrier", ["full", "layer"])
def test_recomputation_updates_nothing_twice(barrier):
    def body(rank):
        model, optimizer, training = wrapped(Recomputing, rank, barrier)
        losses = [step(model, optimizer, *batch) for batch in batches(Recomputing, rank, STEPS)]
        ours = losses, numbers(model)
        training.close()
        assert_same(ours, train_by_ddp(Recomputing, rank, STEPS))

    on_ranks(RANKS, body)


class ReadsAhead(nn.Module):
    """Uses the last layer's weight, as a number, before the layer itself."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(6, 6), nn.Linear(6, 3)

    def forward(self, inputs):
        ahead = functional.linear(inputs, self.last.weight).sum(dim=1, keepdim=True)
        return self.last(torch.tanh(self.first(inputs) + ahead))

    @staticmethod
    def batch(generator):
        return torch.randn(5, 6, generator=generator), torch.randint(3, (5,), generator=generator)


def test_a_parameter_that_is_read_before_its_layer_is_updated_by_then():
    def body(rank):
        model, optimizer, training = wrapped(ReadsAhead, rank)
        losses = [step(model, optimizer, *batch) for batch in batches(ReadsAhead, rank, STEPS)]
        ours = losses, numbers(model)
        training.close()
        assert_same(ours, train_by_ddp(ReadsAhead, rank, STEPS))

    on_ranks(RANKS, body)


def test_saved_and_resumed_training_goes_on_as_if_nothing_was():
    def body(rank):
        def train(pause):
            model, optimizer, training = wrapped(Transformer, rank)
            losses = []
            for number, batch in enumerate(batches(Transformer, rank, STEPS)):
                losses.append(step(model, optimizer, *batch))
                if number == pause:
                    saved = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
                    training.close()
                    model, optimizer, training = wrapped(Transformer, rank + 7)
                    model.load_state_dict(saved[0])
                    optimizer.load_state_dict(saved[1])
            training.close()
            return losses, numbers(model)

        assert_same(train(3), train(None), tolerance=1e-6)

    on_ranks(RANKS, body)


def test_what_cannot_be_updated_layer_by_layer_is_refused():
    def body(rank):
        model, _ = make(ReadsAhead, rank)
        with pytest.raises(commtune.CommtuneError, match="LBFGS"):
            commtune.torch.wrap(model, torch.optim.LBFGS(model.parameters()), "buckets", barrier="layer")

    on_ranks(RANKS, body)


def test_parameters_outside_of_the_optimizer_are_named():
    def body(rank):
        model, _ = make(ReadsAhead, rank)
        with pytest.raises(commtune.CommtuneError, match=r"last\.weight is not in the optimizer"):
            commtune.torch.wrap(model, torch.optim.SGD(model.first.parameters(), lr=0.1), "buckets", barrier="layer")

    on_ranks(RANKS, body)


def test_a_copy_of_the_model_has_no_part_in_it():
    def body(rank):
        model, optimizer, training = wrapped(ResidualNetwork, rank)
        data = batches(ResidualNetwork, rank, 2)
        step(model, optimizer, *data[0])
        average = copy.deepcopy(model)
        average.eval()
        assert model.training
        if rank == 0:
            average.train()(data[0][0])
        step(model, optimizer, *data[1])
        training.close()

    on_ranks(RANKS, body)
