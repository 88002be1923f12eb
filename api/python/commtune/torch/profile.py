"""A profile of a real model: its tensors, and how long each of its layers computes.

    python -m commtune.torch.profile FILE:callable [--batch N] [--device cpu|cuda|meta] [--budget SECONDS]

``callable(batch)`` makes the model and what one iteration is fed with: it returns ``(model, inputs)`` or
``(model, inputs, loss)``. ``inputs`` is a tensor, a tuple of arguments or a dictionary of keyword arguments; ``loss``
makes a number of what the model returns. Without it that is the result's ``loss`` where it has one, else the sum of its
floating-point tensors. The profile is written to standard output as JSON ("commtune/profile/1").
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_leaves
from torch.utils.hooks import RemovableHandle

from commtune.errors import CommtuneError
from commtune.torch.rendezvous import type_of

WARM_UP = 2  # iterations before the first that counts: memory is touched, kernels are chosen
LEAST, MOST = 5, 200  # iterations with hooks, and as many without


class HostClock:
    """Of the processor: what has returned has been computed."""

    @property
    def device(self) -> str:
        """Whose time it is, as profiles name it."""
        return f"{_processor()}, {torch.get_num_threads()} threads"

    def restart(self) -> None:
        """Moments are compared with later ones alone."""

    def now(self) -> Any:
        """A moment, for :meth:`seconds`."""
        return time.perf_counter()

    def seconds(self, moment: Any) -> float:
        """Of a moment since the last restart, or since any other time."""
        return float(moment)


class GpuClock:
    """Of the streams of the current GPU: a moment is when all has been computed that its stream was given before."""

    def __init__(self) -> None:
        self._first: Any = None

    @property
    def device(self) -> str:
        """Whose time it is, as profiles name it."""
        return torch.cuda.get_device_name()

    def restart(self) -> None:
        """Nothing is under way."""
        torch.cuda.synchronize()
        self._first = self.now()

    def now(self) -> Any:
        """Waits for nothing."""
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def seconds(self, moment: Any) -> float:
        """Waits until the moment has come."""
        moment.synchronize()
        return 1e-3 * float(self._first.elapsed_time(moment))


Clock = HostClock | GpuClock
Moments = list[tuple[float, int]]  #: seconds, and whose


class ProfiledLayer:
    """A module with parameters of its own. Those without are part of the layer that ran before them."""

    def __init__(self, name: str, module: nn.Module, tensors: list[tuple[str, nn.Parameter]]) -> None:
        self.name, self.module, self.tensors = name, module, tensors
        self.forward: list[float] = []  # seconds, one an iteration
        self.backward: list[float] = []


def layers_of(model: nn.Module) -> list[ProfiledLayer]:
    """In the order in which the model names them; a shared parameter belongs to the first that has it."""
    seen: set[int] = set()
    layers = []
    for name, module in model.named_modules():
        named = module.named_parameters(name, recurse=False)
        own = [(key, parameter) for key, parameter in named if id(parameter) not in seen]
        seen.update(id(parameter) for _, parameter in own)
        if own:
            trained = [(key, parameter) for key, parameter in own if parameter.requires_grad]
            layers.append(ProfiledLayer(name or type(model).__name__, module, trained))
    if not any(layer.tensors for layer in layers):
        raise CommtuneError("the model has no parameter that requires a gradient: there is nothing to send")
    return layers


def data_type(layers: list[ProfiledLayer]) -> str:
    """Of all gradients, as profiles name it."""
    found: dict[torch.dtype, str] = {}
    for layer in layers:
        for name, parameter in layer.tensors:
            found.setdefault(parameter.dtype, name)
    if len(found) > 1:
        listed = ", ".join(f"{name} is of {dtype}" for dtype, name in found.items())
        raise CommtuneError(f"parameters of several types make no profile: {listed}")
    dtype, name = next(iter(found.items()))
    kind = type_of(dtype)
    if kind is None:
        raise CommtuneError(f"parameter {name} is of {dtype}: profiles have float32, float16 and bfloat16")
    return kind


class Iteration:
    """One training step's passes, without an optimizer."""

    def __init__(self, model: nn.Module, inputs: Any, loss: Callable[[Any], torch.Tensor] | None, clock: Clock) -> None:
        self.model, self._loss, self.clock = model, loss or sum_of, clock
        self._arguments: tuple[Any, ...] = ()
        self._named: dict[str, Any] = {}
        if isinstance(inputs, dict):
            self._named = inputs
        else:
            self._arguments = inputs if isinstance(inputs, tuple) else (inputs,)

    def run(self) -> tuple[float, float, float]:
        """When it began, when the backward pass did, and when that ended."""
        self.model.zero_grad(set_to_none=True)
        self.clock.restart()
        began = self.clock.now()
        loss = self._loss(self.model(*self._arguments, **self._named))
        turned = self.clock.now()
        loss.backward()
        ended = self.clock.now()
        return self.clock.seconds(began), self.clock.seconds(turned), self.clock.seconds(ended)


def sum_of(result: Any) -> torch.Tensor:
    """A number of what a model returns."""
    if isinstance(getattr(result, "loss", None), torch.Tensor):
        loss: torch.Tensor = result.loss
        return loss
    tensors = [leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor) and leaf.is_floating_point()]
    if not tensors:
        raise CommtuneError("the model returns no floating-point tensor: let the callable return (model, inputs, loss)")
    return torch.stack([tensor.sum() for tensor in tensors]).sum()


class Hooks:
    """When each layer began its forward pass, and when each of its gradients existed."""

    def __init__(self, layers: list[ProfiledLayer], clock: Clock | None = None) -> None:
        self._layers, self._clock = layers, clock or HostClock()
        self._entered: list[tuple[Any, int]] = []
        self._gradients: list[tuple[Any, int]] = []

    def clear(self) -> None:
        """Forgets what was."""
        self._entered, self._gradients = [], []

    @property
    def entered(self) -> Moments:
        """When layers began."""
        return self._seconds(self._entered)

    @property
    def gradients(self) -> Moments:
        """When gradients existed, by layer."""
        return self._seconds(self._gradients)

    def _seconds(self, moments: list[tuple[Any, int]]) -> Moments:
        return [(self._clock.seconds(moment), index) for moment, index in moments]

    @contextlib.contextmanager
    def attached(self) -> Iterator[Hooks]:
        """While the block runs."""
        self.clear()
        handles: list[RemovableHandle] = []
        for index, layer in enumerate(self._layers):
            handles.append(layer.module.register_forward_pre_hook(self._enter(index)))
            for _, parameter in layer.tensors:
                handles.append(parameter.register_post_accumulate_grad_hook(self._appear(index)))
        try:
            yield self
        finally:
            for handle in handles:
                handle.remove()

    def _enter(self, index: int) -> Callable[[nn.Module, Any], None]:
        return lambda _module, _arguments: self._entered.append((self._clock.now(), index))

    def _appear(self, index: int) -> Callable[[torch.Tensor], None]:
        return lambda _parameter: self._gradients.append((self._clock.now(), index))


def forward_times(layers: int, began: float, ended: float, entered: Moments) -> list[float]:
    """The time from a layer's beginning to the next one's is the layer's; what comes before the first is the first's."""
    times = [0.0] * layers
    starts = [(began, entered[0][1]), *entered[1:]] if entered else [(began, 0)]
    for (start, index), (end, _) in zip(starts, [*starts[1:], (ended, 0)], strict=True):
        times[index] += end - start
    return times


def backward_times(layers: int, turned: float, ended: float, gradients: Moments) -> list[float]:
    """So that each layer's gradients exist at the sum of the times of the layers from the last one to it."""
    complete = [0.0] * layers
    for moment, index in gradients:
        complete[index] = max(complete[index], moment)
    times, reached = [0.0] * layers, turned
    for index in reversed(range(layers)):
        times[index] = max(0.0, complete[index] - reached)
        reached = max(reached, complete[index])
    times[0] += ended - reached  # what follows the last gradient
    return times


def without_overhead(times: list[float], events: list[int], whole: float) -> list[float]:
    """Takes the hooks' own time off, evenly by event, so that all together take what they do without hooks.

    ``events`` are the hooks that ran within each layer's time, ``whole`` the seconds of the pass without any.
    """
    overhead = max(0.0, sum(times) - whole) / max(1, sum(events))
    less = [max(0.0, seconds - overhead * count) for seconds, count in zip(times, events, strict=True)]
    rest = sum(less)
    return [seconds * whole / rest for seconds in less] if rest > 0 else less


def measure(iteration: Iteration, layers: list[ProfiledLayer], budget: float) -> int:
    """Fills in the layers' times; returns how many iterations with hooks there were.

    Iterations with hooks and without take turns, so that both see the same minutes.
    """
    plain_forward, plain_backward = [], []
    hooks = Hooks(layers, iteration.clock)
    for _ in range(WARM_UP):
        iteration.run()
    until = time.monotonic() + budget
    count = 0
    events: Moments = []
    gradients: Moments = []
    while count < LEAST or (count < MOST and time.monotonic() < until):
        began, turned, ended = iteration.run()
        plain_forward.append(turned - began)
        plain_backward.append(ended - turned)
        with hooks.attached():
            began, turned, ended = iteration.run()
        events, gradients = hooks.entered, hooks.gradients
        of_forward = forward_times(len(layers), began, turned, events)
        of_backward = backward_times(len(layers), turned, ended, gradients)
        for layer, forward, backward in zip(layers, of_forward, of_backward, strict=True):
            layer.forward.append(forward)
            layer.backward.append(backward)
        count += 1
    _settle(layers, events, gradients, statistics.median(plain_forward), statistics.median(plain_backward))
    return count


def _settle(
    layers: list[ProfiledLayer],
    entered: Moments,
    gradients: Moments,
    whole_forward: float,
    whole_backward: float,
) -> None:
    """Each layer's median, less what the hooks took."""
    of_forward = [sum(1 for _, index in entered if index == i) for i in range(len(layers))]
    of_backward = [sum(1 for _, index in gradients if index == i) for i in range(len(layers))]
    forward = without_overhead([statistics.median(layer.forward) for layer in layers], of_forward, whole_forward)
    backward = without_overhead([statistics.median(layer.backward) for layer in layers], of_backward, whole_backward)
    for layer, f, b in zip(layers, forward, backward, strict=True):
        layer.forward, layer.backward = [f], [b]


class StepProfiler:
    """Times the layers in the steps of a training that is under way, while it is attached.

    ``settle`` makes whatever updates wait for a layer's turn, so that no layer waits for gradients meanwhile.
    """

    def __init__(self, model: nn.Module, settle: Callable[[], None]) -> None:
        self._model, self._settle = model, settle
        self._layers = layers_of(model)
        self._hooks = Hooks(self._layers)
        self._began = self._turned = 0.0
        self._attached = contextlib.ExitStack()
        self._attached.callback(model.register_forward_pre_hook(self._begin).remove)
        self._attached.callback(model.register_forward_hook(self._turn).remove)
        self._attached.enter_context(self._hooks.attached())
        self._count = 0

    def made_all(self) -> None:
        """A backward pass has made all gradients."""
        ended = time.perf_counter()
        entered = self._hooks.entered
        if self._turned > self._began > 0 and entered:
            count = len(self._layers)
            of_forward = forward_times(count, self._began, self._turned, entered)
            of_backward = backward_times(count, self._turned, ended, self._hooks.gradients)
            for layer, forward, backward in zip(self._layers, of_forward, of_backward, strict=True):
                layer.forward.append(forward)
                layer.backward.append(backward)
            self._count += 1
        self._began = self._turned = 0.0

    def detach(self) -> None:
        """No hook is left."""
        self._attached.close()

    def profile(self) -> dict[str, Any] | None:
        """After :meth:`detach`; ``None`` where no step could be timed."""
        if self._count == 0:
            return None
        cost = _cost_of_hook(self._hooks)
        for layer in self._layers:
            layer.forward = [max(0.0, statistics.median(layer.forward) - cost)]
            layer.backward = [max(0.0, statistics.median(layer.backward) - cost * len(layer.tensors))]
        origin = {
            "how": "measured",
            "device": HostClock().device,
            "source": f"{_SOURCE}: {self._count} steps of a training",
            "note": "The optimizer is not timed (update_seconds is 0). The hooks' own time is taken off.",
        }
        return _document(self._model, 1, data_type(self._layers), origin, self._layers)

    def _begin(self, module: nn.Module, _arguments: Any) -> None:
        if module.training and torch.is_grad_enabled():
            self._settle()
            self._hooks.clear()
            self._began = time.perf_counter()

    def _turn(self, _module: nn.Module, _arguments: Any, _result: Any) -> None:
        self._turned = time.perf_counter()


def _cost_of_hook(hooks: Hooks) -> float:
    """Seconds that one call takes."""
    calls = 1000
    enter = hooks._enter(0)
    before = time.perf_counter()
    for _ in range(calls):
        enter(None, None)  # type: ignore[arg-type]
    cost = (time.perf_counter() - before) / calls
    hooks.clear()
    return cost


def profile(made: Any, batch: int, budget: float) -> dict[str, Any]:
    """The profile of what a callable has made; its times are 0 where parameters are on the meta device."""
    parts = made if isinstance(made, tuple) else (made,)
    model = parts[0]
    if not isinstance(model, nn.Module):
        raise CommtuneError(f"the callable returned {type(model).__name__}: a model and its inputs are needed")
    layers = layers_of(model)
    kind = data_type(layers)
    devices = {parameter.device.type for parameter in model.parameters()}
    if devices == {"meta"}:
        origin = {"how": "derived", "device": "", "source": _SOURCE, "note": "Sizes only: all times are 0."}
    elif devices in ({"cpu"}, {"cuda"}) and len(parts) in (2, 3):
        loss = parts[2] if len(parts) == 3 else None
        clock = GpuClock() if devices == {"cuda"} else HostClock()
        count = measure(Iteration(model.train(), parts[1], loss, clock), layers, budget)
        origin = _origin(count, clock.device)
    else:
        raise CommtuneError(
            f"parameters are on {', '.join(sorted(devices))}, and the callable returned {len(parts)} of (model, inputs, "
            "loss): times need a model on cpu or cuda and its inputs, sizes alone a model on meta"
        )
    return _document(model, batch, kind, origin, layers)


def _document(
    model: nn.Module, batch: int, kind: str, origin: dict[str, str], layers: list[ProfiledLayer]
) -> dict[str, Any]:
    return {
        "format": "commtune/profile/1",
        "model": type(model).__name__,
        "batch": batch,
        "data_type": kind,
        "origin": origin,
        "layers": [_layer(layer) for layer in layers],
    }


_SOURCE = f"commtune.torch.profile with PyTorch {torch.__version__}"


def _origin(count: int, device: str) -> dict[str, str]:
    return {
        "how": "measured",
        "device": device,
        "source": f"{_SOURCE}: {count} iterations with hooks and as many without",
        "note": "Layers are in the order of the model's definition; the optimizer is not timed (update_seconds is 0). A "
        "layer's forward time ends where the next one's begins, a backward time when its last gradient exists. The hooks' "
        "own time is taken off.",
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _layer(layer: ProfiledLayer) -> dict[str, Any]:
    return {
        "name": layer.name,
        "forward_seconds": layer.forward[0] if layer.forward else 0.0,
        "backward_seconds": layer.backward[0] if layer.backward else 0.0,
        "tensors": [
            {"name": name, "bytes": parameter.numel() * parameter.element_size()} for name, parameter in layer.tensors
        ],
    }


def load(named: str) -> Callable[[int], Any]:
    """The callable of ``FILE:callable``."""
    path, _, name = named.rpartition(":")
    if not path or not name:
        raise CommtuneError(f"{named}: FILE:callable is needed")
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    if not Path(path).is_file() or spec is None or spec.loader is None:
        raise CommtuneError(f"{path}: there is no such Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(Path(path).resolve().parent))  # what it imports beside itself
    spec.loader.exec_module(module)
    found = getattr(module, name, None)
    if not callable(found):
        raise CommtuneError(f"{path}: has nothing to call that is named {name}")
    make: Callable[[int], Any] = found
    return make


def main(arguments: list[str] | None = None) -> int:
    """Status 2: what was asked for or the model is at fault, and standard error says why."""
    parser = argparse.ArgumentParser(prog="python -m commtune.torch.profile", description="The profile of a model, as JSON")
    parser.add_argument("callable", metavar="FILE:callable", help="callable(batch) returns (model, inputs[, loss])")
    parser.add_argument("--batch", type=int, default=1, help="samples of one iteration (default: %(default)s)")
    parser.add_argument(
        "--device", choices=["cpu", "cuda", "meta"], default="cpu", help="where the model is made; meta: sizes only"
    )
    parser.add_argument("--threads", type=int, default=0, help="that compute (default: PyTorch's own number)")
    parser.add_argument("--budget", type=float, default=20, help="seconds of measuring (default: %(default)s)")
    asked = parser.parse_args(arguments)
    if asked.threads > 0:
        torch.set_num_threads(asked.threads)
    try:
        with contextlib.redirect_stdout(sys.stderr):  # whatever the user's file prints
            make = load(asked.callable)
            if asked.device == "cuda" and not torch.cuda.is_available():
                raise CommtuneError("--device cuda: this PyTorch can use no GPU here")
            with torch.device(asked.device):
                made = make(asked.batch)
            document = profile(made, asked.batch, asked.budget)
    except CommtuneError as error:
        print(f"{asked.callable}: {error}", file=sys.stderr)
        return 2
    json.dump(document, sys.stdout, indent=2)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
