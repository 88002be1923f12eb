"""Gradients side by side in one stretch of memory, the last parameter first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import nn

from commtune.errors import CommtuneError
from commtune.session import Session, TensorType
from commtune.torch.rendezvous import type_of


def trained_parameters(model: nn.Module) -> list[tuple[str, nn.Parameter]]:
    """Those that get gradients, each once, in the order in which the model names them.

    Raises for what cannot travel, naming the parameter.
    """
    rows = [(name, parameter) for name, parameter in model.named_parameters() if parameter.requires_grad]
    if not rows:
        raise CommtuneError("the model has no parameter that requires a gradient: there is nothing to send")
    for name, parameter in rows:
        if isinstance(parameter, nn.parameter.UninitializedParameter):
            raise CommtuneError(f"parameter {name} is not initialized: run a forward pass of the lazy module first")
        if parameter.device.type not in ("cpu", "cuda"):
            raise CommtuneError(f"parameter {name} is on {parameter.device}: gradients travel from cpu and cuda")
        if type_of(parameter.dtype) is None:
            raise CommtuneError(f"parameter {name} is of {parameter.dtype}: float32, float16 and bfloat16 can travel")
    _expect_one_type(rows)
    devices = {parameter.device: name for name, parameter in reversed(rows)}
    if len(devices) > 1:
        listed = ", ".join(f"{name} on {device}" for device, name in devices.items())
        raise CommtuneError(f"parameters lie on several devices: {listed}; all gradients of a rank travel from one")
    return rows


def _expect_one_type(rows: Iterable[tuple[str, nn.Parameter]]) -> None:
    of_type: dict[torch.dtype, str] = {}
    for name, parameter in rows:
        of_type.setdefault(parameter.dtype, name)
    if len(of_type) > 1:
        listed = ", ".join(f"{name} is of {dtype}" for dtype, name in of_type.items())
        raise CommtuneError(
            f"parameters of several types cannot travel in one session: {listed}; use one type and torch.autocast, "
            "or DistributedDataParallel"
        )


class FlatGradients:
    """Where gradients lie: one view a parameter, in its shape."""

    def __init__(self, parameters: list[tuple[str, nn.Parameter]]) -> None:
        self.names = [name for name, _ in parameters]
        self.parameters = [parameter for _, parameter in parameters]
        like = self.parameters[0]
        self.device = like.device
        numbers = sum(parameter.numel() for parameter in self.parameters)
        self.flat = torch.zeros(numbers, dtype=like.dtype, device=self.device)
        self.views: list[torch.Tensor] = [self.flat] * len(self.parameters)
        self._places = [0] * len(self.parameters)
        place = 0
        for index in reversed(range(len(self.parameters))):
            parameter = self.parameters[index]
            self._places[index] = place
            self.views[index] = _view(self.flat, place, parameter)
            place += parameter.numel()

    def beside(self, buffer: torch.Tensor, indices: Sequence[int]) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Pairs of stretches with the same elements, of these gradients and of a flat buffer that has them in this order.

        As few as there can be: gradients that lie side by side in both are one.
        """
        pairs = []
        begin = end = place = 0  # of the stretch in the buffer; where it lies here
        for index in indices:
            if self._places[index] != place + (end - begin):
                pairs.append((place, begin, end))
                begin, place = end, self._places[index]
            end += self.parameters[index].numel()
        pairs.append((place, begin, end))
        return [(self.flat[at : at + (e - b)], buffer[b:e]) for at, b, e in pairs if e > b]

    def lay_out(self, session: Session) -> None:
        """Tells the session. Collective."""
        kind: TensorType | None = type_of(self.flat.dtype)
        assert kind is not None  # trained_parameters() has seen to it
        tensors = [
            (name, parameter.numel() * parameter.element_size())
            for name, parameter in zip(self.names, self.parameters, strict=True)
        ]
        memory = [view.data_ptr() for view in self.views]
        if not self.on_gpu:
            session.layout(kind, tensors, memory)
            return
        with torch.cuda.device(self.device):  # whose number the layout leaves behind as the current one
            torch.cuda.synchronize()  # the zeros are there for every stream
            session.layout(kind, tensors, memory, gpu=self.device.index)

    @property
    def on_gpu(self) -> bool:
        """Whether a stream writes them, behind the host's back."""
        return self.device.type == "cuda"

    def tell_ready(self, session: Session, index: int) -> None:
        """A gradient lies in its view, or will when the current stream has come there."""
        if self.on_gpu:
            session.ready_after(index, torch.cuda.current_stream(self.device).cuda_stream)
        else:
            session.ready(index)

    def take(self, index: int) -> None:
        """Makes the view this parameter's gradient; what autograd put elsewhere is copied."""
        parameter, view = self.parameters[index], self.views[index]
        gradient = parameter.grad
        if gradient is view:
            return
        if gradient is None or gradient.layout != torch.strided:
            raise CommtuneError(
                f"the gradient of {self.names[index]} is sparse: only dense ones travel; make the module with sparse=False"
            )
        view.copy_(gradient)
        parameter.grad = view


def _view(flat: torch.Tensor, place: int, parameter: nn.Parameter) -> torch.Tensor:
    """In the parameter's own order of elements, where that leaves no gaps."""
    shape, strides = parameter.shape, parameter.stride()
    if parameter.dim() == 4 and parameter.is_contiguous(memory_format=torch.channels_last):
        return flat.as_strided(shape, strides, place)
    return flat[place : place + parameter.numel()].view(shape)
