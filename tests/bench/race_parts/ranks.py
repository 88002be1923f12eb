"""A bench's own processes on the hosts of an emulated cluster, told to run in turn."""

import contextlib
import dataclasses
import itertools
import json
import os
import subprocess
import tempfile

from .emulated import DEVICE, RaceError

FIRST_PORT = 29500


@dataclasses.dataclass
class Round:
    """What one system did in its turn."""

    iterations: list  # seconds
    cpu_seconds: float  # of all ranks together, per iteration
    peak_bytes: int  # largest resident set of a rank
    detail: dict = dataclasses.field(default_factory=dict)  # what only one side reports


class Ranks:
    """Jobs on a cluster that is up, alive from their first turn to their last. A context manager.

    One process a host, which has a process of its own for each job (ddp/rank_jobs.py).

    command    of a rank; told who it is as torchrun does (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT), and gloo's device
    titles     of the jobs that it has
    variables  more of the environment"""

    def __init__(self, cluster, command, titles, variables=None):
        hosts = cluster.addresses()
        self._errors = tempfile.TemporaryFile("w+")
        self._ranks = []
        for rank in range(len(hosts)):
            own = {
                "RANK": str(rank),
                "WORLD_SIZE": str(len(hosts)),
                "MASTER_ADDR": hosts[0],
                "MASTER_PORT": str(FIRST_PORT),
                "GLOO_SOCKET_IFNAME": DEVICE,
            }
            self._ranks.append(
                subprocess.Popen(
                    cluster.command_on(rank + 1, command),
                    env={**os.environ, **own, **(variables or {})},
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=self._errors,
                    text=True,
                )
            )
        self.jobs = [Job(self, serial, title) for serial, title in enumerate(titles)]

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


def durations(ends):
    """Seconds of iterations, each from when the last rank ended the one before to when the last rank ended it: together, what
    they took. Ranks that are ahead in turn do not count twice, as they would in a sum of each iteration's slowest rank.

    ends  by rank: nanoseconds of a clock that all ranks share, the first of them before the first iteration"""
    last = [max(of_ranks) for of_ranks in zip(*ends)]
    return [(end - start) / 1e9 for start, end in itertools.pairwise(last)]


class Job:
    """One as a competitor; the same interface as ours.Job."""

    def __init__(self, ranks, serial, title):
        self.title = title
        self._ranks = ranks
        self._serial = serial
        self._baseline_bytes = None

    def _ask(self, command):
        return self._ranks.ask(self._serial, command)

    def ready(self):
        """Returns when all ranks have found each other and checked every gradient once."""
        self._baseline_bytes = self._ask("ready")[0]["baseline_bytes"]

    def check(self):
        """Every element of every gradient on every rank against the known mean."""
        return sum(answer["checked_tensors"] for answer in self._ask("check"))

    def run(self, warmup, iterations):
        answers = self._ask(f"run {warmup} {iterations}")
        return Round(
            iterations=durations([answer["ends_ns"] for answer in answers]),
            cpu_seconds=sum(answer["cpu_seconds"] for answer in answers) / iterations,
            peak_bytes=max(answer["peak_bytes"] for answer in answers),
            detail={"baseline_bytes": self._baseline_bytes},
        )
