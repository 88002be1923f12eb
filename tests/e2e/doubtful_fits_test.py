#!/usr/bin/env python3
"""Rankings that rest on fits which the probe calls doubtful, and on none that is usable."""

import json
import sqlite3
import unittest

import product

DOUBTFUL = {"p90_relative": 0.5}
UNUSABLE = {"median_relative": 0.6, "p90_relative": 2.0, "r_squared": -0.2}


class DoubtfulFits(product.Product):
    def setUp(self):
        super().setUp()
        self.made_cluster()

    def judge(self, quality):
        """Gives every stored fit this quality."""
        connection = sqlite3.connect(self.database)
        with connection:
            ((fit, text),) = connection.execute("SELECT id, snapshot FROM fits").fetchall()
            snapshot = json.loads(text)
            for each in [*snapshot["operations"], *snapshot["links"].values()]:
                for setting in ("alone", "streamed", "duplex"):
                    if setting in each:
                        each[setting]["quality"].update(quality)
            connection.execute("UPDATE fits SET snapshot = ? WHERE id = ?", (json.dumps(snapshot, separators=(",", ":")), fit))
        connection.close()

    def test_the_table_and_what_is_stored_say_so(self):
        self.assertNotIn("doubtful", self.ok("resnet50"))
        self.judge(DOUBTFUL)
        text = self.ok("resnet50")
        self.assertRegex(text, r"WFBP-A2A .* m?s \?")
        self.assertIn("? rests on doubtful fits", text)
        self.assertIn("p90 50.0 %", text)
        self.assertRegex(text, r"lower bound: \S+ m?s; \S+ m?s at the edge of the fits' doubt")
        newest = str(self.json("show", "plans")["rows"][0]["id"])
        self.assertIn("rests on a doubtful fit: ", self.ok("show", "plans", newest))
        self.assertGreater(len(self.json("show", "plans", newest)["doubtful"]), 0)
        for what, name in (("clusters", "lab"), ("fits", "1")):
            self.assertIn("doubtful: ", self.ok("show", what, name))

    def test_without_a_usable_fit_nothing_is_ranked(self):
        self.judge(UNUSABLE)
        for command in (("resnet50",), ("scale", "resnet50", "--workers", "2,4"), ("map", "resnet50", "--workers", "2,4")):
            with self.subTest(command[0]):
                message = self.refused(4, *command)
                self.assertIn('cluster "lab"', message)
                self.assertIn("probe it again", message)


if __name__ == "__main__":
    unittest.main()
