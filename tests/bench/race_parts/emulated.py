"""The emulated cluster of a case: up, down, and what its links really do. Drives the scripts of tests/cluster."""

import contextlib
import json
import signal
import subprocess
from pathlib import Path

from . import bound

SCRIPTS = Path(__file__).resolve().parents[2] / "cluster"
DEVICE = "eth0"  # of every host
EXIT_UNSUPPORTED = 77
CARRIED = 5e9 / 8  # bytes a second over all hosts' links: what the README of tests/cluster trusts


class RaceError(Exception):
    """Ends the race with one line on stderr."""

    status = 3


class UnsupportedError(RaceError):
    """This machine cannot emulate clusters at all."""

    status = EXIT_UNSUPPORTED


def _script(name, *arguments):
    done = subprocess.run([SCRIPTS / name, *arguments], capture_output=True, text=True, check=False)
    if done.returncode == EXIT_UNSUPPORTED:
        raise UnsupportedError(done.stderr.strip())
    if done.returncode != 0:
        raise RaceError(done.stderr.strip() or f"tests/cluster/{name}: exit status {done.returncode}")
    return done.stdout


def raise_on_signals():
    """SIGTERM and SIGHUP end the race as Ctrl-C does: through its clean-up."""

    def interrupt(number, _frame):
        raise SystemExit(128 + number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)


class Cluster:
    """One that is up."""

    def __init__(self, name, hostfile):
        self.name = name
        self.hostfile = hostfile

    def truth(self):
        return json.loads(_script("truth", "--name", self.name))

    def status(self):
        """Of the switch: what `tests/cluster/control status` prints."""
        return json.loads(_script("control", "--name", self.name, "status"))

    def ports(self):
        """Each host's link as it is now: payload rates of TCP in full packets, and its share of the way's delay."""
        truth = self.truth()
        ratio = truth["goodput_ratio"]
        return [
            bound.Port(host["up_bytes_per_second"] * ratio, host["down_bytes_per_second"] * ratio, host["delay_seconds"])
            for host in truth["hosts"]
        ]

    def addresses(self):
        return [host["address"] for host in self.truth()["hosts"]]

    def command_on(self, host, command):
        """The command line that runs `command` on host 1, 2, ..., with Open MPI set up to reach the others."""
        return [str(SCRIPTS / "exec"), "--name", self.name, "--host", str(host), "--", *command]


@contextlib.contextmanager
def cluster(network, name, switch="", more=()):
    """Brings the network up under that name for the length of a `with`; whatever runs in it is ended. more: flags of up"""
    flags = ["--name", name, "--hosts", str(network.hosts), "--rate", network.rate, "--delay", network.delay, *more]
    if network.odd_host:
        flags += ["--host", network.odd_host]
    if switch:
        flags += ["--switch", switch]
    hostfile = _script("up", *flags, "--print-hostfile").strip()
    try:
        yield Cluster(name, hostfile)
    finally:
        _script("down", "--name", name)
