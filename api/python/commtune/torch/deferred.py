"""barrier="layer": each layer waits for its own gradients, and is updated, just before it is used again."""

from __future__ import annotations

import enum
import types
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.optim import Optimizer
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from commtune.errors import CommtuneError
from commtune.torch.gradients import FlatGradients

if TYPE_CHECKING:
    from commtune.torch.training import Training


#: What one call of the optimizer updates at most, beside what it must.
TOGETHER_BYTES = 512 << 10


class UnderWay(torch.Tensor):
    """In the place of a gradient that is under way: whatever would read it raises."""

    @classmethod
    def __torch_function__(cls, func: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Raises for every operation."""
        raise CommtuneError(
            'gradients are still under way under barrier="layer"; clipping of the global norm, '
            'GradScaler and what else reads gradients between backward() and step() need barrier="full"'
        )


class State(enum.Enum):
    """Of one parameter."""

    IDLE = 0  #: its gradient is the user's
    UNDER_WAY = 1  #: its gradient travels, step() was not called yet
    DUE = 2  #: step() was called, the update is not made yet


class DeferredUpdates:
    """Owns ``optimizer.step`` and ``optimizer.zero_grad`` while it lives."""

    def __init__(
        self, training: Training, model: nn.Module, optimizer: Optimizer, gradients: FlatGradients, groups: list[int]
    ) -> None:
        self._training, self._model, self._optimizer, self._gradients = training, model, optimizer, gradients
        self._number = {id(parameter): index for index, parameter in enumerate(gradients.parameters)}
        self._states = [State.IDLE] * len(gradients.parameters)
        self._due: set[int] = set()
        self._bytes = [view.nbytes for view in gradients.views]
        self._group_of = groups
        self._settings: list[dict[str, Any]] = []  # of each group, when step() was called
        self._settled_any = False  # since step() was called
        self._read_early: set[int] = set()  # before their module's turn, as the first pass has shown
        self._watch: _ReadsOfParameters | None = _ReadsOfParameters(self)
        self._undo: list[Callable[[], None]] = []
        self._step, self._zero_grad = optimizer.step, optimizer.zero_grad
        # Schedulers wrap what step() is a method of.
        self._replace("step", types.MethodType(lambda _, closure=None: self._note_step(closure), optimizer))
        self._replace("zero_grad", self._zero)
        self._hook_modules()
        self._flush_where_all_is_read()

    def gradients_under_way(self) -> None:
        """The backward pass has ended; all its gradients travel."""
        for index, parameter in enumerate(self._gradients.parameters):
            self._states[index] = State.UNDER_WAY
            parameter.grad = self._gradients.views[index].as_subclass(UnderWay)

    def flush(self) -> None:
        """Waits for all gradients, and applies all updates that are due."""
        self.settle(range(len(self._states)))

    def settle(self, indices: Iterable[int]) -> None:
        """Waits for these gradients, and applies their updates where they are due.

        With them, and while it has to wait, it applies those of the next layers that are back: a call of the optimizer costs
        as much as the update of ``TOGETHER_BYTES``. But nothing beside them where the first layer of a pass has to wait:
        what travels last needs the processor then, and all else can be updated while the device computes that layer.
        """
        if self._training._open:  # a recomputed layer, inside the backward pass: its update was made before
            return
        late = {index for index in indices if self._states[index] is not State.IDLE}
        if not late:
            return
        session = self._training._session
        with self._training._carrying_out():
            back = session.are_back()
            keeps_quiet = not self._settled_any and not all(back[index] for index in late)
            self._settled_any = True
            while not keeps_quiet and not all(back[index] for index in late) and (others := self._next(back)):
                self._apply(others)
                back = session.are_back()
            waits = not all(back[index] for index in late)
            for index in late:
                session.wait(index)
            self._apply(late if keeps_quiet else late | self._next(session.are_back() if waits else back))

    def _next(self, back: bytes) -> set[int]:
        """The next in the model's order that are due and back, for one call of the optimizer.

        None as long as it is not known which parameters are read early.
        """
        found: set[int] = set()
        if self._watch is not None:
            return found
        size = 0
        for index in sorted(self._due):
            if size >= TOGETHER_BYTES:
                break
            if back[index]:
                found.add(index)
                size += self._bytes[index]
        return found

    def _apply(self, back: set[int]) -> None:
        """The updates of these, where they are due."""
        late = sorted(back)
        due = [index for index in late if self._states[index] is State.DUE]
        self._due.difference_update(due)
        for index in late:
            self._states[index] = State.IDLE
        kept = {index for index in late if self._gradients.parameters[index].grad is not None}
        for index in {*kept, *due}:
            self._gradients.parameters[index].grad = self._gradients.views[index]
        if due:
            self._update(due)
        for index in set(due) - kept:  # zero_grad() was called after step()
            self._gradients.parameters[index].grad = None

    def detach(self) -> None:
        """Gives the optimizer its own methods back."""
        for undo in reversed(self._undo):
            undo()
        for index, parameter in enumerate(self._gradients.parameters):
            if self._states[index] is not State.IDLE:
                parameter.grad = None

    # ---- the optimizer ----

    def _note_step(self, closure: Any = None) -> None:
        """In place of step(): what a scheduler changes from now on is for the next one."""
        if closure is not None:
            raise CommtuneError('optimizer.step(closure) needs barrier="full"')
        if State.UNDER_WAY not in self._states:
            self._step()
            return
        self._settings = [
            {key: _copied(value) for key, value in group.items() if key != "params"}
            for group in self._optimizer.param_groups
        ]
        self._states = [State.DUE if state is State.UNDER_WAY else state for state in self._states]
        self._due = {index for index, state in enumerate(self._states) if state is State.DUE}
        self._settled_any = False

    def _update(self, due: list[int]) -> None:
        """The optimizer's own step, with the groups as they were, for these parameters alone."""
        groups = [{**settings, "params": []} for settings in self._settings]
        for index in due:
            groups[self._group_of[index]]["params"].append(self._gradients.parameters[index])
        whole = self._optimizer.param_groups
        self._optimizer.param_groups = [group for group in groups if group["params"]]
        try:
            self._step()
        finally:
            self._optimizer.param_groups = whole

    def _zero(self, set_to_none: bool = True) -> None:
        """In place of zero_grad(): a gradient that is under way is not touched, it is let go of."""
        self.settle([index for index, state in enumerate(self._states) if state is State.UNDER_WAY])
        for index, state in enumerate(self._states):
            if state is State.DUE:
                self._gradients.parameters[index].grad = None
        self._zero_grad(set_to_none)

    # ---- the model ----

    def _hook_modules(self) -> None:
        self._keep(self._model.register_forward_pre_hook(self._begin_hook(), prepend=True))
        self._keep(self._model.register_forward_hook(self._end_hook(), always_call=True))
        for module in self._model.modules():
            own = [self._number[id(p)] for p in module._parameters.values() if p is not None and id(p) in self._number]
            if own:
                self._keep(module.register_forward_pre_hook(self._settle_hook(own)))

    def _settle_hook(self, own: list[int]) -> Callable[[nn.Module, Any], None]:
        def before(_module: nn.Module, _arguments: Any) -> None:
            if not torch.compiler.is_compiling():
                self.settle(own)

        return before

    def _begin_hook(self) -> Callable[[nn.Module, Any], None]:
        flush = torch.compiler.disable(self.flush)

        def before(module: nn.Module, _arguments: Any) -> None:
            if torch.compiler.is_compiling():  # its layers have no turns of their own
                flush()
            elif module is self._model:
                self._begin_pass()

        return before

    def _end_hook(self) -> Callable[[nn.Module, Any, Any], None]:
        def after(_module: nn.Module, _arguments: Any, _result: Any) -> None:
            if not torch.compiler.is_compiling():
                self._end_pass()

        return after

    def _begin_pass(self) -> None:
        self.settle(self._read_early)
        if self._watch is not None and not self._watch.watches and State.DUE in self._states:
            self._watch.__enter__()

    def _end_pass(self) -> None:
        if self._watch is not None and self._watch.watches:
            self._watch.__exit__(None, None, None)  # type: ignore[no-untyped-call]
            self._watch = None

    def read(self, parameter: torch.Tensor) -> None:
        """The first pass reads a parameter: if it is not its module's turn yet, it is waited for at once."""
        index = self._number.get(id(parameter))
        if index is not None and self._states[index] is State.DUE:
            self._read_early.add(index)
            self.settle([index])

    def _flush_where_all_is_read(self) -> None:
        """Saving, loading, evaluating and listing parameters see what step() has promised."""

        def flush(*_arguments: Any) -> None:
            self.flush()

        for owner in (self._model, self._optimizer):
            self._keep(owner.register_state_dict_pre_hook(flush))
            self._keep(owner.register_load_state_dict_pre_hook(flush))
        before = type(self._model)
        self._model.__class__ = _updated_first(before)
        _UPDATES[self._model] = self

        def restore() -> None:
            del _UPDATES[self._model]
            self._model.__class__ = before

        self._undo.append(restore)

    def apply_due(self) -> None:
        """Makes the updates that step() has promised; gradients that nobody steps by stay under way."""
        self.settle([index for index, state in enumerate(self._states) if state is State.DUE])

    def _keep(self, handle: Any) -> None:
        self._undo.append(handle.remove)

    def _replace(self, name: str, method: Callable[..., Any]) -> None:
        """Of the optimizer, until detach()."""
        own = self._optimizer.__dict__
        before = own.get(name)

        def restore() -> None:
            own.pop(name, None)
            if before is not None:
                own[name] = before

        own[name] = method
        self._undo.append(restore)


#: Whose updates are deferred. A copy of such a model is not among them.
_UPDATES: dict[nn.Module, DeferredUpdates] = {}


def _updated_first(kind: type[nn.Module]) -> type[nn.Module]:
    """The same kind of model, whose parameters are up to date when they are listed, and when it changes its mode."""

    def apply_due(model: nn.Module) -> None:
        if model in _UPDATES:
            _UPDATES[model].apply_due()

    def train(self: nn.Module, mode: bool = True) -> nn.Module:
        apply_due(self)
        return kind.train(self, mode)

    def named_parameters(self: nn.Module, *arguments: Any, **named: Any) -> Any:
        apply_due(self)
        return kind.named_parameters(self, *arguments, **named)

    names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
    return type(kind.__name__, (kind,), {**names, "train": train, "named_parameters": named_parameters})


def groups_of(optimizer: Optimizer, parameters: list[tuple[str, nn.Parameter]]) -> list[int]:
    """The number of each parameter's group. Raises for what cannot be updated layer by layer."""
    if isinstance(optimizer, torch.optim.LBFGS):
        raise CommtuneError('LBFGS updates all parameters together: use barrier="full"')
    found = {id(p): number for number, group in enumerate(optimizer.param_groups) for p in group["params"]}
    for name, parameter in parameters:
        if id(parameter) not in found:
            raise CommtuneError(f'{name} is not in the optimizer: barrier="layer" updates what it waits for')
    return [found[id(parameter)] for _, parameter in parameters]


class _ReadsOfParameters(TorchFunctionMode):
    """Tells of parameters that operations are given."""

    def __init__(self, updates: DeferredUpdates) -> None:
        super().__init__()
        self._updates = updates
        self.watches = False

    def __enter__(self) -> _ReadsOfParameters:
        self.watches = True
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __torch_function__(self, func: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Looks at what goes in, then does it."""
        for leaf in tree_leaves((args, kwargs)):
            if isinstance(leaf, nn.Parameter):
                self._updates.read(leaf)
        return func(*args, **(kwargs or {}))


def _copied(value: Any) -> Any:
    return value.clone() if isinstance(value, torch.Tensor) else value
