#!/usr/bin/env python3
"""The main job on this machine: probe, plan, run, look at it."""

import contextlib
import json
import os
import signal
import sqlite3
import unittest
from pathlib import Path

import product

SURVEY = {"bsp-ps", "bsp-a2a", "wfbp-ps", "wfbp-a2a", "mg-wfbp", "bytescheduler-ps", "bytescheduler-a2a"}


class MainPath(product.Product):
    def test_probe_plan_run_show(self):
        probe = self.probe()
        self.assertEqual(probe["cluster"]["name"], "local")
        self.assertGreater(self.stored_samples(), 5)

        answer = self.plan()
        methods = [entry["method"] for entry in answer["ranking"]]
        self.assertLessEqual(SURVEY | {"ddp-25mib", "joint"}, set(methods))
        self.assertIn(answer["chosen"], methods)
        self.assertEqual(set(answer["plans"]), set(methods))
        for entry in answer["ranking"]:
            self.assertGreaterEqual(entry["iteration_seconds"], answer["bound_seconds"] * (1 - 1e-9), entry["method"])

        runs = self.json("run", "latest", "--method", "best", "--method", "worst", "--iterations", "3")["runs"]
        self.assertEqual(len(runs), 2)
        for run in runs:
            self.assertEqual(run["workload"], "replay")
            self.assertEqual(run["report"]["check"]["tensors"], 2 * 161)
            self.assertEqual(len(run["report"]["iteration_seconds"]), 3)
            self.assertGreater(run["predicted_seconds"], 0)

        stored = self.json("show", "runs")["rows"]
        self.assertEqual([row["state"] for row in stored], ["complete", "complete"])
        self.assertEqual(self.json("show", "clusters", "local")["current_fit"]["id"], probe["fit"])
        self.assertEqual(len(self.json("show", "plans")["rows"]), len(methods))
        run = self.json("show", "runs", str(stored[0]["id"]))
        self.assertEqual((run["iterations"], run["settings"]["workload"]), (3, "replay"))
        self.assert_whole()

    def test_plans_take_turns_in_one_session(self):
        self.probe()
        self.plan()
        runs = self.json("run", "latest", "--method", "all", "--iterations", "10", "--trace", "traces")["runs"]
        stored = [self.json("show", "runs", str(run["run"])) for run in runs]
        self.assertEqual(len({run["settings"]["group"] for run in stored}), 1)
        self.assertEqual({run["state"] for run in stored}, {"complete"})
        for run in runs:
            self.assertEqual(len(run["report"]["iteration_seconds"]), 10)
            self.assertTrue((self.home / "traces" / run["report"]["method"] / "all_ranks.json").is_file())

    def test_a_rank_that_dies_ends_no_plan_but_the_one_under_way(self):
        self.probe()
        self.plan()
        # Plans have one turn each, since they are timed for so few iterations; warming up takes its time.
        process = self.start("run", "latest", "--method", "all", "--iterations", "5", "--warmup", "300", "--json")
        complete = "SELECT count(*) FROM runs WHERE state = 'complete'"
        self.wait_for(lambda: self.counts().get("runs", 0) and self.rows(complete)[0][0] > 0, process)
        os.kill(max(self.ranks_under(process.pid)), signal.SIGKILL)
        stdout, stderr = process.communicate(timeout=product.PATIENCE_SECONDS)
        self.assertNotEqual(process.returncode, 0, stderr)
        self.assertIn("rank", self.message(stderr))
        rows = self.json("show", "runs")["rows"]
        states = [row["state"] for row in rows]
        self.assertEqual((states.count("failed"), states.count("complete")), (1, len(states) - 1), rows)
        self.assertEqual(len(json.loads(stdout)["runs"]), len(states) - 1)

    @staticmethod
    def ranks_under(pid):
        """Process ids of the ranks that a process has started."""
        found, left = [], [pid]
        while left:
            parent = left.pop()
            for children in Path(f"/proc/{parent}/task").glob("*/children"):
                left += [int(child) for child in children.read_text().split()]
            if Path(f"/proc/{parent}/comm").read_text().strip() == "tune-rank":
                found.append(parent)
        return found

    def test_a_probe_refines_what_a_model_needs(self):
        named = self.probe("--for", "resnet50")
        (note,) = (note for note in named["notes"] if "by what plans need" in note)
        self.assertRegex(note, r"chose resnet50: [\w -]+$")
        self.assertGreater(named["budget_split"]["planning_seconds"], 0)
        self.assertEqual(self.json("show", "samples")["rows"][0]["settings"]["for"], ["resnet50"])

        usual = self.probe("--fresh")
        self.assertFalse([note for note in usual["notes"] if "by what plans need" in note])
        self.assertNotIn("for", self.json("show", "samples")["rows"][0]["settings"])

        self.assertIn('did you mean "resnet50"?', self.refused(3, "probe", "--local", "2", "--for", "resnet5"))

    def test_tables_for_people(self):
        self.assertIn("all-reduce", self.ok("probe", "--local", "2", *product.FEW))
        text = self.ok("resnet50", "--scale-bytes", "0.01", "--scale-time", "0.02", "--explain")
        self.assertIn("scaled by request: tensor sizes x 0.01, layer times x 0.02", text)
        self.assertIn("lower bound:", text)
        self.assertIn("MG-WFBP", text)
        self.assertIn("which starts:  mpirun ", text)
        text = self.ok("run", "latest", "--iterations", "2", "--warmup", "1")
        self.assertIn("replay of resnet50", text)
        self.assertIn("gradients: 322 tensors compared in full", text)
        self.assertRegex(text, r"method +predicted +measured")
        for what in ("clusters", "fits", "profiles", "plans", "runs", "samples"):
            with self.subTest(what=what):
                self.assertIn("id  ", self.ok("show", what))

    def test_a_comparison_that_cannot_be_made_says_so_and_keeps_the_probe(self):
        flags = ["probe", "--local", "2", *product.FEW, "--compare"]
        done = self.tune(*flags)
        self.assertEqual(done.returncode, 9, done.stderr)
        self.assertIn("all-reduce", done.stdout)
        self.assertIn("iperf3 was not compared: there is one host only", done.stdout)
        self.assertIn("iperf3: there is one host only", self.message(done.stderr))
        done = self.tune(*flags, "--json")
        self.assertEqual(done.returncode, 9, done.stderr)
        probe = json.loads(done.stdout)
        self.assertEqual(self.json("show", "clusters", "local")["current_fit"]["id"], probe["fit"])

    def test_one_call_from_nothing_to_a_plan(self):
        text = self.ok("resnet50", "--probe", "--local", "2", "--scale-bytes", "0.001")
        self.assertIn("> ", text)

    def test_plans_as_files(self):
        self.probe()
        self.plan("--out", "chosen.json", "--out-dir", "all")
        chosen = json.loads((self.home / "chosen.json").read_text())
        self.assertEqual(chosen["format"], "commtune/plan/1")
        for name in SURVEY:
            self.assertTrue((self.home / "all" / f"{name}.json").exists())
        runs = self.json("run", "all/wfbp-a2a.json", "--iterations", "2", "--trace", "traces")["runs"]
        self.assertEqual(runs[0]["report"]["method"], "wfbp-a2a")
        self.assertGreater(runs[0]["predicted_seconds"], 0)
        traces = sorted((self.home / "traces").iterdir())
        self.assertEqual([trace.name for trace in traces], ["all_ranks.json", "predicted.json", "rank0.json", "rank1.json"])
        processes = {event["args"].get("name") for event in json.loads(traces[0].read_text())["traceEvents"] if event["ph"] == "M"}
        self.assertIn("predicted", processes)
        for trace in traces:
            self.assertGreater(len(json.loads(trace.read_text())["traceEvents"]), 161)

    def test_a_plan_is_found_by_id_digest_and_method(self):
        self.probe()
        answer = self.plan()
        identity = str(answer["plans"][answer["chosen"]])
        digest = self.json("show", "plans", identity)["digest"]
        for name in (identity, digest, digest[:8]):
            run = self.json("run", name, "--iterations", "1", "--warmup", "0")["runs"][0]
            self.assertEqual(run["report"]["plan_digest"], digest)
        run = self.json("run", identity, "--method", "ddp-25mib", "--iterations", "1")["runs"][0]
        self.assertEqual(run["report"]["method"], "ddp-25mib")
        self.assertIn('did you mean "ddp-25mib"?', self.refused(3, "run", identity, "--method", "ddp-25"))

    def test_the_launch_command_can_be_seen_first(self):
        text = self.ok("probe", "-H", "h1:2,h2:2", "--dry-run")
        self.assertRegex(text, r"^mpirun .*-np 4 --host h1:2,h2:2 .*tune-rank\n$")


class Checked(product.Product):
    """Where hosts are named, or with --check, the leading plans run before the answer is given."""

    def test_what_runs_tell_makes_a_fit_that_the_plan_rests_on(self):
        probe = self.probe()
        self.assertEqual((self.plan()["checked"], self.counts().get("runs", 0)), (False, 0))
        answer = self.plan("--local", "2", "--check", "2s")
        self.assertTrue(answer["checked"], answer["check"])
        check = answer["check"]
        runs = self.json("show", "runs")["rows"]
        self.assertEqual(len(runs), len(check["plans"]))
        self.assertEqual({row["state"] for row in runs}, {"complete"})
        self.assertEqual(self.json("show", "plans", "latest")["id"], answer["id"])

        samples = self.json("show", "samples", str(probe["session"]), "--limit", "1000")["rows"]
        told = [sample["detail"] for sample in samples if sample["kind"] == "plan"]
        if check["roads"]:
            self.assertGreater(answer["fit"], probe["fit"])
            self.assertEqual(self.json("show", "fits", str(answer["fit"]))["settings"]["checked"]["fit"], probe["fit"])
            # One that told something under the costs of an earlier round may be hidden under those of the last.
            told_plans = {detail["plan"] for detail in told}
            self.assertLessEqual({plan["plan_digest"] for plan in check["plans"] if not plan["hidden"]}, told_plans)
            self.assertLessEqual(told_plans, {plan["plan_digest"] for plan in check["plans"]})
        else:
            self.assertEqual((answer["fit"], told), (probe["fit"], []))
        self.assert_whole()

    def test_it_is_told_in_a_line_and_can_be_left_out(self):
        self.probe()
        small = ("resnet50", "--scale-bytes", "0.01", "--scale-time", "0.02", "--local", "2")
        self.assertRegex(self.ok(*small, "--check", "1s"), r"checked [1-9] plans? by running (it|them) for .*: .*; ")
        for flag in (("--no-check",), ("--check", "0"), ("--bandwidth-scale", "2"), ("--keep", "none")):
            self.assertNotIn("checked", self.ok(*small, *flag))
        self.assertNotIn("checked", self.ok(*small[:-2]), "no hosts were named")
        self.assertRegex(self.ok(*small), r"checked [1-9] plans? by running")


class Verified(product.Product):
    """Plans that nothing tells apart are run: without draws all are in doubt."""

    IN_DOUBT = ("--draws", "0", "--verify", "2")

    def test_what_cannot_be_told_apart_is_run_and_the_measurement_chooses(self):
        self.probe()
        answer = self.plan(*self.IN_DOUBT, "--local", "2", "--verify-budget", "5s")
        verified = answer["verified"]
        self.assertIn(verified["plans"], (1, 2))  # one where a single run takes all of the budget
        measured = [entry for entry in answer["ranking"] if "measured_seconds" in entry]
        self.assertEqual(answer["ranking"][: len(measured)], measured)
        self.assertEqual(verified["changed"], answer["chosen"] != verified["predicted"])
        self.assertEqual(verified["certain"], verified["end"] != "budget")
        self.assertIn("Measured ", answer["reason"])

        runs = {row["id"]: row for row in self.json("show", "runs")["rows"]}
        self.assertEqual({run for ids in answer["runs"].values() for run in ids}, set(runs))
        groups = {self.json("show", "runs", str(run))["settings"]["group"] for run in runs}
        self.assertEqual(len(groups), 1)
        self.assertEqual({row["state"] for row in runs.values()}, {"complete"})
        self.assertEqual(self.json("show", "runs", str(min(runs)))["settings"]["workload"], "replay")
        self.assertEqual(self.json("show", "plans", "latest")["id"], answer["id"])
        self.assertEqual(self.json("run", "latest", "--iterations", "1")["runs"][0]["report"]["method"], answer["chosen"])
        self.assert_whole()

    def test_the_table_shows_measured_beside_predicted(self):
        self.probe()
        text = self.ok("resnet50", "--scale-bytes", "0.01", "--scale-time", "0.02", *self.IN_DOUBT, "--verify-budget", "1s")
        self.assertRegex(text, r"iteration +measured")
        self.assertRegex(text, r"> .* ms .* ± ")
        self.assertRegex(text, r"Measured [12] plans? in .* rounds? \(.*\): ")
        self.assertRegex(self.ok("show", "plans", "latest"), r"Measured [12] plans? .*\nmeasured by runs \d")

    def test_control_c_ends_it_and_keeps_the_prediction(self):
        self.probe()
        process = self.start("resnet50", *self.IN_DOUBT, "--verify-budget", "1h")
        self.wait_for(lambda: self.counts().get("runs", 0) > 0, process)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=product.PATIENCE_SECONDS)
        self.assertEqual(process.returncode, 130, stderr)
        self.assertIn("interrupted", self.message(stderr))
        self.assertLessEqual({row["state"] for row in self.json("show", "runs")["rows"]}, {"complete", "interrupted"})
        self.assertNotIn("verified", self.json("show", "plans", "latest")["ranking"]["answer"])
        self.assert_whole()


class Conditions(product.Product):
    """What a plan rests on, when something has changed since."""

    def as_if_fitted_with(self, fact, value):
        """Changes the stored fit, as if it had been made when the fact had this value."""
        with contextlib.closing(sqlite3.connect(self.database)) as connection, connection:
            ((fit, text),) = connection.execute("SELECT id, snapshot FROM fits").fetchall()
            snapshot = json.loads(text)
            (name,) = (name for name in snapshot["facts"] if name.endswith(fact))
            snapshot["facts"][name] = value
            connection.execute("UPDATE fits SET snapshot = ? WHERE id = ?", (json.dumps(snapshot), fit))

    def test_another_release_is_told_of_and_refused_when_strict(self):
        self.probe()
        self.assertEqual(self.plan("--strict")["differences"], [])
        run = ("run", "latest", "--iterations", "2")
        self.assertEqual(self.json(*run, "--strict")["runs"][0]["differences"], [])
        self.as_if_fitted_with(".open_mpi", "3.0.0")

        done = self.tune(*run, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        (outcome,) = json.loads(done.stdout)["runs"]
        (difference,) = outcome["differences"]
        self.assertRegex(difference, r"^release of open_mpi on .*: 3\.0\.0 when it was fitted, \d.* now$")
        self.assertIn(difference, done.stderr)
        self.assertEqual(self.json("show", "runs", str(outcome["run"]))["differences"], [difference])
        self.assertIn(difference, self.ok("show", "runs", str(outcome["run"])))
        self.assertEqual([row["differences"] for row in self.json("show", "runs")["rows"]], [[difference], []])
        newest, before = self.ok("show", "runs").splitlines()[1:]
        self.assertIn("complete, other conditions", newest)
        self.assertNotIn("other conditions", before)

        self.assertIn(difference, self.refused(5, *run, "--strict"))
        refused = self.json("show", "runs")["rows"][0]
        self.assertEqual((refused["state"], refused["iterations"]), ("failed", 0))

        self.assertEqual(self.plan()["differences"], [difference])
        self.assertIn(difference, self.ok("show", "plans", "latest"))
        self.assertIn(difference, self.refused(5, "resnet50", "--strict"))

    def test_an_old_fit_is_marked(self):
        self.probe()
        self.assertFalse(self.plan()["stale"])
        self.assertTrue(self.plan("--fit-age", "1ms")["stale"])
        self.environment["COMMTUNE_FIT_AGE"] = "1ms"
        self.assertTrue(self.json("show", "fits")["rows"][0]["stale"])
        self.assertIn("stale", self.ok("show", "fits"))
        self.assertIn("older than", self.ok("resnet50", "--scale-bytes", "0.01", "--scale-time", "0.02"))
        for what_if in (("scale", "resnet50", "--workers", "2"), ("scale", "resnet50", "--workers", "2", "--servers", "1"),
                        ("map", "resnet50", "--workers", "2", "--bandwidth", "1Gbit")):
            self.assertIn("older than", self.ok(*what_if))
            self.assertTrue(self.json(*what_if)["stale"])

    def test_a_plan_runs_with_its_model_timed_again(self):
        self.probe()
        plan = self.plan()
        profile = self.json("show", "profiles", str(plan["profile"]))
        for layer in profile["layers"]:
            layer["backward_seconds"] *= 2
        path = self.write("timed-again.json", profile)
        (before,) = self.json("run", "latest", "--iterations", "2")["runs"]
        (after,) = self.json("run", "latest", "--iterations", "2", "--model", str(path))["runs"]
        self.assertEqual(after["report"]["plan_digest"], before["report"]["plan_digest"])
        self.assertNotEqual(after["report"]["profile_digest"], before["report"]["profile_digest"])
        self.assertGreater(after["predicted_seconds"], before["predicted_seconds"])
        profile["layers"][0]["tensors"][0]["name"] = "another"
        self.assertIn("layout", self.refused(2, "run", "latest", "--model", str(self.write("other.json", profile))))


if __name__ == "__main__":
    unittest.main(verbosity=2)
