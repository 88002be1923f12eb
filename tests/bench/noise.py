"""How far a bench's targets can be trusted: by an A/A comparison, two measurements of the same thing.

What differs between them is the measurement's noise, so no comparison can be closer. A target that is compared with a
measurement is therefore met within twice the A/A difference where that is more than the target; and where the A/A
difference is itself above the target, the run is too noisy to judge at all. Medians are held against the A/A differences'
median, 95th percentiles and worst values against theirs."""

import dataclasses
import math
import statistics
from typing import Optional

STATUS = {"met": 0, "missed": 1, "too-noisy": 3}  # exit status by verdict
ALLOWED = 2  # A/A differences

RULE = """\
An A/A difference is |second / first - 1| of two measurements of the same plan. Targets on errors and regret are met within
twice the A/A differences' median (medians), 95th percentile or worst (likewise), where that is more than the target. Where
one of them is itself above its target, the run says that it is too noisy, judges nothing, and exits with 3."""


def percentile(values, share):
    """The smallest value that so large a share of all does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def difference(first, second):
    return abs(second / first - 1)


@dataclasses.dataclass(frozen=True)
class Repeats:
    """The A/A differences of a run, a number for each thing that was measured twice; 0 where there is none."""

    differences: tuple

    @property
    def median(self):
        return statistics.median(self.differences) if self.differences else 0.0

    @property
    def p95(self):
        return percentile(self.differences, 0.95) if self.differences else 0.0

    @property
    def worst(self):
        return max(self.differences, default=0.0)

    @property
    def words(self):
        """For a RESULT line."""
        return f"aa_median={self.median:.4f} aa_p95={self.p95:.4f}" if self.differences else "aa=none"


@dataclasses.dataclass(frozen=True)
class Target:
    """A number that is to be at most `limit`, or twice its A/A difference.

    repeat    the A/A difference; 0: the number is judged as it is
    rounding  that is not told from the limit
    noisy     A/A difference from which on nothing is judged, where that is not the limit: no measurement repeats itself
              within a limit of 0"""

    name: str
    value: float
    limit: float
    repeat: float = 0.0
    rounding: float = 0.0
    noisy: Optional[float] = None

    @property
    def met(self):
        return self.value <= max(self.limit + self.rounding, ALLOWED * self.repeat)

    @property
    def too_noisy(self):
        return self.repeat > (self.limit if self.noisy is None else self.noisy)

    @property
    def word(self):
        allowed = ALLOWED * self.repeat
        within = f",A/A:{allowed:.4f}" if self.limit + self.rounding < min(self.value, allowed) else ""
        state = " TOO-NOISY" if self.too_noisy else "" if self.met else " MISSED"
        return f"{self.name}={self.value:.4f}(<={self.limit:g}{within}{state})"


NOISY = 0.05  # A/A difference from which on it is not told whether one thing is no worse than another


@dataclasses.dataclass(frozen=True)
class Comparison:
    """A ratio of two measurements that is to be at least `limit`, or at most.

    What is to be no worse than something else, a limit of 1, is so within twice the A/A difference; a win or a loss of so
    much is one only as it was measured. Nothing is told where the A/A difference is more than that win or loss, or NOISY."""

    name: str
    value: float
    limit: float
    at_most: bool
    repeat: float = 0.0

    @property
    def allowed(self):
        return ALLOWED * self.repeat if self.limit == 1 else 0.0

    @property
    def met(self):
        return self.value <= self.limit + self.allowed if self.at_most else self.value >= self.limit - self.allowed

    @property
    def too_noisy(self):
        return self.repeat > max(abs(self.limit - 1), NOISY)

    @property
    def word(self):
        as_it_is = self.value <= self.limit if self.at_most else self.value >= self.limit
        within = f",A/A:{self.allowed:.3f}" if self.met and not as_it_is else ""
        state = " TOO-NOISY" if self.too_noisy else "" if self.met else " MISSED"
        return f"{self.name}={self.value:.3f}({'<=' if self.at_most else '>='}{self.limit:g}{within}{state})"


def verdict(goals):
    """met, missed, or too-noisy, of Targets, Comparisons and of whatever else says `met` and `too_noisy`."""
    if any(goal.too_noisy for goal in goals):
        return "too-noisy"
    return "met" if all(goal.met for goal in goals) else "missed"


def explanation(goals):
    """A line on each target that noise makes worthless."""
    return [f"too noisy: two measurements of the same thing differ by {goal.repeat:.4f}, and {goal.name} is to be "
            f"{'at most' if getattr(goal, 'at_most', True) else 'at least'} {goal.limit:g}" for goal in goals if goal.too_noisy]
