"""What a run is of: the matrix, or cases drawn from a seed; and how it is judged."""

import dataclasses
from typing import Callable
from urllib.parse import quote

from . import cases, drawn, targets


@dataclasses.dataclass(frozen=True)
class Mode:
    label: str  # of the RESULT line
    cases: tuple  # that may be measured
    total: int  # of which these are a part
    judge: Callable  # (results, cases left out): Judgement


def fixed(quick):
    chosen = tuple(case for case in cases.CASES if case.quick or not quick)
    return Mode("", chosen, len(cases.CASES), lambda results, unasked: targets.fixed(results, quick, unasked))


def random(seed, count):
    return Mode(f"random={quote(seed, safe='')}", drawn.cases(seed, count), count, targets.drawn)
