"""The targets, and what none of them counts."""

import dataclasses
import statistics
from typing import Callable

from disturbance import LATE_LIMIT
from noise import Repeats, Target, percentile
from race_parts import emulated as emulation
from result_words import excluded

from .coverage import LEVEL, Contains, Within, coverage_of

MOST_LATE = 0.1  # of the rows
DRAWN_LIMITS = {"error_median": 0.015, "error_p95": 0.06, "error_worst": 0.12, "regret_median": 0.0, "regret_worst": 0.03}
ROUNDING = 0.0005  # what a target of 0 is compared within
LOCAL_LIMITS = {"error_median": 0.06, "error_worst": 0.18, "regret_worst": 0.05}
LOCAL_COVERAGE = (0.85, 1)
RDMA_ERROR, RDMA_FIRST = 0.15, 3  # of a guest's hosts: the median error, and up to where the fastest method may stand
COVERAGE = (0.8, 0.97)  # of the 90 % ranges, whatever its own interval
MOST_WIDTH = 0.1  # of the ranges, over the prediction


@dataclasses.dataclass(frozen=True)
class Judgement:
    """What a run's results say."""

    results: list  # all that was measured
    counted: list  # of them, the rows that targets count
    goals: list  # Targets, and what else says `met` and `too_noisy`; none: nothing was measured that one counts
    counts: Callable  # (row, result): whether that row is among `counted`
    repeats: Repeats
    excluded: str
    notes: tuple = ()  # more words for the RESULT line


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


def repeats_of(results):
    """The A/A differences of results that count, and how many of these have none."""
    found = [result.repeat for result in results]
    return Repeats(tuple(repeat for repeat in found if repeat is not None)), found.count(None)


def exclusions(results, unasked):
    """What no target counts: how much of what, and by which rule.

    unasked  cases that this run was told to leave out"""
    local = [result for result in results if result.case.network.local]
    crowded = [result for result in results if not result.case.network.local and not result.case.network.emulated]
    gigabits = emulation.CARRIED * 8 / 1e9
    return (
        (unasked, "cases", "not-asked"),
        (size(local), "rows", "links-not-shaped"),
        (size(crowded), "rows", f"links-sum-over-{gigabits:g}-Gb/s"),
        (late_rows(results), "rows", f"over-{LATE_LIMIT:.0%}-late"),
        (repeats_of(counted(results))[1], "repeats", "not-measured-or-late"),
    )


def late_rows(results):
    """That would count, had the emulation been in time."""
    return size(emulated(results)) - size(counted(results))


def late_share(results):
    """Where much of what was measured does not count the rest proves nothing either."""
    return Target("late_share", late_rows(results) / size(emulated(results)), MOST_LATE)


def fixed_targets(results, quick):
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


def stolen_median(results):
    """For a RESULT line."""
    return f"stolen_median={statistics.median(row.disturbance.stolen for result in results for row in result.rows):.4f}"


def on_emulated_links(results, unasked, targets_of, more_excluded=()):
    """targets_of  of the results that count and their Repeats"""
    found = counted(results)
    repeats, _ = repeats_of(found)
    goals = [late_share(results)] if emulated(results) else []
    if found:
        goals = [*targets_of(found, repeats), *goals]
    notes = [f"late_rows={late_rows(results)}"]
    if emulated(results):
        late = statistics.median(row.disturbance.late for result in emulated(results) for row in result.rows)
        notes += [stolen_median(emulated(results)), f"late_median={late:.4f}"]
    return Judgement(results, found, goals, counts, repeats, excluded(*exclusions(results, unasked), *more_excluded), tuple(notes))


def targets_within_noise(results, repeats, limits):
    """Over results that count. limits: by the target's name; a number without one is not judged"""
    errors = [abs(row.error) for result in results for row in result.rows]
    regrets = [result.regret for result in results if result.chosen]
    values = {
        "error_median": (statistics.median(errors), repeats.median),
        "error_p95": (percentile(errors, 0.95), repeats.p95),
        "error_worst": (max(errors), repeats.worst),
    }
    if regrets:
        values["regret_median"] = statistics.median(regrets), repeats.median
        values["regret_worst"] = max(regrets), repeats.worst
    return [
        Target(name, value, limits[name], repeat, **({} if limits[name] else {"rounding": ROUNDING, "noisy": limits["error_median"]}))
        for name, (value, repeat) in values.items()
        if name in limits
    ]


def range_targets(results):
    """Of the tuner's ranges; that there are none is a miss."""
    found = coverage_of(results)
    if found is None:
        return [Within("coverage", 0.0, *COVERAGE)]
    return [
        Within("coverage", found.share, *COVERAGE),
        Contains("coverage_interval", found.low, found.high, LEVEL),
        Target("range_width", found.width, MOST_WIDTH),
    ]


def without_range(results):
    return sum(row.in_range is None for result in results for row in result.rows)


def drawn(results, unasked=0):
    """Of cases that were drawn: targets on errors and regret are met within noise, and the tuner's ranges are judged."""
    return on_emulated_links(
        results,
        unasked,
        lambda found, repeats: targets_within_noise(found, repeats, DRAWN_LIMITS) + range_targets(found),
        [(without_range(counted(results)), "rows-of-coverage", "no-range")],
    )


def local(results, unasked=0):
    """Of ranks on this machine: what the ranges hold, and errors and regret of plans that the tuner checked before it answered,
    as one that rests on a probe alone knows nothing of what else runs here."""
    judged = [result for result in results if result.checked]
    others = [result for result in results if not result.checked]
    found = coverage_of(results)
    goals = [Within("coverage", found.share if found else 0.0, *LOCAL_COVERAGE)] if results else []
    if judged:
        goals += targets_within_noise(judged, repeats_of(judged)[0], LOCAL_LIMITS)
    notes = [f"range_width={found.width:.4f}"] if found else []
    if others:
        unjudged = targets_within_noise(others, repeats_of(others)[0], LOCAL_LIMITS)
        notes += [f"unchecked_{target.name}={target.value:.4f}(not-judged)" for target in unjudged]
    if results:
        notes.append(stolen_median(results))
    repeats, unrepeated = repeats_of(results)
    left_out = excluded(
        (unasked, "cases", "not-asked"),
        (size(others), "rows-of-errors-and-regret", "not-judged:plan-not-checked"),
        (without_range(results), "rows-of-coverage", "no-range"),
        (unrepeated, "repeats", "not-measured-or-late"),
    )
    return Judgement(results, results, goals, lambda *_: True, repeats, left_out, tuple(notes))


def by_prediction(result):
    return sorted(result.rows, key=lambda row: row.predicted)


def rank_of_fastest(result):
    """Where the method that was measured to be the fastest stands among all by prediction, from 1."""
    fastest = min(result.rows, key=lambda row: row.measured)
    return 1 + sum(row.predicted < fastest.predicted for row in result.rows)


def first_behind(result):
    """By how much the fastest of the ranking's first ones was measured to be slower than the fastest of all; 0: it is one of them."""
    first = by_prediction(result)[:RDMA_FIRST]
    return min(row.measured for row in first) / min(row.measured for row in result.rows) - 1


def over_rdma(results, unasked=0):
    """Of a guest's hosts: soft-RoCE on a few processors that all hosts share, so that little is asked of errors. Which method is
    the fastest nobody can tell closer than within twice the A/A difference."""
    errors = [abs(row.error) for result in results for row in result.rows]
    repeats, unrepeated = repeats_of(results)
    goals = [
        Target("error_median", statistics.median(errors), RDMA_ERROR, repeats.median),
        Target(f"first_{RDMA_FIRST}_behind", max(map(first_behind, results)), 0.0, repeats.worst, ROUNDING, noisy=RDMA_ERROR),
    ] if errors else []
    notes = [
        f"fastest_rank_worst={max(map(rank_of_fastest, results))}(not-judged)",
        f"shortest_iteration={min(row.measured for result in results for row in result.rows):.1f}s",
    ] if errors else []
    left_out = excluded((unasked, "cases", "not-asked"), (unrepeated, "repeats", "not-measured-or-late"))
    return Judgement(results, results, goals, lambda *_: True, repeats, left_out, tuple(notes))


def fixed(results, quick, unasked=0):
    """The matrix: with targets of its own, which repeats do not widen."""
    return on_emulated_links(results, unasked, lambda found, _: fixed_targets(found, quick))
