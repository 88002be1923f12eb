"""What trains: ours, and PyTorch DDP in each of its settings."""

import dataclasses
import json
import os
from pathlib import Path

from race_parts import ours
from race_parts.emulated import RaceError
from race_parts.ranks import Ranks

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
BUCKETS_MIB = (25, 10, 5, 2, 1, 0.5)

# As the documentation of DistributedDataParallel advises, and as the exported list asks for.
CAREFUL = {"gradient_as_bucket_view": True, "static_graph": True}

LAYER, FULL, HOOK, LIST, DEFAULT, BEST = "layer", "full", "hook", "list", "default", "best"


@dataclasses.dataclass(frozen=True)
class System:
    """One that trains. `role` says which figures it counts in; of several with the role BEST the fastest does."""

    role: str
    title: str
    kind: str
    options: dict


def variables(python, program):
    """Of a process that trains with the library that was built beside the `tune` program."""
    library = Path(program).parents[1] / "lib" / "libcommtune.so"
    if not library.exists():
        raise RaceError(f"{library}: not built (cmake --build FOLDER --target commtune)")
    return {
        "COMMTUNE_LIBRARY": str(library),
        "PYTHONPATH": str(ROOT / "api" / "python"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
        "PATH": f"{python / 'bin'}:{os.environ['PATH']}",
    }


@dataclasses.dataclass(frozen=True)
class Plans:
    """Of one model on one cluster: files, with what is predicted."""

    layer: Path  # the choice for a program whose layers wait for their own gradients
    full: Path  # the choice for one that waits for all
    listed: Path  # the one with whose groups DDP is the fastest
    caps: list  # as it is told
    text: str  # for people


def plans_of(tuner, profile_path, directory):
    """What a user of `tune` gets for this model: a plan for each barrier."""
    directory.mkdir()
    answers = {barrier: tuner.plan(profile_path, directory / barrier, check=True, barrier=barrier) for barrier in ("per-layer", "full")}
    layer, full = (ours.entry_of(answer, answer["chosen"]) for answer in answers.values())
    listed, caps = ours.fastest_list(tuner, answers["full"], directory / "full")
    text = f"layer: {layer['title']}; full: {full['title']}; list: {listed['title']} in {len(caps)} buckets"
    of_layer, *of_full = (
        directory / barrier / f"{entry['method']}.json" for barrier, entry in (("per-layer", layer), ("full", full), ("full", listed))
    )
    return Plans(of_layer, *of_full, caps, text)


def systems_of(plans):
    """All that train one cell."""
    listed = {"bucket_cap_mb_list": plans.caps, **CAREFUL}
    made = [
        System(LAYER, "wrap, layer barrier", "wrap", {"plan": str(plans.layer), "barrier": "layer"}),
        System(FULL, "wrap, full barrier", "wrap", {"plan": str(plans.full), "barrier": "full"}),
        System(HOOK, "ddp_hook, exported list", "hook", {"plan": str(plans.listed), **listed}),
        System(LIST, "DDP, exported list", "ddp", listed),
        System(DEFAULT, "DDP as it comes", "ddp", {}),
    ]
    for mib in BUCKETS_MIB:
        made.append(System(BEST, f"DDP {mib:g} MiB", "ddp", {"bucket_cap_mb": mib, **CAREFUL}))
    return made


ALONE = [
    System("plain", "PyTorch alone", "alone", {}),
    System("wrapped", "wrap", "wrap", {"plan": "buckets", "barrier": "full"}),
]


def started(cluster, python, program, model, systems, directory):
    """Ranks on each host of a cluster; a context manager.

    model  a profile's file, or a name of networks.py's"""
    order = directory / "order.json"
    order.write_text(json.dumps({"model": str(model), "systems": [dataclasses.asdict(each) for each in systems]}))
    command = [str(python / "bin" / "python"), str(HERE / "rank.py"), str(order)]
    return Ranks(cluster, command, [each.title for each in systems], variables(python, program))
