"""Measuring and planning by a job's own ranks, where nobody did it beforehand."""

from __future__ import annotations

import ctypes
import json
from dataclasses import dataclass
from typing import Any

from commtune import _library
from commtune.session import AllGather, JoinOptions, expect, join_options


@dataclass(frozen=True)
class ProbeOptions:
    """What a probe may cost."""

    budget_seconds: float = 0.0  #: 0: by the number of hosts, 60 at most
    traffic_bytes: int = 0  #: that any one rank may send in all; 0: no limit
    cluster: str = "training"  #: its name


def probe(
    rank: int,
    ranks: int,
    all_gather: AllGather,
    options: ProbeOptions | None = None,
    *,
    profile: dict[str, Any] | None = None,
    join: JoinOptions | None = None,
) -> dict[str, Any] | None:
    """Collective, apart from any session: the cluster of these ranks ("commtune/cluster/1") on rank 0, ``None`` elsewhere.

    Measures links, roads and memory as ``tune probe`` does. ``profile``, on rank 0, says which model's plan is wanted.
    """
    asked = options or ProbeOptions()
    rendezvous, joining = join_options(rank, ranks, all_gather, join or JoinOptions())
    probing = _library.Probe(
        cluster=asked.cluster.encode(),
        budget_seconds=asked.budget_seconds,
        traffic_bytes=asked.traffic_bytes,
        profile=json.dumps(profile).encode() if profile is not None else None,
    )
    text = ctypes.c_void_p()
    with rendezvous.raising():
        expect(_library.waiting.commtune_probe(ctypes.byref(joining), ctypes.byref(probing), ctypes.byref(text)))
    return _taken(text) if text.value else None


def plan(
    profile: dict[str, Any], cluster: dict[str, Any], workers: int, *, full_barrier: bool = False
) -> tuple[dict[str, Any], float]:
    """A model's plan on a cluster as ``tune MODEL`` chooses it, and the seconds that are predicted of an iteration.

    ``full_barrier``: the program waits for all gradients together, not each layer for its own.
    """
    text, seconds = ctypes.c_void_p(), ctypes.c_double()
    documents = (json.dumps(profile).encode(), json.dumps(cluster).encode())
    arguments = (*documents, workers, int(full_barrier), ctypes.byref(text), ctypes.byref(seconds))
    expect(_library.waiting.commtune_plan(*arguments))
    return _taken(text), seconds.value


def _taken(text: ctypes.c_void_p) -> dict[str, Any]:
    """JSON that the library allocated."""
    try:
        document: dict[str, Any] = json.loads(ctypes.string_at(text.value or 0))
        return document
    finally:
        _library.quick.commtune_free(text)
