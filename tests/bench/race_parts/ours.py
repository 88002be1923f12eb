"""Our side: `tune probe`, `tune plan` and `tune run` as a user would call them, from the cluster's first host."""

import glob
import json
import os
import re
import subprocess
from pathlib import Path

from .emulated import RaceError
from .ranks import Round

ROOT = Path(__file__).resolve().parents[3]
DDP_PLAN = "ddp-25mib"  # the method that imitates DDP's default


def is_sanitized(build):
    """Whether programs of this build folder are many times slower than what they are to show."""
    cache = build / "CMakeCache.txt"
    return cache.exists() and re.search(r"^COMMTUNE_SANITIZE:\w+=(?!OFF$).+$", cache.read_text(encoding="utf-8"), re.MULTILINE) is not None


def find_program(path):
    """`tune`: as given, from COMMTUNE_TUNE, or the newest in a build folder of this repository without sanitizers."""
    given = path or os.environ.get("COMMTUNE_TUNE")
    if given:
        if not os.access(given, os.X_OK):
            raise RaceError(f"tune = '{given}': no such program")
        return os.path.abspath(given)
    found = [tune for tune in glob.glob(str(ROOT / "build*" / "bin" / "tune")) if not is_sanitized(Path(tune).parents[1])]
    if not found:
        raise RaceError("tune is not built: cmake -S . -B build -G Ninja && ninja -C build (built elsewhere: --tune PATH)")
    return max(found, key=os.path.getmtime)


class Tuner:
    """The `tune` command on one emulated cluster, with a database of its own."""

    def __init__(self, program, cluster, database, extra_arguments=()):
        self._program = program
        self._cluster = cluster
        self._database = database
        self._extra = list(extra_arguments)

    def _call(self, *arguments):
        return self._said(*arguments, "--cluster", self._cluster.name)

    def _said(self, *arguments):
        command = [self._program, *arguments, "--db", str(self._database), "--json"]
        done = subprocess.run(self._cluster.command_on(1, command), capture_output=True, text=True, check=False)
        if done.returncode != 0:
            said = [line for line in done.stderr.splitlines() if line.startswith("tune:")] or done.stderr.splitlines()
            raise RaceError(f"tune {arguments[0]}: {said[-1] if said else f'exit status {done.returncode}'}")
        return json.loads(done.stdout)

    def probe(self):
        return self._call("probe", "--hosts", self._cluster.hostfile, *self._extra)

    def plan(self, profile_path, directory, check=False, barrier=None):
        """Ranks all methods; leaves each one's plan as DIRECTORY/METHOD.json.

        check    the leading plans are run for some seconds, as they are for who names hosts
        barrier  that the program has: "full" or "per-layer"; None: what each method asks for"""
        hosts = ["--hosts", self._cluster.hostfile] if check else []
        barriers = ["--barrier", barrier] if barrier else []
        return self._call("plan", str(profile_path), "--out-dir", str(directory), *hosts, *barriers)

    def exported(self, answer, method):
        """Caps of DDP's buckets, in MiB, and the time that is predicted of DDP with them; None where it cannot run the groups of
        that method's plan.

        answer  what plan() returned: a plan that is named by its file alone leads to no cluster, and so to no prediction"""
        document = self._said("export", str(answer["id"]), "--method", method, "--to", "ddp")
        caps = document["settings"].get("bucket_cap_mb_list")
        return (json.loads(caps), document["predicted_seconds"]["bucket_cap_mb_list"]) if caps else None

    def run(self, plan_path, profile_path, warmup, iterations, trace=None):
        """Runs a plan once; every gradient is verified in an iteration before the timed ones."""
        numbers = ["--warmup", str(warmup), "--iterations", str(iterations), "--check", "1"]
        flags = ["--model", str(profile_path), "--hosts", self._cluster.hostfile, *self._extra]
        traces = ["--trace", str(trace)] if trace else []
        return self._call("run", str(plan_path), *numbers, *flags, *traces)["runs"][0]


class Job:
    """One plan of ours as a competitor; the same interface as ranks.Job."""

    def __init__(self, title, tuner, plan_path, profile_path, predicted):
        self.title = title
        self.plan_path = plan_path
        self.predicted = predicted
        self._tuner = tuner
        self._profile_path = profile_path

    def run(self, warmup, iterations, trace=None):
        outcome = self._tuner.run(self.plan_path, self._profile_path, warmup, iterations, trace)
        report = outcome["report"]
        if report["check"]["tensors"] == 0:
            raise RaceError(f"{self.title}: no gradient was checked")
        wall = max(rank["wall_seconds"] for rank in report["ranks"]) / iterations
        mean = sum(report["iteration_seconds"]) / iterations
        return Round(
            # Iterations are counted on the compute side's time line. Should the processor have fallen behind it, the
            # wall clock says so, as it does for the peer.
            iterations=[seconds * max(1.0, wall / mean) for seconds in report["iteration_seconds"]],
            cpu_seconds=sum(rank["cpu_seconds"] for rank in report["ranks"]) / iterations,
            peak_bytes=max(rank["peak_bytes"] for rank in report["ranks"]),
            detail={"report": report, "predicted_seconds": self.predicted},
        )


def entry_of(answer, method):
    for entry in answer["ranking"]:
        if entry["method"] == method:
            return entry
    raise RaceError(f"{method}: not in the ranking of tune plan")


def fastest_list(tuner, answer, directory):
    """The plan with whose groups DDP is predicted to be the fastest, of those that it can be told as a list of buckets: its entry in
    the ranking, and their caps. Raises RaceError where there is none."""
    found = []
    for entry in answer["ranking"]:
        path = directory / f"{entry['method']}.json"
        full_barrier = json.loads(path.read_text(encoding="utf-8"))["barrier"] == "full"
        exported = tuner.exported(answer, entry["method"]) if full_barrier else None
        if exported:
            found.append((exported[1], entry, exported[0]))
    if not found:
        raise RaceError("no plan of the ranking has a full barrier and groups that DDP could run")
    _, entry, caps = min(found, key=lambda each: each[0])
    return entry, caps


def jobs(tuner, profile_path, directory, answer):
    """The tuner's choice, and the plan that imitates DDP's default on our executor.

    answer  what the tuner said to plan(profile_path, directory)"""
    chosen, imitation = entry_of(answer, answer["chosen"]), entry_of(answer, DDP_PLAN)
    made = []
    for title, entry in ((f"commtune: {chosen['title']}", chosen), ("commtune: as DDP 25 MiB", imitation)):
        made.append(Job(title, tuner, directory / f"{entry['method']}.json", profile_path, entry["iteration_seconds"]))
    return made
