"""Runs probes on emulated clusters."""

import contextlib
import fcntl
import json
import os
import subprocess
import sys
import time
from pathlib import Path

CLUSTER = Path(__file__).resolve().parent.parent.parent / "cluster"
EXIT_SKIPPED = 77


def find_program(given):
    root = CLUSTER.parent.parent
    found = [given] if given else sorted(map(str, root.glob("build*/tests/probes/probe_ranks")), key=os.path.getmtime)
    if not found or not os.path.exists(found[-1]):
        sys.exit("probe_ranks is not built: ninja -C build probe_ranks (built elsewhere: pass --ranks PATH)")
    return found[-1]


class Machine:
    """Runs probes on emulated clusters, one at a time."""

    def __init__(self, arguments, folder):
        self.arguments, self.folder = arguments, folder
        self.program = find_program(arguments.ranks)
        self.runs = 0

    @contextlib.contextmanager
    def lock(self):
        if not self.arguments.lock:
            yield
            return
        with open(self.arguments.lock, "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def script(self, name, *flags, check=True):
        done = subprocess.run(
            [CLUSTER / name, "--name", self.arguments.name, *flags], capture_output=True, text=True, timeout=120
        )
        if done.returncode == EXIT_SKIPPED:
            print(done.stderr.strip())
            sys.exit(EXIT_SKIPPED)
        if check and done.returncode != 0:
            raise RuntimeError(f"{name}: {done.stderr.strip()}")
        return done.stdout

    @contextlib.contextmanager
    def cluster(self, flags):
        switch = ["--switch", self.arguments.switch] if self.arguments.switch else []
        with self.lock():
            self.script("up", *flags, *switch)
            try:
                yield json.loads(self.script("truth"))
            finally:
                self.script("down", check=False)

    def status(self):
        """Of the switch of the cluster that is up."""
        return json.loads(self.script("control", "status"))

    def command(self, hosts, out, flags):
        transport = ["--tcp"] if self.arguments.transport == "tcp" else []
        extra = [*transport, *self.arguments.probe_arg]
        return ["mpirun", "-np", str(hosts), self.program, "--out", str(out), *flags, *extra]

    def start(self, hosts, out, *flags):
        """A probe that goes on while something happens to its hosts."""
        return subprocess.Popen(
            [CLUSTER / "exec", "--name", self.arguments.name, "--", *self.command(hosts, out, flags)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def ranks_on(self, host):
        """Process ids of the ranks that run on a host of `truth`."""
        netns = Path(host["netns"]).name
        done = subprocess.run(["ip", "netns", "pids", netns], capture_output=True, text=True, check=True)
        return [pid for pid in map(int, done.stdout.split()) if self.is_rank(pid)]

    def is_rank(self, pid):
        try:
            return Path(f"/proc/{pid}/comm").read_text().strip() == Path(self.program).name[:15]
        except OSError:  # it has ended meanwhile
            return False

    def probe(self, hosts, *flags):
        """What one probe found, its samples, and how long its command took."""
        self.runs += 1
        out = self.folder / f"{self.runs}.json"
        start = time.monotonic()
        done = subprocess.run(
            [CLUSTER / "exec", "--name", self.arguments.name, "--", *self.command(hosts, out, flags)],
            capture_output=True,
            text=True,
            timeout=180,
        )
        seconds = time.monotonic() - start
        lines = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
        if done.returncode != 0 or not lines or "cluster" not in lines[-1]:
            raise RuntimeError(f"the probe failed: {done.stderr.strip()[-600:]}")
        return {**lines[-1], "timed": lines[:-1]}, [line["sample"] for line in lines[:-1]], seconds
