#!/usr/bin/env python3
"""What goes wrong ends with one clear message, a status that says what kind it is, and nothing stored is lost."""

import copy
import json
import os
import signal
import sqlite3
import subprocess
import sys
import unittest

import product

ENDLESS = ("--budget", "1h", "--width", "0.0001", "--max-iterations", "100000")  # a probe that does not end by itself
BAD_INPUT, NOT_FOUND, PEER_LOST, STORAGE, UNAVAILABLE, INTERRUPTED = 2, 3, 7, 8, 9, 130


class Models(product.Product):
    def test_an_unknown_model_names_the_nearest(self):
        message = self.refused(NOT_FOUND, "resent50", "--probe")
        self.assertIn('model "resent50": no such profile (did you mean "resnet50"?)', message)

    def test_a_malformed_profile_names_the_place_value_and_rule(self):
        good = self.json("show", "profiles", "resnet50")
        self.assertEqual(good["format"], "commtune/profile/1")
        bad = copy.deepcopy(good)
        bad["layers"][12]["tensors"][0]["bytes"] = -4
        path = self.write("model.json", bad)
        message = self.refused(BAD_INPUT, str(path))
        self.assertIn(f"{path}: layers[12].tensors[0].bytes: expected a positive integer, got -4", message)

    def test_a_file_that_is_no_profile_is_named(self):
        for text in ("", "{", "[]", '{"format": "commtune/profile/2"}', '{"format": "commtune/plan/1"}', "\x00\x01"):
            with self.subTest(text=text):
                path = self.write("model.json", text)
                self.assertIn("model.json", self.refused(BAD_INPUT, str(path)))
        self.assertIn("absent.json", self.refused(NOT_FOUND, "absent.json"))


class Hosts(product.Product):
    def test_a_hostfile_names_line_and_rule(self):
        path = self.write("hosts", "localhost slots=1\nnode2 slots=two\n")
        self.assertIn(f'{path}:2: "slots=two": must be a whole number', self.refused(BAD_INPUT, "probe", "--hosts", str(path)))
        self.assertIn("absent: does not exist", self.refused(NOT_FOUND, "probe", "--hosts", "absent"))

    def test_a_dead_host_is_named_with_what_to_do(self):
        path = self.write("hosts", "localhost slots=1\nnowhere.invalid slots=1\n")
        message = self.refused(PEER_LOST, "probe", "--hosts", str(path))
        self.assertIn("host nowhere.invalid cannot be reached", message)
        self.assertIn("take it out of the host list", message)
        self.assertEqual(self.stored_samples(), 0)

    def test_a_host_that_does_not_answer_is_given_up(self):
        # A remote agent that hangs, as ssh does while a host is silent.
        agent = self.write("agent", "#!/bin/sh\nexec sleep 600\n")
        agent.chmod(0o755)
        path = self.write("hosts", "localhost slots=1\nnode2 slots=1\n")
        message = self.refused(6, "probe", "--hosts", str(path), "--start-timeout", "2s", OMPI_MCA_plm_rsh_agent=str(agent))
        self.assertIn("did not start in time", message)

    def test_a_missing_launcher_is_named(self):
        self.assertIn("/nowhere/mpirun", self.refused(UNAVAILABLE, "probe", "--mpirun", "/nowhere/mpirun"))

    def test_a_missing_rank_program_is_named(self):
        message = self.refused(UNAVAILABLE, "probe", "--local", "1", "--rank-program", "/nowhere/tune-rank")
        self.assertIn("/nowhere/tune-rank", message)


class Databases(product.Product):
    def test_a_newer_version_is_left_alone(self):
        self.ok("show", "plans")
        with sqlite3.connect(self.database) as connection:
            connection.execute("PRAGMA journal_mode = DELETE")
            connection.execute("PRAGMA user_version = 9999")
        before = self.database.read_bytes()
        for command in (["show", "plans"], ["probe"], ["resnet50"]):
            message = self.refused(STORAGE, *command)
            self.assertIn(str(self.database), message)
            self.assertIn("9999", message)
        self.assertEqual(self.database.read_bytes(), before)

    def test_what_is_no_database_is_left_alone(self):
        text = "my thesis\n" * 1000
        self.database.write_text(text, encoding="utf-8")
        for command in (["show", "plans"], ["probe"], ["resnet50"]):
            self.assertIn(str(self.database), self.refused(STORAGE, *command))
        self.assertEqual(self.database.read_text(encoding="utf-8"), text)

    def test_another_programs_database_is_left_alone(self):
        with sqlite3.connect(self.database) as connection:
            connection.execute("CREATE TABLE songs (title)")
        before = self.database.read_bytes()
        self.assertIn(str(self.database), self.refused(STORAGE, "show", "plans"))
        self.assertEqual(self.database.read_bytes(), before)

    def test_a_folder_that_cannot_be_made_is_named(self):
        self.write("file", "x")
        self.assertIn("file", self.refused(STORAGE, "show", "plans", "--db", str(self.home / "file" / "store.db")))


class Plans(product.Product):
    def test_a_plan_for_another_number_of_ranks(self):
        self.probe(ranks=2)
        answer = self.plan("--out", "plan.json")
        before = self.counts()
        message = self.refused(BAD_INPUT, "run", "latest", "--local", "3")
        self.assertIn("is for 2 ranks, the hosts offer 3", message)
        hosts = self.write("hosts", "localhost slots=1\n")
        message = self.refused(BAD_INPUT, "run", str(answer["plans"][answer["chosen"]]), "--hosts", str(hosts))
        self.assertIn("is for 2 ranks, the hosts offer 1", message)
        self.assertEqual(self.counts(), before)

    def test_a_plan_that_does_not_cover_its_profile(self):
        self.probe()
        self.plan("--out", "plan.json")
        plan = json.loads((self.home / "plan.json").read_text())
        plan["messages"] = plan["messages"][:-1]
        plan["priority"] = plan["priority"][:-1]
        self.write("plan.json", plan)
        self.assertIn("plan.json", self.refused(BAD_INPUT, "run", "plan.json"))

    def test_a_plan_whose_profile_is_unknown_says_how_to_name_it(self):
        self.probe()
        self.plan("--out", "plan.json")
        message = self.refused(NOT_FOUND, "run", "plan.json", "--db", str(self.home / "other.db"))
        self.assertIn("name it with --model", message)

    def test_an_unknown_plan(self):
        self.assertIn('plan "beef": no such file, id or digest', self.refused(NOT_FOUND, "run", "beef"))
        self.assertIn("nothing has been planned yet", self.refused(NOT_FOUND, "run", "latest"))


class Verifying(product.Product):
    def test_what_cannot_be_verified_is_refused_before_anything_runs(self):
        self.made_cluster()
        before = self.counts()
        here = ("resnet50", "--local", "4")
        for flags, why in (
            (("--verify-budget", "5s"), "--verify-budget requires --verify"),
            (("--verify", "1"), "verify: plans = 1: must be at least 2"),
            (("--verify", "few"), "--verify = few"),
            (("--verify", "--verify-budget", "5"), '--verify-budget: duration "5": no unit'),
            (("--verify", "--verify-budget", "0s"), "verify: budget = 0 s: must be positive"),
            (("--verify", "--workers", "5"), "verify: the job has 5 ranks, the hosts offer 4"),
        ):
            with self.subTest(flags):
                self.assertIn(why, self.refused(BAD_INPUT, *here, *flags))
        self.assertEqual(self.counts(), before)

    def test_what_cannot_be_checked_is_refused_before_anything_runs(self):
        self.made_cluster()
        before = self.counts()
        for flags, why in (
            (("--check", "5"), '--check: duration "5": no unit'),
            (("--check", "5s"), '--check: cluster "lab" is not this machine'),
            (("--check", "5s", "--local", "4", "--batch", "7"), "overrides: no plan can be run on a what-if"),
            (("--batch", "0"), "--batch"),
        ):
            with self.subTest(flags):
                self.assertIn(why, self.refused(BAD_INPUT, "resnet50", *flags))
        self.assertEqual(self.counts(), before)

    def test_where_no_plan_can_be_checked_the_answer_stands_and_says_why(self):
        self.made_cluster()
        for flags in (("--check", "5s"), ()):
            text = self.ok("resnet50", "--local", "4", *flags, "--rank-program", "/nowhere/tune-rank")
            self.assertRegex(text, "not checked by running the leading plans: .*/nowhere/tune-rank")

    def test_the_hosts_of_a_cluster_elsewhere_are_to_be_named(self):
        self.made_cluster()
        message = self.refused(BAD_INPUT, "resnet50", "--verify")
        self.assertIn('cluster "lab" is not this machine', message)
        self.assertIn("--hosts FILE", message)

    def test_where_no_plan_can_be_run_it_says_why(self):
        self.made_cluster()
        message = self.refused(UNAVAILABLE, "resnet50", "--verify", "--local", "4", "--rank-program", "/nowhere/tune-rank")
        self.assertIn("/nowhere/tune-rank", message)


class Interruptions(product.Product):
    """Ctrl-C reaches the foreground process; mpirun is in a group of its own."""

    def test_control_c_in_a_probe_keeps_its_samples(self):
        self.probe()
        kept = self.stored_samples()
        process = self.start("probe", "--cluster", "other", "--local", "2", *ENDLESS)
        self.wait_for(lambda: self.stored_samples() >= kept + 3, process)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=product.PATIENCE_SECONDS)
        self.assertEqual(process.returncode, INTERRUPTED, stderr)
        message = self.message(stderr)
        self.assertIn("interrupted", message)
        self.assertIn("are kept", message)
        self.assertGreaterEqual(self.stored_samples(), kept + 3)
        self.assertEqual(self.rows("SELECT count(*) FROM fits")[0][0], 1)
        self.assert_whole()

        # The same command goes on from there.
        samples = self.stored_samples()
        outcome = self.probe("--cluster", "other")
        self.assertGreaterEqual(outcome["resumed_samples"], 3)
        self.assertGreaterEqual(self.stored_samples(), samples)
        self.plan("--cluster", "other")

    def test_a_run_that_was_killed_is_interrupted_and_not_running_for_ever(self):
        self.probe()
        self.plan()
        process = self.start("run", "latest", "--iterations", "100000")
        running = lambda: self.rows("SELECT count(*) FROM runs WHERE state = 'running'") == [(1,)]
        self.wait_for(running, process)
        process.kill()
        process.wait(product.PATIENCE_SECONDS)
        self.assertTrue(running(), "it had no time to say so itself")
        run = self.json("show", "runs")["rows"][0]
        self.assertEqual(run["state"], "interrupted")
        self.assertIn(f"pid {process.pid} ", run["error"])

    def test_a_probe_that_was_killed_does_not_block_the_next(self):
        process = self.start("probe", "--local", "2", *ENDLESS)
        self.wait_for(lambda: self.stored_samples() >= 3, process)
        process.kill()
        process.wait(timeout=product.PATIENCE_SECONDS)
        kept = self.stored_samples()
        # Its ranks notice that nobody listens any more and end; until then they hold this machine's probe lock, and
        # the next probe is tried again.
        outcome = self.probe()
        self.assertGreaterEqual(outcome["resumed_samples"], kept)
        self.assert_whole()

    def test_control_c_in_a_run_keeps_its_iterations(self):
        self.probe()
        self.plan()
        process = self.start("run", "latest", "--iterations", "100000", "--progress", "always")
        self.wait_for(lambda: self.rows("SELECT count(*) FROM runs")[0][0] == 1, process)
        self.wait_a_moment_of_timing(process)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=product.PATIENCE_SECONDS)
        self.assertEqual(process.returncode, INTERRUPTED, stderr)
        self.assertIn("interrupted", self.message(stderr))
        run = self.json("show", "runs", "1")
        self.assertEqual(run["state"], "interrupted")
        self.assertGreater(run["iterations"], 0)

    def wait_a_moment_of_timing(self, process):
        for line in process.stderr:
            if "timing" in line:
                return
        self.fail("never came to timing")


class FullDisk(product.Product):
    """A file system of one megabyte, mounted where only the tested command sees it."""

    SCRIPT = """
set -e
mount -t tmpfs -o size=1m tmpfs "$1"
cp "$2" "$1/store.db"
head -c 2m /dev/zero > "$1/ballast" 2>/dev/null || true
export COMMTUNE_DB="$1/store.db"
shift 2
status=0
"$@" || status=$?
cp "$COMMTUNE_DB" "$HOME/after.db"
for suffix in -wal -shm; do [ ! -e "$COMMTUNE_DB$suffix" ] || cp "$COMMTUNE_DB$suffix" "$HOME/after.db$suffix"; done
exit $status
"""

    def on_full_disk(self, *arguments):
        (self.home / "disk").mkdir(exist_ok=True)
        unshare = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--map-root-user"]
        if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("this machine does not let us mount a small file system (unshare --mount fails)")
        return subprocess.run(
            [*unshare, "sh", "-c", self.SCRIPT, "sh", str(self.home / "disk"), str(self.database), product.program(), *arguments],
            env=self.environment,
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=product.PATIENCE_SECONDS,
            check=False,
        )

    def test_storing_on_a_full_disk(self):
        self.probe()
        with sqlite3.connect(self.database) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        before = self.counts()
        for command in (["probe", "--local", "2", "--budget", "2s", "-e", "64K"], ["resnet50", "--scale-bytes", "0.01"]):
            with self.subTest(command=command):
                done = self.on_full_disk(*command)
                self.assertEqual(done.returncode, STORAGE, done.stderr)
                self.assertIn("full", self.message(done.stderr))
                self.database = self.home / "after.db"
                self.assert_whole()
                after = self.counts()
                self.assertEqual({name: min(after[name], count) for name, count in before.items()}, before)


if __name__ == "__main__":
    if sys.platform != "linux":
        sys.exit("needs Linux")
    unittest.main(verbosity=2)
