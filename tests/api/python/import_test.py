"""`tune profile --import`: traces that PyTorch's profiler really records."""

import json
import os
import subprocess

import pytest
import torch
from models import ResidualNetwork
from torch import nn
from traces import STEPS, Network, linked, record

import commtune.torch.profile as profiles
from commtune.torch.profile import layers_of


def imported(folder, path, *arguments):
    environment = {**os.environ, "HOME": str(folder), "COMMTUNE_DB": str(folder / "store.db")}
    command = [os.environ["COMMTUNE_E2E_TUNE"], "profile", "--import", str(path), *arguments, "--json"]
    return subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False, timeout=300)


def profile_of(folder, path, *arguments):
    done = imported(folder, path, *arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["profile"]


def sizes(document):
    return [tensor["bytes"] for layer in document["layers"] for tensor in layer["tensors"]]


def make(kind):
    torch.manual_seed(1)
    inputs = torch.randn(8, 3, 16, 16)
    return kind(), inputs, lambda out: out.square().mean()


def shape_profile(folder, model):
    """Of the model's own names and sizes, without times."""
    with torch.device("meta"):
        document = profiles.profile(type(model)(), 1, budget=0)
    path = folder / "sizes.json"
    path.write_text(json.dumps(document))
    return path


@pytest.mark.parametrize("kind", [Network, ResidualNetwork])
@pytest.mark.parametrize("modules", [False, True])
def test_gradients_are_those_of_the_model(kind, modules, tmp_path):
    model, inputs, loss = make(kind)
    kineto, execution = record(tmp_path, model, inputs, loss, modules=modules)
    chakra = tmp_path / "chakra.json"
    chakra.write_text(json.dumps(linked(json.loads(kineto.read_text()), json.loads(execution.read_text()))))
    expected = [4 * parameter.numel() for layer in layers_of(model) for _, parameter in layer.tensors]
    for path in (kineto, chakra):
        document = profile_of(tmp_path, path, "--batch", "8")
        assert sizes(document) == expected
        assert document["batch"] == 8
        assert document["data_type"] == "float32"
        assert all(layer["forward_seconds"] > 0 for layer in document["layers"])
        assert sum(layer["backward_seconds"] for layer in document["layers"]) > 0
    named = profile_of(tmp_path, kineto, "--model", str(shape_profile(tmp_path, model)))
    assert [tensor["name"] for layer in named["layers"] for tensor in layer["tensors"]] == [name for name, _ in model.named_parameters()]


def seconds_of(kineto, name, layers):
    """Of each layer, an iteration's mean of the events of that name; layers says how many each has, in the order of time."""
    events = json.loads(kineto.read_text())["traceEvents"]
    named = sorted((event for event in events if event.get("name") == name), key=lambda event: event["ts"])
    assert len(named) == STEPS * sum(layers)
    owners = [layer for _ in range(STEPS) for layer, count in enumerate(layers) for _ in range(count)]
    means = [0.0] * len(layers)
    for owner, event in zip(owners, named, strict=True):
        means[owner] += event["dur"] / 1e6 / STEPS
    return means


def test_times_are_those_of_the_layers(tmp_path):
    class Slow(nn.Module):
        """So many products of matrices, and so long."""

        def __init__(self, count):
            super().__init__()
            self.weight, self.count = nn.Parameter(torch.randn(300, 300) / 17), count

        def forward(self, values):
            for _ in range(self.count):
                values = values @ self.weight
            return values

    model = nn.Sequential(Slow(4), Slow(16))
    kineto, _ = record(tmp_path, model, torch.randn(300, 300), lambda out: out.square().mean(), modules=True)
    first, second = profile_of(tmp_path, kineto)["layers"]
    forward = seconds_of(kineto, "aten::matmul", (4, 16))
    second_backward, first_backward = seconds_of(kineto, "autograd::engine::evaluate_function: MmBackward0", (16, 4))
    # Each time has its layer's products, however slow they were, and all together are no more than the iteration.
    times = [layer[time] for time in ("forward_seconds", "backward_seconds") for layer in (first, second)]
    for time, products in zip(times, (*forward, first_backward, second_backward), strict=True):
        assert time > 0.999 * products
    events = json.loads(kineto.read_text())["traceEvents"]
    steps = [event["dur"] / 1e6 for event in events if event.get("cat") == "user_annotation" and event["name"].startswith("ProfilerStep#")]
    assert len(steps) == STEPS
    assert sum(times) < 1.001 * sum(steps) / STEPS


def test_without_shapes_a_model_lends_the_sizes(tmp_path):
    model, inputs, loss = make(Network)
    kineto, execution = record(tmp_path, model, inputs, loss, shapes=False)
    refused = imported(tmp_path, kineto)
    assert refused.returncode == 2
    assert "record with record_shapes=True, or name the model with --model" in refused.stderr
    document = profile_of(tmp_path, kineto, "--model", str(shape_profile(tmp_path, model)))
    assert sizes(document) == [4 * parameter.numel() for parameter in model.parameters()]
    alone = imported(tmp_path, execution)
    assert alone.returncode == 2
    assert "chakra_trace_link --chakra-host-trace" in alone.stderr
