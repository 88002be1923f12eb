"""A model whose gradients travel by a plan while the backward pass still makes others."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any, Literal

import torch
import torch.distributed as dist
from torch import nn
from torch.optim import Optimizer

from commtune.errors import BadCall, CommtuneError, PlanRefused
from commtune.session import BucketOptions, JoinOptions, MessageTimes, Statistics
from commtune.torch import own_plan
from commtune.torch.deferred import DeferredUpdates, groups_of
from commtune.torch.gradients import FlatGradients, trained_parameters
from commtune.torch.own_plan import Part
from commtune.torch.plans import PlanSource, Source
from commtune.torch.rendezvous import Group, join, share_tensors

Barrier = Literal["full", "layer"]

#: Seconds in which a rank that the process group has missed is looked for.
LOST_WITHIN = 5.0

#: Models whose gradients travel.
_WRAPPED: dict[nn.Module, Training] = {}


def wrap(
    model: nn.Module,
    optimizer: Optimizer,
    plan: Source = "auto",
    *,
    barrier: Barrier = "full",
    find_unused_parameters: bool = False,
    broadcast_buffers: bool = True,
    process_group: Group = None,
    timeout: float = 60.0,
    transport: str = "tcp",
    subnet: str | None = None,
    probe_budget: float = 10.0,
) -> Training:
    """Lets the gradients of a model travel by a plan, in place of DistributedDataParallel. Collective.

    The model itself is trained on, as before; parameters and buffers become rank 0's.

    Args:
        model: with all its parameters on one device, the processor or a GPU; those that require gradients now are those
            that travel.
        optimizer: of its parameters.
        plan: a file, JSON text or a dictionary ("commtune/plan/1"), a service's plan
            ("http://host:8080/v1/plans/7"), "buckets" for DistributedDataParallel's own buckets over a ring, or
            "auto": the plan that a service or the local database has for this model on this cluster, buckets until
            it answers. Where it does not, the training measures and plans by itself; see ``probe_budget``. Rank 0's
            counts. A service whose token rank 0 has hears how long fifty steps took by its plan.
        barrier: "full": gradients are final when ``backward()`` returns, as in DistributedDataParallel. "layer":
            each layer waits for its own gradients, and is updated, just before it is used again.
        find_unused_parameters: parameters that a pass does not use count as zeros, as in DistributedDataParallel.
            Otherwise such a pass is an error that names them.
        broadcast_buffers: buffers, such as the statistics of batch normalization, become rank 0's before each
            forward pass that trains.
        process_group: of torch.distributed's; None: all ranks.
        timeout: seconds that a rank waits for any one message.
        transport: "tcp" or "verbs".
        subnet: addresses to use, such as "10.0.0.0/24".
        probe_budget: seconds that "auto" may stop the training for, once and between two steps, to measure the network
            where nobody has a plan; 0: it never does, nor for a model on a GPU. The plan that it makes is taken back where
            steps get slower.

    Returns:
        The training's handle, for ``no_sync()``, ``adopt()``, ``statistics()`` and ``close()``.
    """
    if barrier not in ("full", "layer"):
        raise CommtuneError(f'barrier = "{barrier}": must be "full" or "layer"')
    options = {"transport": transport, "subnet": subnet}
    return Training(
        model,
        optimizer,
        PlanSource(plan, barrier="per-layer" if barrier == "layer" else "full"),
        barrier=barrier,
        find_unused_parameters=find_unused_parameters,
        broadcast_buffers=broadcast_buffers,
        group=process_group,
        timeout=timeout,
        options=options,
        probe_budget=probe_budget,
    )


class Training:
    """What :func:`wrap` returns. Methods are called by the thread that trains."""

    def __init__(
        self,
        model: nn.Module,
        optimizer: Optimizer,
        source: PlanSource,
        *,
        barrier: Barrier,
        find_unused_parameters: bool,
        broadcast_buffers: bool,
        group: Group,
        timeout: float,
        options: dict[str, Any],
        probe_budget: float,
    ) -> None:
        if model in _WRAPPED:
            raise CommtuneError("the model is wrapped already: close() its training first")
        if find_unused_parameters and barrier == "layer":
            raise CommtuneError('find_unused_parameters needs barrier="full": a layer cannot know who used it')
        parameters = trained_parameters(model)
        groups = groups_of(optimizer, parameters) if barrier == "layer" else []
        self._model, self._group, self._barrier = model, group, barrier
        self._find_unused = find_unused_parameters
        self._buffers = list(model.buffers()) if broadcast_buffers else []
        self._session = join(group, timeout, **options)
        share_tensors([parameter for _, parameter in model.named_parameters()] + list(model.buffers()), group)
        self._gradients = FlatGradients(parameters)
        self._gradients.lay_out(self._session)
        self._source = source
        joined = JoinOptions(timeout=timeout, **options)
        part = Part(self._session, model, group, barrier, probe_budget, joined, self._gradients.on_gpu)
        self._own = own_plan.begin(self, source, part)
        self._adopt_first(barrier)
        self._synchronizes = True
        self._open = False  # a backward pass has begun to send
        self._missing: set[int] = set()  # that it has not made yet
        self._over: CommtuneError | None = None
        self._handles: list[Any] = [
            parameter.register_post_accumulate_grad_hook(self._hook(index))
            for index, parameter in enumerate(self._gradients.parameters)
        ]
        if self._buffers:
            self._handles.append(model.register_forward_pre_hook(self._buffers_hook()))
        self._deferred = DeferredUpdates(self, model, optimizer, self._gradients, groups) if barrier == "layer" else None
        _WRAPPED[model] = self
        atexit.register(self._at_exit)

    # ---- for the user ----

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Backward passes inside add to the gradients of this rank alone; the first one after it sends the sum."""
        self._source.accumulates()
        before, self._synchronizes = self._synchronizes, False
        try:
            yield
        finally:
            self._synchronizes = before

    def adopt(self, plan: str | os.PathLike[str] | dict[str, Any] | None) -> None:
        """Another plan from the next backward pass on. Collective, between two steps.

        ``None`` on any rank but 0: whatever rank 0 says. Raises PlanRefused where it does not suit; the one before
        stays in force.
        """
        self.flush()
        self._source.settle()
        with self._carrying_out():
            self._session.adopt(plan)

    def announce(self, plan: str | os.PathLike[str] | dict[str, Any]) -> int:
        """On rank 0 alone, between two steps: all ranks change to the plan in the same step, a few from now.

        Returns which, counted from 1. The other ranks call nothing. Raises PlanRefused where it does not suit.
        """
        self._source.settle()
        with self._carrying_out():
            return self._session.announce(plan)

    @property
    def plan_digest(self) -> str:
        """Of the plan in force."""
        return self._session.plan_digest

    @property
    def layout_digest(self) -> str:
        """Of what travels: the names, sizes and types of the gradients."""
        return self._session.layout_digest

    def bucket_plan(self, options: BucketOptions | None = None) -> dict[str, Any]:
        """A plan for this model that needs no measurement."""
        return self._session.bucket_plan(options)

    def statistics(self) -> Statistics:
        """What was sent and waited for so far."""
        self.flush()
        return self._session.statistics()

    def message_times(self) -> list[MessageTimes]:
        """Of the last step."""
        self.flush()
        return self._session.message_times()

    def flush(self) -> None:
        """Waits for all gradients and applies the updates that layers have not come to yet (barrier="layer")."""
        if self._deferred is not None:
            self._deferred.flush()

    def close(self) -> None:
        """Ends the session on all ranks and gives the model back as it was. Collective."""
        if self._model not in _WRAPPED:
            return
        try:
            if self._own is not None:
                self._own.close()
            self._source.close()
            self.flush()
            if self._over is None:
                with self._carrying_out():
                    self._session.leave()
        finally:
            self._detach()

    def first_plan(self) -> dict[str, Any]:
        """That "auto" begins with."""
        return self.bucket_plan(BucketOptions(per_layer=self._barrier == "layer"))

    @property
    def own_plan_state(self) -> str:
        """What has become of the plan that "auto" makes by itself; empty where it makes none.

        "timing", "waiting", "planning", "trying", "adopted", "taken back" or "given up". What comes after "planning" is
        rank 0's to know.
        """
        return self._own.state if self._own is not None else ""

    def _adopt_first(self, barrier: Barrier) -> None:
        try:
            self._session.adopt(self._source.first(self._session, BucketOptions(per_layer=barrier == "layer")))
        except Exception as error:
            self._session.abort(str(error))
            self._session.close()
            raise

    # ---- the backward pass ----

    def _hook(self, index: int) -> Callable[[torch.Tensor], None]:
        def made(_parameter: torch.Tensor) -> None:
            if self._synchronizes:
                self._made(index)

        return made

    def _made(self, index: int) -> None:
        """Autograd has made a gradient: it travels."""
        if torch.is_grad_enabled():
            self._refuse("backward(create_graph=True) is not supported: gradients of gradients do not travel")
        if not self._open:
            self._begin()
        if index not in self._missing:
            self._refuse(
                f"{self._gradients.names[index]} got a second gradient in one backward pass, or the pass before this one "
                "ended early: checkpoint with use_reentrant=False; passes of one step belong into no_sync() but the last"
            )
        try:
            self._gradients.take(index)
            self._missing.discard(index)
            self._gradients.tell_ready(self._session, index)
        except CommtuneError as error:
            self._end(error)
            raise

    def _begin(self) -> None:
        if self._over is not None:
            raise self._over
        self.flush()
        with self._carrying_out():
            self._source.before_pass(self._session)
            if self._own is not None:
                with self._naming_who_is_lost():
                    self._own.before_pass()
            self._session.begin()
        self._open = True
        self._missing = set(range(len(self._gradients.parameters)))
        torch.autograd.Variable._execution_engine.queue_callback(self._ended)

    def _ended(self) -> None:
        """The backward pass has made all gradients that it makes."""
        if self._own is not None:
            self._own.made_all()
        unused = sorted(self._missing)
        if unused and not self._find_unused:
            named = ", ".join(self._gradients.names[index] for index in unused[:5]) + (", ..." if len(unused) > 5 else "")
            self._refuse(
                f"{len(unused)} parameters got no gradient in this pass: {named}; freeze them before wrap(), or pass "
                "find_unused_parameters=True; checkpoints need use_reentrant=False"
            )
        with self._carrying_out():
            self._zero(unused)
            self._open = False
            if self._deferred is not None:
                self._deferred.gradients_under_way()
            else:
                self._session.wait_all()
            if self._find_unused:
                self._hand_out(unused)

    def _zero(self, unused: list[int]) -> None:
        for index in unused:
            # What was there counts: passes inside no_sync() may have used it.
            if self._gradients.parameters[index].grad is None:
                self._gradients.views[index].zero_()
            else:
                self._gradients.take(index)
            self._gradients.tell_ready(self._session, index)
        self._missing.clear()

    def _hand_out(self, unused: list[int]) -> None:
        """Parameters that other ranks used get the mean; those that nobody used keep what they had."""
        used = torch.ones(len(self._gradients.parameters), dtype=torch.uint8, device=self._gradients.device)
        used[unused] = 0
        with self._naming_who_is_lost():
            dist.all_reduce(used, op=dist.ReduceOp.MAX, group=self._group)
        for index in unused:
            if used[index]:
                self._gradients.parameters[index].grad = self._gradients.views[index]

    # ---- ends ----

    @contextlib.contextmanager
    def _carrying_out(self) -> Iterator[None]:
        """What fails here ends the training on all ranks, with one message."""
        if self._over is not None:
            raise self._over
        try:
            yield
        except (PlanRefused, BadCall):
            raise
        except CommtuneError as error:
            self._end(error)
            raise

    @contextlib.contextmanager
    def _naming_who_is_lost(self) -> Iterator[None]:
        """The process group's collectives say that a connection has failed, and seldom whose."""
        try:
            yield
        except CommtuneError:
            raise
        except RuntimeError:
            self._session.look_for_lost(LOST_WITHIN)
            raise

    def _refuse(self, why: str) -> None:
        error = CommtuneError(why)
        self._end(error)
        raise error

    def _end(self, error: CommtuneError) -> None:
        self._over = error
        self._session.abort(str(error))

    def _buffers_hook(self) -> Callable[[nn.Module, Any], None]:
        # A copy of the model has the same hook, and no part in this.
        def before(module: nn.Module, _arguments: Any) -> None:
            if module is self._model and module.training and self._synchronizes and torch.is_grad_enabled():
                with self._carrying_out(), self._naming_who_is_lost():
                    share_tensors(self._buffers, self._group)

        return before

    def _at_exit(self) -> None:
        """Leaves together; a rank that ends by an exception tells the others which."""
        failure = getattr(sys, "last_value", None)
        if failure is not None and self._over is None:
            self._over = CommtuneError(f"{type(failure).__name__}: {failure}")
            self._session.abort(str(self._over))
        with contextlib.suppress(CommtuneError):
            self.close()

    def _detach(self) -> None:
        for handle in self._handles:
            handle.remove()
        if self._deferred is not None:
            self._deferred.detach()
        del _WRAPPED[self._model]
        self._session.close()
        atexit.unregister(self._at_exit)
