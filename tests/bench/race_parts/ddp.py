"""The peer: PyTorch DDP on the emulated cluster, one process a host and bucket size, alive from its first round to its last."""

import contextlib
import dataclasses
import json
import os
import subprocess
import tempfile
from pathlib import Path

from .emulated import DEVICE, RaceError

PYTHON = "/usr/bin/python3"  # the distribution's own, for which python3-torch is built
REPLAY = Path(__file__).resolve().parents[1] / "ddp" / "replay.py"
PACKAGE = "python3-torch"
FIRST_PORT = 29500


@dataclasses.dataclass
class Round:
    """What one system did in its turn."""

    iterations: list  # seconds, of the slowest worker
    cpu_seconds: float  # of all ranks together, per iteration
    peak_bytes: int  # largest resident set of a rank
    detail: dict = dataclasses.field(default_factory=dict)  # what only one side reports


def available():
    probe = "import torch.distributed as d, sys; sys.exit(0 if d.is_available() and d.is_gloo_available() else 1)"
    return subprocess.run([PYTHON, "-c", probe], capture_output=True, check=False).returncode == 0


def require(install):
    """Makes sure that the distribution's Python has PyTorch with gloo; installs it only if asked to."""
    if available():
        return
    if not install:
        raise RaceError(f"{PYTHON} has no PyTorch: apt-get install --no-install-recommends {PACKAGE} (or pass --install)")
    command = ["apt-get", "install", "-y", "--no-install-recommends", PACKAGE]
    subprocess.run(command, check=True, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})
    if not available():
        raise RaceError(f"{PACKAGE} is installed, but {PYTHON} cannot use it")


class Peers:
    """DDP jobs on a cluster that is up, one for each bucket size; see `ddp/replay.py`. A context manager."""

    def __init__(self, cluster, profile_path, buckets_mib, flags=()):
        hosts = cluster.addresses()
        self._errors = tempfile.TemporaryFile("w+")
        self._ranks = []
        sizes = [f"{bucket:g}" for bucket in buckets_mib]
        for rank in range(len(hosts)):
            variables = {
                "RANK": str(rank),
                "WORLD_SIZE": str(len(hosts)),
                "MASTER_ADDR": hosts[0],
                "MASTER_PORT": str(FIRST_PORT),
                "GLOO_SOCKET_IFNAME": DEVICE,
            }
            command = [PYTHON, str(REPLAY), str(profile_path), "--bucket-mib", *sizes, *flags]
            self._ranks.append(
                subprocess.Popen(
                    cluster.command_on(rank + 1, command),
                    env={**os.environ, **variables},
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=self._errors,
                    text=True,
                )
            )
        self.jobs = [Job(self, serial, f"DDP {size} MiB") for serial, size in enumerate(sizes)]

    def __enter__(self):
        return self

    def __exit__(self, *_exception):
        for rank in self._ranks:
            with contextlib.suppress(OSError):
                rank.stdin.write("quit\n")
                rank.stdin.close()
        for rank in self._ranks:
            with contextlib.suppress(subprocess.TimeoutExpired):
                rank.wait(10)
            if rank.poll() is None:
                rank.kill()
                rank.wait()

    def ask(self, serial, command):
        """What each rank of a job answers to a command."""
        for rank in self._ranks:
            with contextlib.suppress(OSError):  # it ended, which its answer will tell
                rank.stdin.write(f"{serial} {command}\n")
                rank.stdin.flush()
        return [self._answer(serial, rank) for rank in range(len(self._ranks))]

    def _answer(self, serial, rank):
        line = self._ranks[rank].stdout.readline()
        if line:
            return json.loads(line)
        self._errors.seek(0)
        said = [text for text in self._errors.read().splitlines() if text.strip()]
        raise RaceError(f"{self.jobs[serial].title}: rank {rank} ended: {said[-1] if said else 'without a word'}")


class Job:
    """One bucket size as a competitor; the same interface as ours.Job."""

    def __init__(self, peers, serial, title):
        self.title = title
        self._peers = peers
        self._serial = serial
        self._baseline_bytes = None

    def _ask(self, command):
        return self._peers.ask(self._serial, command)

    def ready(self):
        """Returns when all ranks have found each other and checked every gradient once."""
        self._baseline_bytes = self._ask("ready")[0]["baseline_bytes"]

    def check(self):
        """Every element of every gradient on every rank against the known mean."""
        return sum(answer["checked_tensors"] for answer in self._ask("check"))

    def run(self, warmup, iterations):
        answers = self._ask(f"run {warmup} {iterations}")
        return Round(
            iterations=[max(times) for times in zip(*(answer["iteration_seconds"] for answer in answers))],
            cpu_seconds=sum(answer["cpu_seconds"] for answer in answers) / iterations,
            peak_bytes=max(answer["peak_bytes"] for answer in answers),
            detail={"baseline_bytes": self._baseline_bytes},
        )
