#!/usr/bin/env python3
"""The whole path on an emulated cluster of four hosts: other machines, as far as the product can tell.

Skipped (77) where network namespaces or TAP devices cannot be made; says why.
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[1] / "cluster"
NAME = f"e2e{os.getpid()}"
SUBNET = "10.77.0.0/24"  # of emulated hosts
UNSUPPORTED = 77
PATIENCE_SECONDS = 600  # with what ends at once, except on a slow machine under load; spent only where something hangs
CUT_TIMEOUT = 11  # seconds; a message of a run that goes well never takes that long


def script(name, *arguments):
    return subprocess.run([SCRIPTS / name, *arguments], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)


def ranks_left(patience=120):
    """Rank programs that still run in the cluster's hosts, zombies left out; those that are about to end get so many seconds."""
    deadline = time.monotonic() + patience
    while True:
        left = []
        for host in range(1, 5):
            done = subprocess.run(["ip", "netns", "pids", f"commtune-{NAME}-h{host}"], capture_output=True, text=True, check=True)
            for number in done.stdout.split():
                with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                    command = Path(f"/proc/{number}/cmdline").read_bytes().split(b"\0")[0]
                    if command.endswith(b"tune-rank"):
                        left.append(f"h{host}: {number}")
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.1)


class FourHosts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        done = script("up", "--name", NAME, "--hosts", "4", "--rate", "1Gbit", "--delay", "200us",
                      "--switch", os.environ["COMMTUNE_E2E_SWITCH"], "--print-hostfile")
        if done.returncode == UNSUPPORTED:
            print(f"skipped: {done.stderr.strip()}", flush=True)
            sys.exit(UNSUPPORTED)
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        cls.addClassCleanup(script, "down", "--name", NAME)
        cls.hostfile = done.stdout.strip()
        cls.folder = tempfile.TemporaryDirectory(prefix="commtune-e2e-")
        cls.addClassCleanup(cls.folder.cleanup)
        cls.home = Path(cls.folder.name)
        cls.database = cls.home / "store.db"

    def tune(self, *arguments):
        command = [os.environ["COMMTUNE_E2E_TUNE"], *arguments, "--db", str(self.database)]
        if arguments[0] != "show":
            command += ["--cluster", "four"]
        return subprocess.run(
            [SCRIPTS / "exec", "--name", NAME, "--", *command],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False, cwd=self.home,
        )

    def json(self, *arguments):
        done = self.tune(*arguments, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_1_probe_finds_the_links(self):
        few = ("-e", "1M", "-f", "8", "-n", "2", "--max-iterations", "2", "--budget", f"{PATIENCE_SECONDS}s")  # however slow the machine is
        probe = self.json("probe", "--hosts", self.hostfile, *few, "--compare")
        self.assertEqual([host["name"] for host in probe["cluster"]["hosts"]], ["h1", "h2", "h3", "h4"])
        iperf3 = [tool for tool in probe["tools"] if tool["tool"] == "iperf3"]
        self.assertEqual([(tool["from"], tool["to"], tool["problem"]) for tool in iperf3], [("h1", "h2", ""), ("h2", "h1", "")])
        self.assertTrue(all(tool["bytes_per_second"] > 0 for tool in iperf3))

    def test_2_plan_and_run(self):
        answer = self.json("resnet50", "--scale-bytes", "0.02", "--scale-time", "0.1")
        self.assertEqual(answer["workers"], 4)
        runs = self.json("run", "latest", "--method", "best", "--method", "wfbp-ps", "--hosts", self.hostfile,
                         "--iterations", "3", "--warmup", "1")["runs"]
        for run in runs:
            self.assertEqual(run["report"]["check"]["tensors"], 4 * 161)
            self.assertEqual([rank["host"] for rank in run["report"]["ranks"]], ["h1", "h2", "h3", "h4"])

    def test_3_a_dead_host_is_named(self):
        hostfile = self.home / "hosts"
        hostfile.write_text("h1 slots=1\nh9 slots=1\n", encoding="utf-8")
        done = self.tune("probe", "--hosts", str(hostfile))
        self.assertEqual(done.returncode, 7, done.stderr)
        self.assertIn("host h9 cannot be reached", done.stderr)

    def test_4_a_link_that_is_cut_ends_the_run(self):
        command = [SCRIPTS / "exec", "--name", NAME, "--", os.environ["COMMTUNE_E2E_TUNE"], "run", "latest",
                   "--method", "wfbp-ps", "--hosts", self.hostfile, "--db", str(self.database), "--iterations", "100000",
                   "--timeout", f"{CUT_TIMEOUT}s", "--progress", "always"]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            for line in process.stderr:
                if "timing" in line:
                    break
            self.assertEqual(script("control", "--name", NAME, "cut", "3").returncode, 0)
            _, stderr = process.communicate(timeout=PATIENCE_SECONDS)
            left = ranks_left()
        finally:
            process.kill()
            script("control", "--name", NAME, "restore", "3")
        self.assertIn(process.returncode, (6, 7), stderr)
        messages = [line for line in stderr.splitlines() if line.startswith("tune: ")]
        self.assertEqual(len(messages), 1, stderr)
        # Who waited for whom, how long, and with what: "rank 1 (host h2): waited 11.0 s for rank 2 (host h3) in the
        # reduce stage of message 5 (fc.weight)"; a server that waits says so.
        self.assertRegex(messages[0], rf"rank \d \(host h\d\).* waited {CUT_TIMEOUT}\.0 s for rank \d \(host h\d\)")
        self.assertRegex(messages[0], r"(in the (reduce|distribute) stage of|to push) message \d+ \([\w.]+")
        self.assertEqual(left, [], "ranks outlived the run")
        newest = self.json("show", "runs")["rows"][0]
        self.assertEqual(newest["state"], "failed")
        self.assertGreater(newest["iterations"], 0)

    def test_5_ranks_keep_to_the_subnet_that_they_are_told(self):
        few = ("run", "latest", "--hosts", self.hostfile, "--iterations", "1", "--warmup", "0")
        run = self.json(*few, "--subnet", SUBNET)["runs"][0]
        self.assertEqual(self.json("show", "runs", str(run["run"]))["settings"]["transport"]["subnet"], SUBNET)
        done = self.tune(*few, "--subnet", "203.0.113.0/24")
        self.assertEqual(done.returncode, 9, done.stderr)
        self.assertIn("203.0.113.0/24", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
