"""What was measured: rows, how they are kept in a folder, the targets, the table and the CSV."""

import csv
import dataclasses
import math
import statistics

from case_archive import content_of, keep  # noqa: F401
from disturbance import LATE_LIMIT, Disturbance
from race_parts import emulated as emulation
from result_words import excluded

from .cases import Case

MOST_LATE = 0.1  # of the rows


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


@dataclasses.dataclass(frozen=True)
class Target:
    name: str
    value: float
    limit: float

    @property
    def met(self):
        return self.value <= self.limit


def percentile(values, share):
    """The smallest value that so large a share of all does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def targets(results, quick):
    """Over results that count, with limits; the quick run asks for less, as so few rows say little."""
    errors = [abs(row.error) for result in results for row in result.rows]
    decided = [result for result in results if result.chosen]
    found = [Target("error_median", statistics.median(errors), 0.08 if quick else 0.03)]
    if not quick:
        found += [Target("error_p95", percentile(errors, 0.95), 0.08), Target("error_worst", max(errors), 0.15)]
    if decided:
        regrets = [result.regret for result in decided]
        if not quick:
            found.append(Target("regret_median", statistics.median(regrets), 0.005))
        found.append(Target("regret_worst", max(regrets), 0.05 if quick else 0.03))
        if not quick:
            found.append(Target("over_bound_median", statistics.median(result.over_bound for result in decided), 1.08))
    return found


def counts(row, result):
    """Whether its links did what they say, in the probe and in the run. Others are a second opinion: nobody knows what the
    links of unshaped ranks do, and where all hosts together may send more than the emulation carries, or it was late, this
    machine's processors are what is measured."""
    return result.case.network.emulated and result.disturbance.punctual and row.disturbance.punctual


def counted(results):
    """The results without rows that do not count."""
    trusted = [
        dataclasses.replace(result, rows=tuple(row for row in result.rows if counts(row, result))) for result in results
    ]
    return [result for result in trusted if result.rows]


def emulated(results):
    return [result for result in results if result.case.network.emulated]


def size(results):
    return sum(len(result.rows) for result in results)


def exclusions(results, unasked):
    """What no target counts: how much of what, and by which rule.

    unasked  cases that this run was told to leave out"""
    local = [result for result in results if result.case.network.local]
    crowded = [result for result in results if not result.case.network.local and not result.case.network.emulated]
    gigabits = emulation.CARRIED * 8 / 1e9
    return excluded(
        (unasked, "cases", "not-asked"),
        (size(local), "rows", "links-not-shaped"),
        (size(crowded), "rows", f"links-sum-over-{gigabits:g}-Gb/s"),
        (late_rows(results), "rows", f"over-{LATE_LIMIT:.0%}-late"),
    )


def late_rows(results):
    """That would count, had the emulation been in time."""
    return size(emulated(results)) - size(counted(results))


def goals_of(results, quick):
    """Of all that was measured. Where much of it does not count the rest proves nothing either."""
    late = Target("late_share", late_rows(results) / size(emulated(results)), MOST_LATE)
    return [*targets(counted(results), quick), late] if counted(results) else [late]


def result_line(results, quick, unasked=0):
    goals = goals_of(results, quick)
    words = [f"{goal.name}={goal.value:.4f}(<={goal.limit:g}{'' if goal.met else ' MISSED'})" for goal in goals]
    verdict = "met" if all(goal.met for goal in goals) else "missed"
    disturbances = [row.disturbance for result in emulated(results) for row in result.rows]
    stolen = statistics.median(disturbance.stolen for disturbance in disturbances)
    late = statistics.median(disturbance.late for disturbance in disturbances)
    return (f"RESULT accuracy cases={len(counted(results))} rows={size(counted(results))} {' '.join(words)} "
            f"late_rows={late_rows(results)} stolen_median={stolen:.4f} late_median={late:.4f} "
            f"excluded={exclusions(results, unasked)} {verdict}")


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


def heading():
    return f"  {'method':<20} {'predicted':>12}  {'measured':>12} {'95 %':>8}  {'error':>8} {'stolen':>7} {'late':>7}"


def line(row):
    return (f"{'>' if row.chosen else ' '} {row.method:<20} {1e3 * row.predicted:9.2f} ms  {1e3 * row.measured:9.2f} ms "
            f"± {1e3 * row.half_width:6.2f}  {100 * row.error:+6.1f} % {100 * row.disturbance.stolen:5.1f} % "
            f"{100 * row.disturbance.late:5.1f} %{'' if row.disturbance.punctual else ': not counted'}")


def verdict(result):
    """What a case says of the choice."""
    if not result.chosen:
        return "  the choice was not measured"
    others = "" if result.case.network.emulated and result.disturbance.punctual else "; not counted"
    return (f"  regret of the choice {100 * result.regret:.1f} %, {result.over_bound:.3f} of the bound {1e3 * result.bound:.2f} ms; "
            f"probed with {100 * result.disturbance.stolen:.1f} % stolen, {100 * result.disturbance.late:.1f} % late{others}")


def report(results, quick, unasked=0):
    """Markdown: a line a case, then every row by error."""
    lines = ["# Predicted against measured", "", result_line(results, quick, unasked), "",
             "| case | communication / compute | chosen | median error | worst error | regret | over the bound |",
             "| --- | --- | --- | --- | --- | --- | --- |"]
    for result in results:
        errors = [abs(row.error) for row in result.rows]
        worst = max(result.rows, key=lambda row: abs(row.error))
        choice = result.chosen
        tail = [choice.method, f"{100 * statistics.median(errors):.1f} %", f"{100 * worst.error:+.1f} % {worst.method}",
                f"{100 * result.regret:.1f} %", f"{result.over_bound:.3f}"] if choice else ["-"] * 5
        ratio = f"{result.case.ratio:.2f}" if result.case.ratio else "-"
        lines.append(f"| {result.case.name} | {ratio} | " + " | ".join(tail) + " |")
    lines += ["", "| error | predicted ms | measured ms | method | case |", "| --- | --- | --- | --- | --- |"]
    rows = [(row, result.case) for result in results for row in result.rows]
    for row, case in sorted(rows, key=lambda pair: -abs(pair[0].error)):
        lines.append(f"| {100 * row.error:+.1f} % | {1e3 * row.predicted:.2f} | {1e3 * row.measured:.2f} | {row.method} | {case.name} |")
    return "\n".join(lines) + "\n"
