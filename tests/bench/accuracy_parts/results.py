"""What was measured: rows, how they are kept in a folder, the CSV."""

import csv
import dataclasses

from case_archive import content_of, keep  # noqa: F401
from disturbance import Disturbance

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

    @property
    def error(self):
        return self.predicted / self.measured - 1


@dataclasses.dataclass(frozen=True)
class CaseResult:
    case: Case
    bound: float  # of the fitted costs, over the roads that the tuner priced
    rows: tuple
    disturbance: Disturbance = Disturbance()  # while the cluster was probed

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


def load(directory, case):
    """The result kept of this very case, or None."""
    content = content_of(directory, case)
    if content is None:
        return None
    rows = tuple(Row(**{**row, "disturbance": Disturbance(**row["disturbance"])}) for row in content["rows"])
    return CaseResult(case, content["bound"], rows, Disturbance(**content["disturbance"]))


def write_csv(path, results):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["model", "divisor", "compute_seconds", "hosts", "rate", "delay", "odd_host", "ranks_a_host",
                         "communication_over_compute", "method", "road", "predicted_seconds", "measured_seconds",
                         "half_width_seconds", "iterations", "error", "chosen", "bound_seconds", "stolen", "late",
                         "stolen_while_probed", "late_while_probed"])
        for result in results:
            case, network = result.case, result.case.network
            for row in result.rows:
                writer.writerow([case.model, case.divisor, case.compute, network.hosts, network.rate, network.delay,
                                 network.odd_host, network.slots, f"{case.ratio:.3f}", row.method, row.road,
                                 row.predicted, row.measured, row.half_width, row.iterations, row.error,
                                 int(row.chosen), result.bound, row.disturbance.stolen, row.disturbance.late,
                                 result.disturbance.stolen, result.disturbance.late])
