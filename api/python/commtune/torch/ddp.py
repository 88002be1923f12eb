"""The executor behind DistributedDataParallel's communication hook, for those who keep it."""

from __future__ import annotations

import os
import queue
import threading
from typing import Any

import torch
from torch.nn.parallel import DistributedDataParallel

from commtune.errors import CommtuneError
from commtune.session import BucketOptions, JoinOptions, Statistics
from commtune.torch import own_plan
from commtune.torch.gradients import FlatGradients, trained_parameters
from commtune.torch.own_plan import Part
from commtune.torch.plans import PlanSource, Source
from commtune.torch.rendezvous import join


def ddp_hook(
    ddp_model: DistributedDataParallel, plan: Source = "auto", *, timeout: float = 60.0, probe_budget: float = 10.0
) -> DdpCommunication:
    """Lets the gradients of a DistributedDataParallel model travel by a plan. Collective, before the first pass.

    DistributedDataParallel goes on to decide when gradients are handed over, bucket by bucket; the plan decides how
    they travel from there. What lies in a bucket is copied out of it and back. Arguments are those of
    :func:`commtune.torch.wrap`.
    """
    # Passes under no_sync() reach no hook, so times between the others are no steps'.
    communication = DdpCommunication(ddp_model, PlanSource(plan, is_timed=False), timeout, probe_budget)
    # It looks at names and annotations of what it is given.
    ddp_model.register_comm_hook(communication, lambda state, bucket: state.on_bucket(bucket))
    return communication


class DdpCommunication:
    """What :func:`ddp_hook` returns."""

    def __init__(self, ddp_model: DistributedDataParallel, source: PlanSource, timeout: float, probe_budget: float) -> None:
        self._group, self._source = ddp_model.process_group, source
        self._gradients = FlatGradients(trained_parameters(ddp_model.module))
        self._number = {id(parameter): index for index, parameter in enumerate(self._gradients.parameters)}
        # DistributedDataParallel waits for all buckets; each can be copied back before.
        self._session = join(self._group, timeout, own_barrier=True)
        self._gradients.lay_out(self._session)
        joined = JoinOptions(timeout=timeout)
        part = Part(self._session, ddp_model.module, self._group, "hook", probe_budget, joined, self._gradients.on_gpu)
        self._own = own_plan.begin(self, source, part)
        self._session.adopt(source.first(self._session, BucketOptions(per_layer=True)))
        self._left = 0  # parameters that this pass has not handed over yet
        self._over: CommtuneError | None = None
        self._waiting: queue.SimpleQueue[_Bucket | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._hand_back, name="commtune-ddp", daemon=True)
        self._thread.start()

    def on_bucket(self, bucket: Any) -> torch.futures.Future[torch.Tensor]:
        """The hook: a bucket's (torch.distributed.GradBucket) gradients are there."""
        devices: list[int | str | torch.device] = [self._gradients.device] if self._gradients.on_gpu else []
        future: torch.futures.Future[torch.Tensor] = torch.futures.Future(devices=devices)
        # Buckets are built anew after the first pass: parameters say what is in them, not numbers.
        indices = [self._number[id(parameter)] for parameter in bucket.parameters()]
        try:
            if self._left == 0:
                self._begin()
            stretches = self._gradients.beside(bucket.buffer(), indices)
            for ours, theirs in stretches:
                ours.copy_(theirs)
            for index in indices:
                self._gradients.tell_ready(self._session, index)
            self._left -= len(indices)
            if self._left == 0 and self._own is not None:
                self._own.made_all()
        except CommtuneError as error:
            self._end(error)
            raise
        self._waiting.put(_Bucket(bucket.buffer(), stretches, indices, future))
        return future

    def adopt(self, plan: str | os.PathLike[str] | dict[str, Any] | None) -> None:
        """Another plan from the next pass on. Collective, between two passes; see ``Training.adopt``."""
        self._source.settle()
        self._session.adopt(plan)

    def announce(self, plan: str | os.PathLike[str] | dict[str, Any]) -> int:
        """On rank 0 alone, between two passes: all ranks change to the plan in the same pass; see ``Training.announce``."""
        self._source.settle()
        return self._session.announce(plan)

    @property
    def plan_digest(self) -> str:
        """Of the plan in force."""
        return self._session.plan_digest

    @property
    def own_plan_state(self) -> str:
        """See ``Training.own_plan_state``."""
        return self._own.state if self._own is not None else ""

    def first_plan(self) -> dict[str, Any]:
        """That "auto" begins with."""
        return self.bucket_plan(BucketOptions(per_layer=True))

    def flush(self) -> None:
        """Nothing is due after a pass: DistributedDataParallel has waited."""

    def bucket_plan(self, options: BucketOptions | None = None) -> dict[str, Any]:
        """A plan for this model that needs no measurement."""
        return self._session.bucket_plan(options)

    def statistics(self) -> Statistics:
        """What was sent and waited for so far."""
        return self._session.statistics()

    def close(self) -> None:
        """Ends the session on all ranks. Collective; no pass may follow."""
        if self._own is not None:
            self._own.close()
        self._waiting.put(None)
        self._thread.join()
        if self._over is None:
            self._session.leave()
        self._session.close()

    def _begin(self) -> None:
        if self._over is not None:
            raise self._over
        self._source.before_pass(self._session)
        if self._own is not None:
            self._own.before_pass()
        self._session.begin()
        self._left = len(self._gradients.parameters)

    def _hand_back(self) -> None:
        """On the thread of its own: buckets in the order in which they came."""
        while (bucket := self._waiting.get()) is not None:
            try:
                for index in bucket.indices:
                    if not self._session.is_back(index):  # waiting lets other threads in, which is dear
                        self._session.wait(index)
                for ours, theirs in bucket.stretches:
                    theirs.copy_(ours)
                bucket.future.set_result(bucket.buffer)
            except CommtuneError as error:
                self._end(error)
                bucket.future.set_exception(error)  # type: ignore[arg-type]

    def _end(self, error: CommtuneError) -> None:
        if self._over is None:
            self._over = error


class _Bucket:
    """On its way."""

    def __init__(
        self,
        buffer: torch.Tensor,
        stretches: list[tuple[torch.Tensor, torch.Tensor]],
        indices: list[int],
        future: torch.futures.Future[torch.Tensor],
    ) -> None:
        self.buffer, self.stretches, self.indices, self.future = buffer, stretches, indices, future
