"""Whether the tuner's 90 % ranges hold as much as they say."""

import dataclasses
import random
import statistics

from noise import percentile

LEVEL = 0.9  # of the tuner's ranges, and of this share's own interval
RESAMPLES = 4000


@dataclasses.dataclass(frozen=True)
class Coverage:
    """Of rows with a range: the share whose measured median it holds. Rows of one case share its probe, hence its mistakes: the
    share's interval is that of resampled cases (bootstrap by cluster), percentiles of their shares."""

    rows: int
    share: float
    low: float
    high: float
    width: float  # mean, over what was predicted


def in_ranges(results):
    """For each result with ranges, which of its rows they hold."""
    found = [[row.in_range for row in result.rows if row.in_range is not None] for result in results]
    return [held for held in found if held]


def interval(groups):
    """Of the share over all groups, were other groups like these drawn; the same for the same groups."""
    draw = random.Random("coverage").random
    sums = [(sum(held), len(held)) for held in groups]
    shares = []
    for _ in range(RESAMPLES):
        again = [sums[int(draw() * len(sums))] for _ in sums]
        shares.append(sum(held for held, _ in again) / sum(size for _, size in again))
    return percentile(shares, (1 - LEVEL) / 2), percentile(shares, (1 + LEVEL) / 2)


def coverage_of(results):
    """None: no row has a range."""
    groups = in_ranges(results)
    if not groups:
        return None
    held = [one for group in groups for one in group]
    rows = [row for result in results for row in result.rows if row.in_range is not None]
    width = statistics.mean((row.high - row.low) / row.predicted for row in rows)
    low, high = interval(groups)
    return Coverage(len(rows), sum(held) / len(held), low, high, width)


@dataclasses.dataclass(frozen=True)
class Within:
    """A number with limits on both sides."""

    name: str
    value: float
    least: float
    most: float
    too_noisy = False

    @property
    def met(self):
        return self.least <= self.value <= self.most

    @property
    def word(self):
        return f"{self.name}={self.value:.4f}({self.least:g}..{self.most:g}{'' if self.met else ' MISSED'})"


@dataclasses.dataclass(frozen=True)
class Contains:
    """An interval that is to hold a number."""

    name: str
    low: float
    high: float
    number: float
    too_noisy = False

    @property
    def met(self):
        return self.low <= self.number <= self.high

    @property
    def word(self):
        return f"{self.name}={self.low:.4f}..{self.high:.4f}(holds-{self.number:g}{'' if self.met else ' MISSED'})"
