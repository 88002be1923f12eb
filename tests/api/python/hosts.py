"""Emulated hosts (tests/cluster), one rank on each: its own network, its own name."""

import concurrent.futures
import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "cluster"
UNSUPPORTED = 77
PORT = 29500
DEVICE = "eth0"  # of every host


def _call(name, *arguments):
    done = subprocess.run([SCRIPTS / name, *arguments], capture_output=True, text=True, check=False)
    if done.returncode == UNSUPPORTED:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    return done.stdout


class Hosts:
    """That are up."""

    def __init__(self, name, count):
        self._name = name
        self._first = json.loads(_call("truth", "--name", name))["hosts"][0]["address"]
        self.count = count

    def start(self, *command):
        """A process on each, told who it is as torchrun does. What they say on stdout and stderr can be read."""
        return [self._start(rank, command) for rank in range(self.count)]

    def _start(self, rank, command):
        place = {"RANK": str(rank), "WORLD_SIZE": str(self.count), "MASTER_ADDR": self._first, "MASTER_PORT": str(PORT)}
        return subprocess.Popen(
            [SCRIPTS / "exec", "--name", self._name, "--host", str(rank + 1), "--", sys.executable, *command],
            env={**os.environ, **place, "GLOO_SOCKET_IFNAME": DEVICE},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


def finished(ranks, seconds=300):
    """What each said on stdout and on stderr, when all have ended; read together, as one that cannot write keeps others waiting."""
    with concurrent.futures.ThreadPoolExecutor(len(ranks)) as readers:
        ends = [readers.submit(rank.communicate, timeout=seconds) for rank in ranks]
        try:
            return [end.result() for end in ends]
        finally:
            for rank in ranks:
                rank.kill()


@contextlib.contextmanager
def up(count, *flags):
    """So many hosts for the length of a `with`. flags: of tests/cluster/up"""
    name = f"torch{os.getpid()}"
    _call("up", "--name", name, "--hosts", str(count), *flags)
    try:
        yield Hosts(name, count)
    finally:
        _call("down", "--name", name)
