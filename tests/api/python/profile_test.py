"""Profiles of real models: what they are made of, and times that are known beforehand."""

import json
import os
import subprocess
import sys
import time

import pytest
import torch
from models import ResidualNetwork, Transformer
from torch import nn

import commtune.torch.profile as profiles
from commtune.errors import CommtuneError
from commtune.torch.gradients import FlatGradients, trained_parameters


class Sleep(torch.autograd.Function):
    """Takes its time, both ways."""

    @staticmethod
    def forward(ctx, inputs, forward, backward):
        ctx.seconds = backward
        time.sleep(forward)
        return inputs.clone()

    @staticmethod
    def backward(ctx, gradient):
        time.sleep(ctx.seconds)
        return gradient, None, None


class Slow(nn.Module):
    """Scales, then sleeps; on the way back it sleeps first, and its gradient exists after that."""

    def __init__(self, forward, backward):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(4))
        self.times = forward, backward

    def forward(self, inputs):
        return Sleep.apply(inputs * self.scale, *self.times)


class Sleeper(nn.Module):
    """Layers of 10, 20 and 30 ms forward and twice that backward, and one without parameters of 5 and 10 ms after the first."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.third = Slow(0.01, 0.02), Slow(0.02, 0.04), Slow(0.03, 0.06)

    def forward(self, inputs):
        return self.third(self.second(Sleep.apply(self.first(inputs), 0.005, 0.01)))


def layers_by_name(document):
    return {layer["name"]: layer for layer in document["layers"]}


def test_times_are_those_of_the_layers():
    document = profiles.profile((Sleeper(), torch.ones(2, 4)), 2, budget=0)
    layers = layers_by_name(document)
    assert list(layers) == ["first", "second", "third"]
    # What has no parameters belongs to the layer before it on the way forward; on the way back it delays the gradients of that.
    expected = {"first": (0.015, 0.03), "second": (0.02, 0.04), "third": (0.03, 0.06)}
    for name, (forward, backward) in expected.items():
        assert layers[name]["forward_seconds"] == pytest.approx(forward, rel=0.2, abs=0.002)
        assert layers[name]["backward_seconds"] == pytest.approx(backward, rel=0.2, abs=0.002)
    assert document["batch"] == 2
    assert document["origin"]["how"] == "measured"


@pytest.mark.parametrize("kind", [ResidualNetwork, Transformer])
def test_tensors_are_those_that_travel(kind):
    made = kind(), kind.batch(torch.Generator().manual_seed(1))[0]
    document = profiles.profile(made, 8, budget=0)
    gradients = FlatGradients(trained_parameters(made[0]))
    tensors = [(tensor["name"], tensor["bytes"]) for layer in document["layers"] for tensor in layer["tensors"]]
    assert tensors == [(name, 4 * p.numel()) for name, p in zip(gradients.names, gradients.parameters, strict=True)]
    assert sum(layer["forward_seconds"] for layer in document["layers"]) > 0
    assert all(layer["backward_seconds"] >= 0 for layer in document["layers"])
    with torch.device("meta"):
        sizes = profiles.profile(kind(), 8, budget=0)
    assert [layer["tensors"] for layer in sizes["layers"]] == [layer["tensors"] for layer in document["layers"]]
    assert {layer["forward_seconds"] for layer in sizes["layers"]} == {0.0}
    assert sizes["origin"]["how"] == "derived"


def test_frozen_parameters_do_not_travel():
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
    model[0].requires_grad_(False)
    document = profiles.profile((model, torch.ones(1, 4)), 1, budget=0)
    assert [len(layer["tensors"]) for layer in document["layers"]] == [0, 2]


def test_forward_times_reach_to_the_next_layer():
    assert profiles.forward_times(3, 0.0, 10.0, [(1.0, 0), (4.0, 1), (5.0, 2), (7.0, 1)]) == [4.0, 4.0, 2.0]
    assert profiles.forward_times(2, 0.0, 3.0, []) == [3.0, 0.0]


def test_gradients_exist_at_the_sum_of_the_backward_times():
    # The middle layer's gradient comes last of all: those before it in the backward pass do not wait, those after it add nothing.
    times = profiles.backward_times(3, 1.0, 12.0, [(3.0, 2), (2.0, 2), (9.0, 1), (6.0, 0)])
    assert times == [3.0, 6.0, 2.0]
    assert sum(times) == 11.0


def test_what_hooks_take_is_taken_off():
    assert profiles.without_overhead([3.0, 5.0], [1, 3], whole=4.0) == [2.0, 2.0]
    assert profiles.without_overhead([3.0, 5.0], [1, 1], whole=10.0) == [3.75, 6.25]  # faster with hooks: only scaled


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ((nn.ReLU(), torch.ones(1)), "nothing to send"),
        ((nn.Linear(2, 2).double(), torch.ones(1, 2)), "weight is of torch.float64"),
        ((nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2).half()), torch.ones(1, 2)), "several types"),
        ((nn.Linear(2, 2),), "times need a model on cpu or cuda and its inputs"),
        (42, "the callable returned int"),
    ],
)
def test_what_makes_no_profile_is_refused(made, said):
    with pytest.raises(CommtuneError, match=said):
        profiles.profile(made, 1, budget=0)


MODEL = """
import torch
from torch import nn
print("hello")
def make(batch):
    return nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 2)), torch.ones(batch, 8), lambda out: out.square().mean()
"""


def call(*arguments):
    command = [sys.executable, "-m", "commtune.torch.profile", *arguments, "--budget", "0"]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def test_the_program_prints_the_profile_alone(tmp_path):
    (tmp_path / "model.py").write_text(MODEL)
    done = call(f"{tmp_path}/model.py:make", "--batch", "3", "--threads", "1")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert (document["model"], document["batch"]) == ("Sequential", 3)
    assert [tensor["name"] for layer in document["layers"] for tensor in layer["tensors"]] == ["0.weight", "0.bias", "2.weight", "2.bias"]


def test_the_program_says_what_is_wrong(tmp_path):
    (tmp_path / "model.py").write_text(MODEL)
    for named, said in (("model.py:build", "has nothing to call"), ("none.py:make", "no such Python file"), ("make", "FILE:callable is needed")):
        done = call(named if named == "make" else f"{tmp_path}/{named}")
        assert done.returncode == 2
        assert said in done.stderr


def tune(folder, *arguments, **variables):
    environment = {**os.environ, "HOME": str(folder), "COMMTUNE_DB": str(folder / "store.db"), **variables}
    command = [os.environ["COMMTUNE_E2E_TUNE"], "profile", *arguments]
    return subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False, timeout=300)


def test_tune_keeps_the_profile(tmp_path):
    (tmp_path / "model.py").write_text(MODEL)
    done = tune(tmp_path, "--pytorch", "model.py:make", "--batch", "3", "--budget", "1s", "--json")
    assert done.returncode == 0, done.stderr
    profile = json.loads(done.stdout)["profile"]
    assert (profile["model"], profile["batch"], len(profile["layers"])) == ("Sequential", 3, 2)
    sizes = tune(tmp_path, "--pytorch", "model.py:make", "--device", "meta")
    assert sizes.returncode == 0, sizes.stderr
    assert "all 2 layers" in sizes.stdout


def test_tune_says_what_is_missing(tmp_path):
    (tmp_path / "model.py").write_text(MODEL)
    done = tune(tmp_path, "--pytorch", "model.py:make", PYTHONPATH="")
    assert done.returncode == 9
    assert "activate the environment that trains the model" in done.stderr
    wrong = tune(tmp_path, "--pytorch", "model.py:build")
    assert wrong.returncode == 2
    assert "has nothing to call that is named build" in wrong.stderr
    assert tune(tmp_path).returncode == 2
