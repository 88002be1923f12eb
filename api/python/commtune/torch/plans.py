"""Where a plan comes from: the user, a service, the local database, or none of them."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import shutil
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Literal

from commtune.errors import CommtuneError, PlanRefused
from commtune.session import BucketOptions, Session, plan_text
from commtune.torch.service import ask
from commtune.torch.step_report import ServicePlan, StepReport

Source = str | os.PathLike[str] | dict[str, Any]
#: As a request for a plan names what the program waits for.
PlanBarrier = Literal["full", "per-layer"]

#: Seconds that "auto" asks for; steps meanwhile go by buckets.
PATIENCE = 1.0


class PlanSource:
    """The plan that a user asked for. Rank 0's counts; the others hear of it."""

    def __init__(self, asked: Source, *, barrier: PlanBarrier = "full", is_timed: bool = True) -> None:
        """``barrier``: that "auto" asks a plan for. ``is_timed``: a service hears how long steps take by its plan."""
        self._asked, self._barrier, self._is_timed = asked, barrier, is_timed
        self._question: _Question | None = None
        self._settled = asked != "auto"
        #: In the place of buckets, where "auto" begins.
        self.start: dict[str, Any] | None = None
        #: Whoever was asked, or the user, has named a plan.
        self.has_answer = asked != "auto"
        self._passes = 0
        self._report: StepReport | None = None

    def first(self, session: Session, buckets: BucketOptions) -> dict[str, Any] | str | None:
        """What this rank adopts before the first step."""
        if session.rank != 0:
            return None
        if self._asked == "auto":
            self._question = _Question(session.layout_digest, session.ranks, self._barrier)
            return self.start or session.bucket_plan(buckets)
        if self._asked == "buckets":
            return session.bucket_plan(buckets)
        if isinstance(self._asked, str) and self._asked.startswith(("http://", "https://")):
            plan: dict[str, Any] = ask(self._asked, None, 30.0)["plan"]
            self._time(ServicePlan.at(self._asked), 1)
            return plan
        return plan_text(self._asked)

    def before_pass(self, session: Session) -> None:
        """A backward pass begins to send.

        On rank 0, if "auto" was answered meanwhile: all ranks adopt the answer a few steps later.
        """
        self._passes += 1
        if self._report is not None:
            self._report.begin(self._passes)
        if self._settled or self._question is None:
            return
        self._settled, plan = self._question.answer()
        if plan is not None:
            with contextlib.suppress(PlanRefused):  # the one in force goes on
                first = session.announce(plan)
                self.has_answer = True
                self._time(self._question.origin, first)

    def settle(self) -> None:
        """Somebody chose a plan by hand: no answer overrules it."""
        self._settled = self.has_answer = True
        if self._report is not None:
            self._report.finish()

    def accumulates(self) -> None:
        """Passes without sending are between those that send, and no prediction has them."""
        self._is_timed = False
        if self._report is not None:
            self._report.drop()

    def close(self) -> None:
        """The training ends."""
        if self._report is not None:
            self._report.close()

    def _time(self, origin: ServicePlan | None, first: int) -> None:
        if self._is_timed and origin is not None:
            self._report = StepReport(origin, first)


class _Question:
    """Asked in a thread of its own, so that no rank waits for the answer."""

    def __init__(self, layout: str, workers: int, barrier: PlanBarrier) -> None:
        self._layout, self._workers, self._barrier = layout, workers, barrier
        self._plan: dict[str, Any] | None = None
        #: Of the plan, where a service has it.
        self.origin: ServicePlan | None = None
        self._until = time.monotonic() + PATIENCE
        self._thread = threading.Thread(target=self._ask, name="commtune-auto", daemon=True)
        self._thread.start()

    def answer(self) -> tuple[bool, dict[str, Any] | None]:
        """Whether nothing more will come, and the plan if there is one."""
        ended = not self._thread.is_alive() or time.monotonic() > self._until
        return ended, self._plan if ended else None

    def _ask(self) -> None:
        try:
            if url := os.environ.get("COMMTUNE_URL"):
                self._plan = self._of_service(url.rstrip("/"))
            elif shutil.which("tune") and os.environ.get("COMMTUNE_CLUSTER"):
                self._plan = self._of_database()
        except (
            OSError,
            ValueError,
            KeyError,
            TypeError,
            CommtuneError,
            subprocess.SubprocessError,
            http.client.HTTPException,
        ):
            self._plan = None  # whoever is down: the training goes on by buckets

    def _of_service(self, url: str) -> dict[str, Any]:
        question = {
            "model": self._layout,
            "cluster": os.environ.get("COMMTUNE_CLUSTER", ""),
            "workers": self._workers,
            "barrier": self._barrier,
        }
        self.origin = ServicePlan(url, int(ask(f"{url}/v1/plans", question, PATIENCE)["id"]))
        plan: dict[str, Any] = ask(self.origin.url, None, PATIENCE)["plan"]
        return plan

    def _of_database(self) -> dict[str, Any]:
        with tempfile.TemporaryDirectory(prefix="commtune-auto-") as folder:
            out = Path(folder) / "plan.json"
            command = ["tune", self._layout, "--workers", str(self._workers), "--barrier", self._barrier, "--out", str(out)]
            subprocess.run(command, check=True, timeout=PATIENCE, capture_output=True)
            plan: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
        return plan
