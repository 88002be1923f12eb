#!/usr/bin/env python3
"""What would happen with more workers, more servers, another network: on made-up numbers, which no probe can spoil."""

import csv
import json
import unittest

import product

SMALL = ("resnet50", "--scale-bytes", "0.01", "--scale-time", "0.02", "--draws", "8")
BY_COMPUTE = ("resnet50", "--scale-bytes", "0.01", "--scale-time", "0.5", "--draws", "8")  # which bounds its iteration


class WhatIf(product.Product):
    def setUp(self):
        super().setUp()
        self.made_cluster()

    def rows_of(self, name):
        with open(self.home / name, newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def test_curves_over_workers(self):
        answer = self.json("scale", *SMALL, "--workers", "1..16", "--csv", "curves.csv")
        self.assertEqual(answer["model"], "resnet50")
        methods = {curve["method"] for curve in answer["curves"]}
        self.assertLessEqual({"bsp-ps", "mg-wfbp", "joint"}, methods)
        joint = next(curve for curve in answer["curves"] if curve["method"] == "joint")["points"]
        self.assertEqual([point["workers"] for point in joint], [1, 2, 4, 8, 16])
        self.assertAlmostEqual(joint[0]["speedup"], 1)
        for point in joint:
            self.assertLessEqual(point["efficiency_ratio"], 1 + 1e-9)
            self.assertLessEqual(point["low_seconds"], point["high_seconds"])
            fastest = min(p["iteration_seconds"] for c in answer["curves"] for p in c["points"] if p["workers"] == point["workers"])
            self.assertLessEqual(point["iteration_seconds"], fastest * (1 + 1e-9))
        ring = next(curve for curve in answer["curves"] if curve["method"] == "bsp-a2a")["points"]
        self.assertEqual((ring[2]["basis"], ring[4]["basis"]), ("measured", "formula"))  # with 4 workers and with 16
        self.assertEqual(len(self.rows_of("curves.csv")), 5 * len(methods))

        text = self.ok("scale", *SMALL, "--workers", "2,4", "--method", "mg-wfbp")
        self.assertIn("speed-up over one worker:", text)
        self.assertRegex(text, r"(?m)^ +4  MG-WFBP ")
        self.assertIn('did you mean "mg-wfbp"?', self.refused(3, "scale", *SMALL, "--workers", "2", "--method", "mgwfbp"))

    def test_sweep_over_servers(self):
        answer = self.json("scale", *SMALL, "--workers", "8", "--servers", "0..8", "--csv", "servers.csv")
        self.assertEqual([point["servers"] for point in answer["points"]], [0, 1, 2, 4, 8])
        self.assertIn("all-to-all", answer["points"][0]["road"])
        first, second = answer["points"][0:2]
        self.assertAlmostEqual(second["marginal_gain_ratio"], 1 - second["iteration_seconds"] / first["iteration_seconds"])
        self.assertEqual(len(self.rows_of("servers.csv")), 5)
        self.assertIn("marginal gain", self.ok("scale", *SMALL, "--servers", "1,2", "--placement", "dedicated"))
        self.assertIn("--workers: must be one number", self.refused(2, "scale", *SMALL, "--workers", "1..4", "--servers", "1"))
        self.assertIn("servers = 9", self.refused(2, "scale", *SMALL, "--workers", "8", "--servers", "9"))

    def test_map_of_winners(self):
        answer = self.json("map", *SMALL, "--workers", "2..8", "--bandwidth", "1Gbit..4Gbit", "--csv", "map.csv")
        self.assertEqual(len(answer["cells"]), 9)
        self.assertEqual(len(self.rows_of("map.csv")), 9)
        for cell in answer["cells"]:
            self.assertGreaterEqual(cell["joint_win_ratio"], 1 - 1e-9)
        slow, fast = (answer["time_per_byte_factors"][i] * answer["measured_seconds_per_byte"] for i in (0, 2))
        self.assertAlmostEqual(slow / 8e-9, 1)
        self.assertAlmostEqual(fast / 2e-9, 1)

        text = self.ok("map", *SMALL, "--workers", "2,4", "--latency", "1us..64us", "--bandwidth", "1Gbit")
        self.assertIn("workers down, latency across", text)
        self.assertRegex(text, r"(?m)^  A  .+ \(\d+ cells?\)$")
        self.assertIn("two axes", self.refused(2, "map", *SMALL, "--workers", "2,4", "--latency", "1us,2us"))
        for flag, text in (("--bandwidth", "fast"), ("--latency", "0us..1us"), ("--workers", "0..4")):
            with self.subTest(flag=flag):
                self.refused(2, "map", *SMALL, flag, text)

    def test_explanation_of_a_plan(self):
        text = self.ok(*SMALL, "--explain", "--predicted-trace", "trace.json")
        self.assertIn("critical path", text)
        self.assertIn("what would help", text)
        self.assertIn("update and forward", text)
        trace = json.loads((self.home / "trace.json").read_text())
        self.assertGreater(len(trace["traceEvents"]), 161)
        answer = self.json(*SMALL, "--explain", "--method", "wfbp-ps")
        explanation = answer["explanation"]
        path = explanation["critical_path"]
        self.assertEqual(explanation["method"], "WFBP-PS")
        self.assertEqual(path[0]["from_seconds"], 0)
        for before, after in zip(path, path[1:]):
            self.assertLessEqual(before["until_seconds"], after["from_seconds"] + 1e-9)
        self.assertLessEqual(len(explanation["improvements"]), 3)
        self.assertGreater(explanation["server_sends_bytes"], 0)
        for flip in explanation["flip_points"]:
            self.assertIn("wins once", flip["sentence"])

    def test_a_cluster_from_a_file(self):
        """What `tune show` prints can be changed and asked about; nothing in the store changes but the plans."""
        shown = self.json("show", "clusters", "lab")
        self.write("as-it-is.json", shown)
        as_stored = self.json(*BY_COMPUTE)
        same = self.json(*BY_COMPUTE, "--cluster-file", "as-it-is.json")
        self.assertIsNone(same["fit"])
        self.assertEqual(same["bound_seconds"], as_stored["bound_seconds"])
        self.assertEqual(same["ranking"][0]["iteration_seconds"], as_stored["ranking"][0]["iteration_seconds"])

        cluster = shown["current_fit"]["fit"]
        cluster["name"] = "imagined"
        cluster["hosts"][0]["compute_factor"] = 2
        self.write("slower.json", cluster)
        slower = self.json(*BY_COMPUTE, "--cluster-file", "slower.json", "--explain")
        self.assertEqual(slower["cluster"], "imagined")
        self.assertGreater(slower["bound_seconds"], same["bound_seconds"])
        self.assertIn("cluster imagined: 4 workers, given by a file", self.ok(*SMALL, "--cluster-file", "slower.json"))
        plan = str(slower["plans"]["joint"])
        self.assertEqual(self.json("show", "plans", plan)["cluster_name"], "")

        curve = self.json("scale", *SMALL, "--cluster-file", "slower.json", "--workers", "1,2")
        self.assertEqual((curve["cluster"], curve["fit"]), ("imagined", None))
        self.assertEqual(len(self.json("map", *SMALL, "--cluster-file", "slower.json", "--workers", "2")["cells"]), 9)

    def test_a_link_whose_bytes_were_too_few_to_cost_anything(self):
        cluster = self.json("show", "clusters", "lab")["current_fit"]["fit"]
        for link in cluster["links"].values():
            link["alone"]["curve"] = [{**link["alone"]["curve"][0], "beta_seconds_per_byte": 0}]
            link["alone"]["covariance"] = []
        self.write("flat.json", cluster)
        answer = self.json("map", *SMALL, "--cluster-file", "flat.json", "--workers", "2", "--bandwidth", "1Gbit")
        self.assertGreater(answer["measured_seconds_per_byte"], 0)

    def test_a_cluster_file_that_is_wrong(self):
        """The message names the file, the place in it, the value and the rule."""
        shown = self.json("show", "clusters", "lab")
        shown["current_fit"]["fit"]["hosts"][0]["compute_factor"] = 0
        self.write("wrong.json", shown)
        message = self.refused(2, *SMALL, "--cluster-file", "wrong.json")
        self.assertIn("wrong.json: current_fit.fit.hosts[0].compute_factor: expected", message)
        shown["current_fit"] = None
        self.write("unprobed.json", shown)
        self.assertIn("current_fit: null", self.refused(2, *SMALL, "--cluster-file", "unprobed.json"))
        self.write("text.json", "{")
        self.assertIn("text.json", self.refused(2, *SMALL, "--cluster-file", "text.json"))
        self.refused(3, *SMALL, "--cluster-file", "absent.json")


if __name__ == "__main__":
    unittest.main(verbosity=2)
