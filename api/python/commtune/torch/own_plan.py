"""``plan="auto"`` where nobody has a plan: a training times its first steps, measures its network once, plans, and tries.

All ranks count the same backward passes, so each knows when all do something together; whether it is done, rank 0 says.
"""

from __future__ import annotations

import logging
import math
import platform
import statistics
import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import Any, Protocol

import torch.distributed as dist
from torch import nn

from commtune import measuring
from commtune.errors import CommtuneError, PlanRefused
from commtune.session import JoinOptions, Session
from commtune.torch.kept import KeptPlan
from commtune.torch.plans import PlanSource
from commtune.torch.profile import StepProfiler
from commtune.torch.rendezvous import Group, all_gather_in, first_rank

log = logging.getLogger("commtune")

WARM_UP = 2  #: passes before the first that is timed
TIMED = 5  #: passes that are timed
#: Seconds of training before the network is measured: a job that is over by then has nothing to gain.
PATIENCE = 10.0
TRIAL = 10  #: steps under each plan that are compared
#: A plan whose steps take more than this times what they took before is taken back.
NO_SLOWER = 1.02


class Trial:
    """Whether steps take longer than before: the medians of as many under the new plan and under the old."""

    def __init__(self, steps: int = TRIAL) -> None:
        self._before: deque[float] = deque(maxlen=steps)
        self._after: list[float] = []
        self._steps = steps
        self._first: int | None = None  # step under the new plan

    @property
    def is_ready(self) -> bool:
        """Enough is known of the old plan, and no new one is tried yet."""
        return self._first is None and len(self._before) == self._steps

    def begin(self, first: int) -> None:
        """The new plan is in force from that step on."""
        self._first = first

    def add(self, step: int, seconds: float) -> None:
        """Of a step that has ended. The first one under a plan does not count: its buffers are new."""
        if self._first is None or step < self._first:
            self._before.append(seconds)
        elif step > self._first and len(self._after) < self._steps:
            self._after.append(seconds)

    def result(self) -> dict[str, float] | None:
        """Seconds before and after, once both are known."""
        if len(self._after) < self._steps:
            return None
        return {"before_seconds": statistics.median(self._before), "after_seconds": statistics.median(self._after)}


class Trained(Protocol):
    """Who trains by the plan."""

    def flush(self) -> None:
        """Applies the updates that layers have not come to yet."""

    def first_plan(self) -> dict[str, Any]:
        """That "auto" begins with."""


@dataclass
class Part:
    """What an own plan needs of a training."""

    session: Session
    model: nn.Module
    group: Group
    waits: str  #: for what: "full", "layer", or "hook" for the buckets of DistributedDataParallel
    budget: float  #: seconds of the probe
    join: JoinOptions
    on_gpu: bool  #: what would be timed and measured is the processor's work and the host's memory: no plan for that


def begin(training: Trained, source: PlanSource, part: Part) -> OwnPlan | None:
    """Where rank 0 asks for "auto": what an earlier training has kept, or one that will be made. Collective."""
    known: list[Any] = [None] * part.session.ranks
    is_wanted = not source.has_answer and not part.on_gpu
    dist.all_gather_object(known, (is_wanted, part.budget, platform.node()), group=part.group)
    is_auto, part.budget, _ = known[0]
    if not is_auto or part.session.ranks == 1:
        return None
    kept = KeptPlan(part.session.layout_digest, [host for _, _, host in known], part.waits)
    found = [(kept.plan(), kept.is_known)]
    dist.broadcast_object_list(found, src=first_rank(part.group), group=part.group)
    source.start, is_known = found[0]
    if is_known or source.start is not None or part.budget <= 0:
        return None
    return OwnPlan(training, source, part, kept)


class OwnPlan:
    """One rank's part in it."""

    def __init__(self, training: Trained, source: PlanSource, part: Part, kept: KeptPlan) -> None:
        self._training, self._source, self._part, self._kept = training, source, part, kept
        self._passes = 0  # backward passes that have begun
        self._began = 0.0  # when the last one did
        self._first_timed = 0.0
        self._profiler: StepProfiler | None = None
        self._profile: dict[str, Any] | None = None
        self._probe_at = 0
        self._planning: threading.Thread | None = None
        self._planned: dict[str, Any] | None = None
        self._trial = Trial()
        self._is_over = False
        #: What has become of it, in a word: "timing", "waiting", "planning", "trying", "adopted", "taken back", "given up".
        self.state = "timing"

    def before_pass(self) -> None:
        """A backward pass begins to send, on all ranks alike."""
        now = time.perf_counter()
        if self._passes > 0:
            self._trial.add(self._passes, now - self._began)
        self._passes += 1
        if self._passes == WARM_UP:
            self._profiler = StepProfiler(self._part.model, self._training.flush)
            self._first_timed = now
        elif self._passes == WARM_UP + TIMED + 1:
            self._agree((now - self._first_timed) / (TIMED + 1))
        elif self._passes == self._probe_at:
            self._measure()
        self._try()
        self._began = time.perf_counter()

    def made_all(self) -> None:
        """The backward pass has made all gradients."""
        if self._profiler is not None:
            self._profiler.made_all()

    def close(self) -> None:
        """What is being planned is kept also when training ends first."""
        if self._profiler is not None:
            self._profiler.detach()
        if self._planning is not None:
            self._planning.join(30)

    # ---- by all ranks ----

    def _agree(self, step_seconds: float) -> None:
        """The slowest rank's times are the model's, since all wait for it."""
        assert self._profiler is not None  # made before the first pass that is timed
        self._profiler.detach()
        own = self._profiler.profile()
        self._profiler = None
        group, ranks = self._part.group, self._part.session.ranks
        probe_at = self._passes + max(1, math.ceil(PATIENCE / max(step_seconds, 1e-6)))
        known: list[Any] = [None] * ranks
        dist.all_gather_object(known, (seconds_of(own), probe_at), group=group)
        slowest = max(range(ranks), key=lambda rank: known[rank][0])
        if known[slowest][0] <= 0:  # such as a compiled model, whose layers cannot be told apart
            self._give_up("the layers of this model could not be timed")
            return
        found = [own]
        dist.broadcast_object_list(found, src=global_rank(group, slowest), group=group)
        self._profile, self._probe_at = found[0], known[0][1]
        self.state = "waiting"

    def _measure(self) -> None:
        """Between two steps, as rank 0 says."""
        wanted = [not self._is_over and not self._source.has_answer]
        dist.broadcast_object_list(wanted, src=first_rank(self._part.group), group=self._part.group)
        if not wanted[0]:
            self._is_over = True
            return
        session = self._part.session
        options = measuring.ProbeOptions(budget_seconds=self._part.budget)
        try:
            cluster = measuring.probe(
                session.rank,
                session.ranks,
                all_gather_in(self._part.group),
                options,
                profile=self._profile,
                join=self._part.join,
            )
        except CommtuneError as error:
            self._give_up(f"the network could not be measured: {error}")
            return
        if cluster is not None and self._profile is not None:
            self._kept.write("cluster", cluster)
            self._kept.write("profile", self._profile)
            self._planning = threading.Thread(
                target=self._plan, args=(self._profile, cluster), name="commtune-plan", daemon=True
            )
            self._planning.start()
        self.state = "planning"

    # ---- by rank 0 ----

    def _plan(self, profile: dict[str, Any], cluster: dict[str, Any]) -> None:
        """In a thread of its own: the training goes on by buckets."""
        try:
            plan, seconds = measuring.plan(
                profile, cluster, self._part.session.ranks, full_barrier=self._part.waits != "layer"
            )
        except CommtuneError as error:
            self._give_up(f"what was measured makes no plan: {error}")
            return
        self._kept.write("plan", plan)
        log.info("plan %s is predicted to take %.1f ms a step", plan.get("method", "?"), 1e3 * seconds)
        self._planned = plan

    def _try(self) -> None:
        if self._part.session.rank != 0 or self._is_over or self._source.has_answer:
            return
        if self.state == "planning" and self._planned is not None and self._trial.is_ready:
            try:
                self._trial.begin(self._part.session.announce(self._planned))
            except PlanRefused as error:
                self._give_up(f"the plan was refused: {error}")
                return
            self.state = "trying"
        elif self.state == "trying" and (result := self._trial.result()) is not None:
            slower = result["after_seconds"] > NO_SLOWER * result["before_seconds"]
            if slower:
                self._part.session.announce(self._training.first_plan())
            self.state = "taken back" if slower else "adopted"
            self._kept.write("result", {"state": self.state, **result})
            log.info("steps took %.1f ms and take %.1f: %s", *(1e3 * value for value in result.values()), self.state)
            self._is_over = True

    def _give_up(self, why: str) -> None:
        """The training goes on as it began."""
        self._is_over = True
        self.state = "given up"
        if self._part.session.rank == 0:
            log.info("no plan of its own: %s", why)


def seconds_of(profile: dict[str, Any] | None) -> float:
    """That all layers take together."""
    layers = profile["layers"] if profile is not None else []
    return float(sum(layer["forward_seconds"] + layer["backward_seconds"] for layer in layers))


def global_rank(group: Group, rank: int) -> int:
    """Of a rank of the group."""
    return dist.get_global_rank(group, rank) if group is not None else rank
