"""What a run is of, how it measures and how it is judged: the matrix, cases drawn from a seed, ranks on this machine."""

import dataclasses
from typing import Callable
from urllib.parse import quote

from . import cases, drawn, local, measuring, rdma, targets


@dataclasses.dataclass(frozen=True)
class Mode:
    label: str  # of the RESULT line
    cases: tuple  # that may be measured
    total: int  # of which these are a part
    judge: Callable  # (results, cases left out): Judgement
    sweep: Callable = measuring.one_by_one  # how it measures all methods
    counts: Callable = targets.counts  # (row, result): whether a target counts that row
    largest: str = "32M"  # message probed
    budget: str = ""  # of a probe
    probes_for_model: bool = False  # tune probe --for
    check: str = ""  # time that the leading plans run before the answer (default: the product's)


def fixed(quick):
    chosen = tuple(case for case in cases.CASES if case.quick or not quick)
    return Mode("", chosen, len(cases.CASES), lambda results, unasked: targets.fixed(results, quick, unasked))


def random(seed, count):
    return Mode(f"random={quote(seed, safe='')}", drawn.cases(seed, count), count, targets.drawn)


def here(ranks):
    chosen = local.cases(ranks)
    label = f"local={','.join(str(count) for count in ranks)}"
    return Mode(label, chosen, len(chosen), targets.local, local.in_turns, lambda *_: True, local.LARGEST, local.BUDGET)


def over_rdma(hosts):
    chosen = rdma.cases(hosts)
    label = f"rdma={hosts}"
    return Mode(label, chosen, len(chosen), targets.over_rdma, measuring.there_and_back, lambda *_: True, rdma.LARGEST, rdma.BUDGET,
                probes_for_model=True, check=rdma.CHECK)
