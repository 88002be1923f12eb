"""The targets, and what none of them counts."""

import dataclasses
import statistics

from disturbance import LATE_LIMIT
from noise import Target, percentile
from race_parts import emulated as emulation
from result_words import excluded

MOST_LATE = 0.1  # of the rows


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
