"""What was measured: rows, how they are kept in a folder, the CSV."""

import csv
import dataclasses
from typing import Optional

from case_archive import content_of, keep  # noqa: F401
from disturbance import Disturbance
from noise import difference

from .cases import Case


@dataclasses.dataclass(frozen=True)
class Row:
    """One method of one case; times in seconds."""

    method: str
    road: str
    predicted: float
    measured: float
    half_width: float  # of the median's 95 % interval
    iterations: int
    chosen: bool
    disturbance: Disturbance = Disturbance()  # while it ran
    low: Optional[float] = None  # of the tuner's 90 % range; None: it gave none
    high: Optional[float] = None

    @property
    def error(self):
        return self.predicted / self.measured - 1

    @property
    def in_range(self):
        """Whether the tuner's range holds what was measured; None: there is no range."""
        return None if self.low is None or self.high is None else self.low <= self.measured <= self.high


@dataclasses.dataclass(frozen=True)
class CaseResult:
    case: Case
    bound: float  # of the fitted costs, over the roads that the tuner priced
    rows: tuple
    disturbance: Disturbance = Disturbance()  # while the cluster was probed
    again: Optional[Row] = None  # the choice, measured a second time
    checked: bool = False  # whether the tuner itself compared its prediction with a run before it answered

    @property
    def chosen(self):
        """None when the choice was not measured."""
        return next((row for row in self.rows if row.chosen), None)

    @property
    def regret(self):
        return self.chosen.measured / min(row.measured for row in self.rows) - 1

    @property
    def over_bound(self):
        return self.chosen.measured / self.bound

    @property
    def repeat(self):
        """The A/A difference of the choice; None when it was not measured twice in time."""
        if not self.chosen or not self.again or not self.chosen.disturbance.punctual or not self.again.disturbance.punctual:
            return None
        return difference(self.chosen.measured, self.again.measured)


def row_of(content):
    return Row(**{**content, "disturbance": Disturbance(**content["disturbance"])})


def load(directory, case):
    """The result kept of this very case, or None."""
    content = content_of(directory, case)
    if content is None:
        return None
    rows, again = tuple(row_of(row) for row in content["rows"]), content.get("again")
    disturbance, checked = Disturbance(**content["disturbance"]), content.get("checked", False)
    return CaseResult(case, content["bound"], rows, disturbance, row_of(again) if again else None, checked)


def write_csv(path, results):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["model", "divisor", "compute_seconds", "hosts", "rate", "delay", "odd_host", "ranks_a_host",
                         "communication_over_compute", "method", "road", "predicted_seconds", "measured_seconds",
                         "half_width_seconds", "iterations", "error", "chosen", "bound_seconds", "stolen", "late",
                         "stolen_while_probed", "late_while_probed", "low_seconds", "high_seconds", "again_seconds"])
        for result in results:
            case, network = result.case, result.case.network
            again = result.again.measured if result.again else None
            for row in result.rows:
                writer.writerow([case.model, case.divisor, case.compute, network.hosts, network.rate, network.delay,
                                 network.odd_host, network.slots, f"{case.ratio:.3f}", row.method, row.road,
                                 row.predicted, row.measured, row.half_width, row.iterations, row.error,
                                 int(row.chosen), result.bound, row.disturbance.stolen, row.disturbance.late,
                                 result.disturbance.stolen, result.disturbance.late, row.low, row.high,
                                 again if row.chosen else None])
