"""What the race found out: numbers per case and system, the targets, tables and CSV."""

import csv
import dataclasses
import itertools
import statistics

from noise import Comparison, Repeats, Target, difference, verdict
from result_words import excluded

MIB = 1 << 20


@dataclasses.dataclass
class SystemResult:
    """One system's rounds of one case, in figures."""

    title: str
    ours: bool
    seconds: float  # median of the rounds' medians
    fastest_round: float
    slowest_round: float
    cpu_seconds: float  # per iteration, all ranks
    peak_bytes: int  # of a rank
    predicted: float = 0.0  # 0: nobody predicted it
    rounds: list = dataclasses.field(default_factory=list)

    def gap(self, bounds):
        return self.seconds / bounds.per_layer_barrier - 1


def summarise(title, ours, rounds):
    medians = [statistics.median(each.iterations) for each in rounds]
    return SystemResult(
        title=title,
        ours=ours,
        seconds=statistics.median(medians),
        fastest_round=min(medians),
        slowest_round=max(medians),
        cpu_seconds=statistics.median(each.cpu_seconds for each in rounds),
        peak_bytes=max(each.peak_bytes for each in rounds),
        predicted=rounds[0].detail.get("predicted_seconds", 0.0),
        rounds=rounds,
    )


@dataclasses.dataclass
class CaseResult:
    case: object
    gradient_bytes: int
    tensors: int
    bounds: object
    systems: list
    buckets: int = 0  # how many of the peers have one cap for all buckets: the first; 0: all

    @property
    def chosen(self):
        """The tuner's choice: the first of ours."""
        return next((system for system in self.systems if system.ours), None)

    @property
    def peers(self):
        """DDP by its own means; the list of buckets that a plan was exported to is a row, and no rival."""
        every = [system for system in self.systems if not system.ours]
        return every[: self.buckets] if self.buckets else every

    @property
    def default_peer(self):
        return self.peers[0]

    @property
    def best_peer(self):
        return min(self.peers, key=lambda system: system.seconds)

    @property
    def over_best(self):
        return self.best_peer.seconds / self.chosen.seconds

    @property
    def over_default(self):
        return self.default_peer.seconds / self.chosen.seconds

    @property
    def cpu_ratio(self):
        """Our processor time over that of DDP's best bucket."""
        return self.chosen.cpu_seconds / self.best_peer.cpu_seconds


def repeats(results, of):
    """The A/A differences of all systems: of a round to the one before it.

    of  what a round's number is"""
    pairs = [pair for result in results for system in result.systems for pair in itertools.pairwise(system.rounds)]
    return Repeats(tuple(difference(of(before), of(after)) for before, after in pairs if of(before) > 0))


def time_of(turn):
    return statistics.median(turn.iterations)


def targets(results):
    """The race's targets over all cases in which we ran."""
    gaps = [result.chosen.gap(result.bounds) for result in results]
    best = [result.over_best for result in results]
    default = [result.over_default for result in results]
    cpu = statistics.median(result.cpu_ratio for result in results)
    times, processor = repeats(results, time_of), repeats(results, lambda turn: turn.cpu_seconds)
    return [
        Target("gap_median", statistics.median(gaps), 0.05, times.median),
        Target("gap_worst", max(gaps), 0.12, times.worst),
        Comparison("over_best_bucket_median", statistics.median(best), 1.1, False, times.median),
        Comparison("over_best_bucket_least", min(best), 1.0, False, times.worst),
        Comparison("over_default_median", statistics.median(default), 1.4, False, times.median),
        Comparison("cpu_ratio_median", cpu, 1.0, True, processor.median),
    ]


def result_line(results, unasked=0):
    """The last line of a race: every target with its limit, what no target counts, the A/A difference of its rounds, and
    whether all are met.

    unasked  cases that this race was told to leave out"""
    goals = targets(results)
    words = [goal.word for goal in goals]
    words.append(repeats(results, time_of).words)
    words.append(f"excluded={excluded((unasked, 'cases', 'not-asked'))}")
    return f"RESULT race cases={len(results)} {' '.join(words)} {verdict(goals)}"


def aligned(rows, left):
    """Lines of a table; the first `left` columns are text."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [cell.ljust(width) if column < left else cell.rjust(width) for column, (cell, width) in enumerate(zip(row, widths))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def milliseconds(seconds):
    return f"{seconds * 1e3:.1f}"


def case_table(result):
    bounds = result.bounds
    ratio = bounds.communication / bounds.compute
    heading = (
        f"{result.case.name}: {result.gradient_bytes / 1e6:.1f} MB in {result.tensors} tensors, communication/compute {ratio:.2f}\n"
        f"bound {milliseconds(bounds.per_layer_barrier)} ms (with a full barrier {milliseconds(bounds.full_barrier)} ms)"
    )
    rows = [["system", "ms", "rounds", "predicted", "gap", "ours is faster by", "CPU ms", "peak MiB"]]
    for system in result.systems:
        faster = ""
        if result.chosen and system is not result.chosen:
            faster = f"{system.seconds / result.chosen.seconds:.2f} x"
        rows.append(
            [
                system.title,
                milliseconds(system.seconds),
                f"{milliseconds(system.fastest_round)} - {milliseconds(system.slowest_round)}",
                milliseconds(system.predicted) if system.predicted else "",
                f"{system.gap(bounds):.1%}",
                faster,
                milliseconds(system.cpu_seconds),
                f"{system.peak_bytes / MIB:.0f}",
            ]
        )
    return f"{heading}\n{aligned(rows, 1)}"


def summary_table(results):
    rows = [["case", "bound", "ours", "gap", "best bucket", "over it", "default", "over it", "CPU ratio", "plan"]]
    for result in results:
        if not result.chosen:
            continue
        best = result.best_peer
        rows.append(
            [
                result.case.name,
                milliseconds(result.bounds.per_layer_barrier),
                milliseconds(result.chosen.seconds),
                f"{result.chosen.gap(result.bounds):.1%}",
                f"{milliseconds(best.seconds)} ({best.title.removeprefix('DDP ')})",
                f"{result.over_best:.2f}",
                milliseconds(result.default_peer.seconds),
                f"{result.over_default:.2f}",
                f"{result.cpu_ratio:.2f}",
                result.chosen.title.removeprefix("commtune: "),
            ]
        )
    return aligned(rows, 1)


COLUMNS = [
    "model", "divisor", "compute_s", "network", "hosts", "link_rate", "delay", "odd_host", "gradient_bytes", "tensors",
    "bound_per_layer_barrier_s", "bound_full_barrier_s", "communication_s", "system", "iteration_s_median",
    "iteration_s_min_round", "iteration_s_max_round", "rounds", "iterations_per_round", "predicted_s", "gap_ratio",
    "cpu_s_per_iteration", "peak_bytes",
]  # fmt: skip


def csv_rows(result):
    case, bounds = result.case, result.bounds
    for system in result.systems:
        yield [
            case.model, f"{case.divisor:g}", f"{case.compute:g}", case.network.name, case.network.hosts, case.network.rate,
            case.network.delay, case.network.odd_host, result.gradient_bytes, result.tensors,
            f"{bounds.per_layer_barrier:.6f}", f"{bounds.full_barrier:.6f}", f"{bounds.communication:.6f}", system.title,
            f"{system.seconds:.6f}", f"{system.fastest_round:.6f}", f"{system.slowest_round:.6f}", len(system.rounds),
            len(system.rounds[0].iterations), f"{system.predicted:.6f}" if system.predicted else "",
            f"{system.gap(bounds):.4f}", f"{system.cpu_seconds:.6f}", system.peak_bytes,
        ]  # fmt: skip


def write_csv(path, results):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for result in results:
            writer.writerows(csv_rows(result))
