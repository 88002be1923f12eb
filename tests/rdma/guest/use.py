#!/usr/bin/env python3
"""In the guest: `tune` as its users call it, over verbs: probe, plan, and replays whose gradients are verified.

  use.py TUNE HOSTS [TEXT]      TEXT: nothing, unless a case's name contains it

Says of each case what GoogleTest says of its own. Exit status: 0, or 1 if one failed.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path

sys.dont_write_bytecode = True
import hosts

HOME = Path("/tmp/user")
PATIENCE = 240  # seconds for a call
LIMIT = 40  # seconds from a fault to the end of all ranks: a card may try for 30, and mpirun needs its time
# Few sizes, the same ones however slow the guest is.
FEW = ("-e", "256K", "-f", "16", "-n", "2", "--max-iterations", "2", "--budget", "200s")
# resnet50's 161 tensors, 2 MB together, so that messages are on either side of what is sent eagerly.
MODEL = ("resnet50", "--scale-bytes", "0.02", "--scale-time", "0.1", "--no-check")
ROADS = ("ring", "double-binary-tree", "halving-doubling", "one-shot")


class Failure(Exception):
    pass


def expect(truth, words):
    if not truth:
        raise Failure(words)


class User:
    def __init__(self, tune, count):
        self.tune_program = tune
        self.count = count
        self.names = [f"h{number}" for number in range(1, count + 1)]
        self.hostfile = hosts.make_hosts(count)
        self.few = (*FEW, "--servers", str(count))  # one road over servers
        HOME.mkdir()

    def command(self, *arguments):
        cluster = () if arguments[0] == "show" else ("--cluster", "guest")
        return hosts.command_on(1, [self.tune_program, *arguments, "--db", str(HOME / "store.db"), *cluster])

    def tune(self, *arguments):
        return subprocess.run(self.command(*arguments), env=hosts.environment(), cwd=HOME, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=PATIENCE, check=False)

    def json(self, *arguments):
        done = self.tune(*arguments, "--json")
        expect(done.returncode == 0, f"tune {' '.join(arguments)}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
        return json.loads(done.stdout)

    def run(self, plan, *arguments):
        """Reports of verified replays."""
        flags = ("--hosts", str(self.hostfile), "--iterations", "3", "--warmup", "1", *arguments)
        runs = self.json("run", str(plan), *flags)["runs"]
        for run in runs:
            report = run["report"]
            expect(report["check"]["tensors"] == self.count * 161, f"checked: {report['check']}")
            expect([rank["host"] for rank in report["ranks"]] == self.names, f"ranks: {report['ranks']}")
        return runs

    # ---- the cases, in turn: each needs what those before it left ----

    def probes(self):
        probe = self.json("probe", "--hosts", str(self.hostfile), "--network", "verbs", *self.few)
        cluster = probe["cluster"]
        expect([host["name"] for host in cluster["hosts"]] == self.names, f"hosts: {cluster['hosts']}")
        expect(probe["within_budget"], f"the probe has measured {probe['elapsed_seconds']} s and was not done")

    def tells_what_its_cards_are(self):
        cluster = self.json("show", "clusters", "guest")
        expect(cluster["transport"] == "verbs", f"transport: {cluster['transport']}")
        facts = cluster["facts"]
        for number, name in enumerate(self.names):
            card = facts.get(f"host.{name}.card_rxe{number}_1", "none")
            expect(card == "RoCE v2, Ethernet, MTU 4096 B", f"{name}: card: {card}; of {sorted(facts)}")
            gid = facts.get(f"release.{name}.gid_rxe{number}_1", "none")
            expect(re.fullmatch(rf"GID \d+, 10\.77\.0\.{number + 1}", gid), f"{name}: {gid}")

    def plans(self):
        answer = self.json("plan", *MODEL, "--out-dir", "plans")
        expect(answer["workers"] == self.count, f"workers: {answer['workers']}")
        expect(len(answer["ranking"]) > 5, f"ranking: {answer['ranking']}")

    def runs_over_every_road(self):
        plan = json.loads((HOME / "plans" / "wfbp-a2a.json").read_text())
        for road in ROADS:
            plan["road"] = {"kind": "all-to-all", "algorithm": road}
            path = HOME / f"{road}.json"
            path.write_text(json.dumps(plan))
            self.run(path)

    def runs_over_servers(self):
        (run,) = self.run("latest", "--method", "wfbp-ps")
        expect(run["predicted_seconds"] > 0, f"prediction: {run}")

    def runs_what_it_has_chosen(self):
        (run,) = self.run("latest")
        stored = self.json("show", "runs", str(run["run"]))
        expect(stored["settings"]["network"] == "verbs", f"settings: {stored['settings']}")

    def compares_itself_with_perftest(self):
        probe = self.json("probe", "--hosts", str(self.hostfile), "--network", "verbs", "--fresh", *self.few, "--compare")
        said = {(tool["tool"], tool["from"], tool["to"]): tool["problem"] for tool in probe["tools"]}
        for tool in ("ib_write_bw", "ib_write_lat"):
            for ends in (("h1", "h2"), ("h2", "h1")):
                expect(said.get((tool, *ends)) == "", f"tools: {probe['tools']}")

    def names_a_rank_that_is_killed(self):
        run = self.endless_run("wfbp-a2a")
        victim = self.names[-1]
        ranks = subprocess.run(["ip", "netns", "pids", victim], capture_output=True, text=True, check=True).stdout.split()
        (rank,) = [number for number in ranks if program_of(number).endswith("tune-rank")]
        os.kill(int(rank), signal.SIGKILL)
        self.expect_end(run, rf"{victim}\b")

    def names_the_tensor_where_a_link_goes_down(self):
        """The last case: the card forgets its neighbours."""
        run = self.endless_run("wfbp-a2a")
        subprocess.run(["ip", "link", "set", f"card{self.count - 1}", "down"], check=True)
        # Whoever notices first, the rank itself or another, names the rank whose link it is.
        victim = rf"rank {self.count - 1} \(host {self.names[-1]}\)"
        self.expect_end(run, rf"(lost {victim}|{victim} has lost its link \().*verbs status \d+.*; "
                             r"in the (reduce|distribute) stage of message \d+ \([\w.]+")

    def endless_run(self, method):
        """A call that has begun to time iterations."""
        command = ["run", "latest", "--method", method, "--hosts", str(self.hostfile), "--iterations", "1000000", "--progress", "always"]
        process = subprocess.Popen(self.command(*command), env=hosts.environment(), cwd=HOME, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for line in process.stderr:
            if "timing" in line:
                return process
        raise Failure(f"tune run ended before it timed anything: {process.wait()}")

    def expect_end(self, run, pattern):
        """Of all ranks, soon, with a message that matches."""
        start = time.monotonic()
        try:
            _, said = run.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            run.kill()
            raise Failure(f"the run still goes on after {LIMIT} s") from None
        messages = [line for line in said.splitlines() if line.startswith("tune: ")]
        print(f"after {time.monotonic() - start:.1f} s: {messages}", flush=True)
        expect(run.returncode != 0 and len(messages) == 1, f"exit status {run.returncode}: {said[-2000:]}")
        expect(re.search(pattern, messages[0]), f"{messages[0]} does not match {pattern}")
        left = [place.name for place in Path("/proc").glob("[0-9]*") if program_of(place.name).endswith("tune-rank")]
        expect(not left, f"ranks outlived the run: {left}")

    CASES = (probes, tells_what_its_cards_are, plans, runs_over_every_road, runs_over_servers, runs_what_it_has_chosen,
             compares_itself_with_perftest, names_a_rank_that_is_killed, names_the_tensor_where_a_link_goes_down)

    def cases(self):
        """Two hosts are enough for a comparison; among four, whose cards share two cores, it takes minutes."""
        return [case for case in self.CASES if self.count == 2 or case is not User.compares_itself_with_perftest]


def program_of(process):
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")[0].decode()
    except FileNotFoundError:
        return ""


def say(state, name, start):
    print(f"[ {state:>8} ] Use.{name} ({(time.monotonic() - start) * 1000:.0f} ms)", flush=True)


def succeeds(user, case):
    start = time.monotonic()
    try:
        case(user)
    except (Failure, subprocess.TimeoutExpired, KeyError, ValueError, OSError):
        traceback.print_exc(file=sys.stdout)
        say("FAILED", case.__name__, start)
        return False
    say("OK", case.__name__, start)
    return True


def main():
    only = sys.argv[3] if len(sys.argv) > 3 else ""
    if not any(only in f"Use.{case.__name__}" for case in User.CASES):
        return 0
    user = User(sys.argv[1], int(sys.argv[2]))
    return 0 if all(succeeds(user, case) for case in user.cases()) else 1


if __name__ == "__main__":
    sys.exit(main())
