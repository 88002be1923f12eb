"""What the training bench found out: figures of a cell, targets, tables."""

import dataclasses

from noise import Comparison, Target, verdict
from race_parts.results import MIB, aligned, milliseconds, repeats, time_of
from result_words import excluded

from .systems import BEST, DEFAULT, FULL, HOOK, LAYER, LIST

GAP_LEFT = 0.4  # of what is between DDP's best bucket and the bound
OVER_DEFAULT = 1.3
HOOK_LIMIT = 0.02
ALONE_LIMIT = 0.01
TOLERANCE = 1e-3  # of losses, for another order of sums


@dataclasses.dataclass
class CellResult:
    """Of one cell: SystemResults (race_parts/results.py), and the role of each."""

    case: object  # a cell
    bounds: object  # None where the processor computes
    communication: float  # all bytes at the links' best rate over compute; 0 where it is not known
    roles: list
    systems: list
    loss: float = 0.0  # by how much the systems' losses differ at most

    @property
    def kind(self):
        if self.bounds:
            return "sleeping"
        return "alone" if "plain" in self.roles else "real"

    def of(self, role):
        """The fastest with that role."""
        return min((s for s, r in zip(self.systems, self.roles) if r == role), key=lambda system: system.seconds)

    @property
    def best(self):
        """DDP's best single bucket, its default among them."""
        return min((self.of(BEST), self.of(DEFAULT)), key=lambda system: system.seconds)

    @property
    def gap_left(self):
        """What is left of the gap between DDP's best bucket and the bound."""
        bound = self.bounds.per_layer_barrier
        return (self.of(LAYER).seconds - bound) / (self.best.seconds - bound)

    def over(self, other, role):
        return other.seconds / self.of(role).seconds


def losses_differ(answers):
    """The largest relative difference between systems' losses on any rank at any step.

    answers  by system, by rank: its losses"""
    worst = 0.0
    for ranks in answers[1:]:
        for mine, first in zip(ranks, answers[0]):
            worst = max(worst, *(abs(a - b) / max(abs(b), 1e-3) for a, b in zip(mine, first)))
    return worst


def sleeping_targets(results):
    """Of cells whose compute sleeps."""
    times = repeats(results, time_of)
    # What the A/A difference of two times is as a part of the gap.
    scaled = max(times.median * r.best.seconds / (r.best.seconds - r.bounds.per_layer_barrier) for r in results)
    goals = [Target("gap_left_worst", max(r.gap_left for r in results), GAP_LEFT, scaled)]
    heavy = [r.over(r.of(DEFAULT), LAYER) for r in results if r.communication > 0.99]
    if heavy:
        goals.append(Comparison("over_default_least", min(heavy), OVER_DEFAULT, False, times.worst))
    return [
        *goals,
        Comparison("over_best_least", min(r.over(r.best, LAYER) for r in results), 1.0, False, times.worst),
        Comparison("list_over_best_least", min(r.over(r.best, LIST) for r in results), 1.0, False, times.worst),
        Target("hook_worst", max(r.of(HOOK).seconds / r.of(LIST).seconds - 1 for r in results), HOOK_LIMIT, times.p95, noisy=0.05),
    ]


def real_targets(results):
    """Of cells that the processor computes: printed, and no slower."""
    times = repeats(results, time_of)
    least = min(max(r.over(r.best, LAYER), r.over(r.best, FULL)) for r in results)
    return [Comparison("real_over_best_least", least, 1.0, False, times.worst)]


def alone_targets(result):
    """Of one rank, which has nothing to send."""
    plain, wrapped = result.of("plain"), result.of("wrapped")
    return [Target("alone_added", wrapped.seconds / plain.seconds - 1, ALONE_LIMIT, repeats([result], time_of).median, noisy=0.05)]


def result_line(everything, unasked):
    """The last line.

    unasked  cells that were left out"""
    makers = {"sleeping": sleeping_targets, "real": real_targets, "alone": lambda found: alone_targets(found[0])}
    kinds = [(make, [result for result in everything if result.kind == kind]) for kind, make in makers.items()]
    goals = [goal for make, found in kinds if found for goal in make(found)]
    goals.append(Target("loss_difference", max(result.loss for result in everything), TOLERANCE))
    words = [goal.word for goal in goals]
    words.append(repeats(everything, time_of).words)
    words.append(f"excluded={excluded((unasked, 'cells', 'not-asked'), (1, 'systems', 'horovod:does-not-build'))}")
    return f"RESULT training cells={len(everything)} {' '.join(words)} {verdict(goals)}", goals


def table(result, text):
    """A cell's systems.

    text  its plans"""
    heading = result.case.name
    if result.bounds:
        heading += (
            f": communication/compute {result.communication:.2f}, compute {milliseconds(result.bounds.compute)} ms, "
            f"bound {milliseconds(result.bounds.per_layer_barrier)} ms"
        )
    rows = [["system", "ms", "rounds", "CPU ms", "MiB"]]
    for system in result.systems:
        baseline = system.rounds[0].detail.get("baseline_bytes") or 0
        rounds = f"{milliseconds(system.fastest_round)} - {milliseconds(system.slowest_round)}"
        memory = f"{(system.peak_bytes - baseline) / MIB:.0f}"
        rows.append([system.title, milliseconds(system.seconds), rounds, milliseconds(system.cpu_seconds), memory])
    return f"{heading}\n{text}\n{aligned(rows, 1)}"


def summary(results):
    """What the targets are made of, a line a cell."""
    rows = [["cell", "bound", "layer", "full", "hook", "list", "default", "best bucket", "gap closed", "over best", "over default"]]
    for result in results:
        if result.kind == "alone":
            continue
        known = result.bounds is not None
        rows.append(
            [
                result.case.name,
                milliseconds(result.bounds.per_layer_barrier) if known else "",
                *(milliseconds(result.of(role).seconds) for role in (LAYER, FULL, HOOK, LIST, DEFAULT)),
                f"{milliseconds(result.best.seconds)} ({result.best.title.removeprefix('DDP ')})",
                f"{1 - result.gap_left:.0%}" if known else "",
                f"{result.over(result.best, LAYER):.2f}",
                f"{result.over(result.of(DEFAULT), LAYER):.2f}",
            ]
        )
    return aligned(rows, 1)
