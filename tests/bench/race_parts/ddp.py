"""The peer: PyTorch DDP on the emulated cluster, one process a host and bucket size, alive from its first round to its last."""

import json
from pathlib import Path

from .ranks import Ranks

REPLAY = Path(__file__).resolve().parents[1] / "ddp" / "replay.py"


def peers(cluster, python, profile_path, buckets_mib, caps=(), flags=()):
    """DDP jobs on a cluster that is up, one for each bucket size, and one with a cap for each bucket; see `ddp/replay.py`. A context
    manager.

    python  the environment with PyTorch (pytorch.py)
    caps    MiB of each bucket, as `tune export --to ddp` says; none: no such job"""
    sizes = [f"{bucket:g}" for bucket in buckets_mib]
    command = [str(python / "bin" / "python"), str(REPLAY), str(profile_path), "--bucket-mib", *sizes]
    titles = [f"DDP {size} MiB" for size in sizes]
    if caps:
        command += ["--bucket-list", json.dumps(list(caps))]
        titles.append(f"DDP, exported list of {len(caps)}")
    return Ranks(cluster, [*command, *flags], titles)
