"""How long steps take by a service's plan, for that service: it then knows how good its prediction was."""

from __future__ import annotations

import http.client
import logging
import re
import threading
import time
from dataclasses import dataclass
from typing import Any

import torch

from commtune.errors import CommtuneError
from commtune.torch.service import ask, token

log = logging.getLogger("commtune")

STEPS = 50  #: that are handed back, once
FEWEST = 5  #: of a training that ends before
PATIENCE = 5.0  #: seconds that a service may take
#: Seconds of iterations that a service takes.
_LONGEST_STEP = 1e6


@dataclass(frozen=True)
class ServicePlan:
    """A plan that a service has stored."""

    service: str  #: "http://host:8080"
    number: int

    @classmethod
    def at(cls, url: str) -> ServicePlan | None:
        """Of an address as ``url`` has it; ``None`` of others."""
        found = re.fullmatch(r"(.+)/v1/plans/(\d+)", url)
        return cls(found[1], int(found[2])) if found else None

    @property
    def url(self) -> str:
        """Where the service has it."""
        return f"{self.service}/v1/plans/{self.number}"


class StepReport:
    """Rank 0's. Says something only where it has a token: a run that anybody may have made up judges no prediction."""

    def __init__(self, plan: ServicePlan, first: int) -> None:
        """``first``: the step from which on the plan is in force."""
        self._plan, self._first = plan, first
        self._began = 0.0  # when the last step did
        self._seconds: list[float] = []
        self._is_over = False
        self._sender: threading.Thread | None = None

    def begin(self, step: int) -> None:
        """That step's backward pass begins to send, so the one before has ended."""
        if self._is_over:
            return
        now = time.perf_counter()
        # The first step by a plan does not count: its buffers are new.
        if step > self._first + 1:
            self._seconds.append(min(now - self._began, _LONGEST_STEP))
        self._began = now
        if len(self._seconds) == STEPS:
            self.finish()

    def drop(self) -> None:
        """Steps are not what the service predicts, so nothing is said of them."""
        self._is_over = True

    def finish(self) -> None:
        """No more steps go by this plan. Waits for nobody."""
        if not self._is_over and len(self._seconds) >= FEWEST:
            self._send()
        self._is_over = True

    def close(self) -> None:
        """Ends it; waits for what is on its way."""
        self.finish()
        if self._sender is not None:
            self._sender.join(PATIENCE)

    def _send(self) -> None:
        run = {
            "plan": self._plan.number,
            "iteration_seconds": self._seconds,
            "workload": "training",
            "versions": {"torch": str(torch.__version__)},
        }
        self._sender = threading.Thread(target=self._post, args=(run,), name="commtune-report", daemon=True)
        self._sender.start()

    def _post(self, run: dict[str, Any]) -> None:
        try:
            if token() is not None:
                ask(f"{self._plan.service}/v1/runs", run, PATIENCE)
        except (OSError, ValueError, CommtuneError, http.client.HTTPException) as error:
            log.info("steps by plan %d were not handed back: %s", self._plan.number, error)
