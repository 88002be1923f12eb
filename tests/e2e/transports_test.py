#!/usr/bin/env python3
"""A cluster that is probed over every transport that works here: one ranking, and plans that say which they want."""

import json
import unittest

import product

SMALL = ("resnet50", "--scale-bytes", "0.01", "--scale-time", "0.02", "--draws", "8")


class Transports(product.Product):
    def probe_all(self):
        probe = self.probe("--transport", "auto")
        self.assertEqual(probe["cluster"]["transport"], "tcp")
        self.assertEqual([other["cluster"]["transport"] for other in probe["others"]], ["mpi"])
        self.assertLessEqual({each["transport"] for each in probe["unusable"]}, {"verbs"})
        return probe

    def test_plans_over_each_stand_in_one_ranking_and_run_over_theirs(self):
        probe = self.probe_all()
        cluster = self.json("show", "clusters", "local")
        self.assertEqual({each["transport"]: each["fit"] for each in cluster["transports"]},
                         {"tcp": probe["fit"], "mpi": probe["others"][0]["fit"]})
        self.assertEqual(len(cluster["current_fit"]["fit"]["others"]), 1)
        self.assertIn(f"fit {probe['others'][0]['fit']} over mpi", self.ok("show", "clusters", "local"))

        answer = self.json(*SMALL)
        transports = {entry["transport"] for entry in answer["ranking"]}
        self.assertEqual(transports, {"tcp", "mpi"})
        times = [entry["iteration_seconds"] for entry in answer["ranking"]]
        self.assertEqual(times, sorted(times))
        self.assertEqual(answer["fits"], {each["transport"]: each["fit"] for each in cluster["transports"]})
        self.assertIn(" over mpi", self.ok(*SMALL))

        runs = self.json("run", "latest", "--method", "wfbp-a2a@tcp", "--method", "wfbp-a2a@mpi", "--iterations", "2")["runs"]
        self.assertEqual([run["report"]["transport"] for run in runs], ["tcp", "mpi"])
        stored = [self.json("show", "runs", str(run["run"]))["settings"]["network"] for run in runs]
        self.assertEqual(stored, ["tcp", "mpi"])

        plan = self.json("show", "plans", str(answer["plans"]["bsp-a2a@mpi"]))["plan"]
        self.assertEqual(plan["transport"], "mpi")
        (self.home / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
        (run,) = self.json("run", "plan.json", "--iterations", "2", "--model", self.model_of(answer))["runs"]
        self.assertEqual(run["report"]["transport"], "mpi")
        self.assertGreater(run["predicted_seconds"], 0)

    def model_of(self, answer):
        return self.json("show", "plans", str(answer["id"]))["plan"]["layout"]

    def test_one_of_them_may_be_asked_for(self):
        probe = self.probe_all()
        answer = self.json(*SMALL, "--transport", "mpi")
        self.assertEqual(answer["fit"], probe["others"][0]["fit"])
        self.assertFalse([entry for entry in answer["ranking"] if "transport" in entry])
        (run,) = self.json("run", "latest", "--iterations", "2")["runs"]
        self.assertEqual(run["report"]["transport"], "mpi")
        self.assertIn("was probed over tcp, mpi", self.refused(3, *SMALL, "--transport", "verbs"))

    def test_threads_of_one_process_are_for_no_launch(self):
        said = self.refused(9, "probe", "--transport", "local")
        self.assertIn("transport local: its ranks are threads of one process, and these are processes: use one of mpi, tcp", said)

    def test_a_check_runs_plans_over_theirs(self):
        self.probe_all()
        answer = self.json(*SMALL, "--local", "2", "--check", "3s")
        self.assertTrue(answer["checked"], answer["check"])
        for plan in answer["check"]["plans"]:
            self.assertIn(plan["transport"], ("tcp", "mpi"))
        for row in self.json("show", "runs")["rows"]:
            run = self.json("show", "runs", str(row["id"]))
            plan = self.json("show", "plans", str(row["plan"]))["plan"]
            self.assertEqual(run["settings"]["network"], plan["transport"])

    def test_probing_over_one_more_adds_it(self):
        self.probe()
        self.assertFalse([entry for entry in self.json(*SMALL)["ranking"] if "transport" in entry])
        self.probe("--network", "mpi")
        self.assertEqual({entry["transport"] for entry in self.json(*SMALL)["ranking"]}, {"tcp", "mpi"})

    def test_a_cluster_file_has_all_of_them(self):
        self.probe_all()
        (self.home / "lab.json").write_text(self.ok("show", "clusters", "local", "--json"), encoding="utf-8")
        answer = self.json(*SMALL, "--cluster-file", "lab.json")
        self.assertEqual({entry["transport"] for entry in answer["ranking"]}, {"tcp", "mpi"})
        self.assertIsNone(answer["fit"])


if __name__ == "__main__":
    unittest.main()
