#!/usr/bin/env python3
"""What before and after are compared by."""

import importlib.machinery
import importlib.util
import subprocess
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
loader = importlib.machinery.SourceFileLoader("against", str(HERE / "against"))
against = importlib.util.module_from_spec(importlib.util.spec_from_loader("against", loader))
sys.modules["against"] = against
loader.exec_module(against)

RACE = against.BENCHES["race"]


class Figures(unittest.TestCase):
    def test_are_numbers_of_the_result_line_with_or_without_their_limits(self):
        line = "RESULT race cases=2 gap_median=0.0234(<=0.05) gap_worst=0.0335 over_best=1.3(>=1.1) aa=none met"
        self.assertEqual(against.figures_of(line, RACE), {"gap_median": 0.0234, "gap_worst": 0.0335})

    def test_that_were_not_measured_are_not_there(self):
        self.assertEqual(against.figures_of("RESULT race gap_median=none gap_worst=0.1 x", RACE), {"gap_worst": 0.1})

    def test_counts_are_whole(self):
        line = "RESULT planning build=Release resnet50-32=91900123 bert-large-32=471100000 over=none excluded=none"
        self.assertEqual(against.figures_of(line, against.BENCHES["planning"]),
                         {"resnet50-32": 91900123, "bert-large-32": 471100000})


class Compared(unittest.TestCase):
    def goals(self, name, before, after):
        return {goal.name: goal for goal in against.comparisons(name, against.BENCHES[name], before, after)}

    def test_gaps_are_parts_of_a_whole_time(self):
        # 1.05 after 1.02 is 2.94 % more; two runs of the earlier tree differ by 1 %.
        goal = self.goals("race", [{"gap_median": 0.0149}, {"gap_median": 0.0251}], [{"gap_median": 0.05}] * 2)["race.gap_median"]
        self.assertAlmostEqual(goal.value, 1.05 / 1.02)
        self.assertAlmostEqual(goal.repeat, 1.0251 / 1.0149 - 1)
        self.assertFalse(goal.met)
        near = self.goals("race", [{"gap_median": 0.0149}, {"gap_median": 0.0251}], [{"gap_median": 0.035}] * 2)["race.gap_median"]
        self.assertTrue(near.met)

    def test_more_of_a_rate_is_no_loss(self):
        before, more, less = ([{"bus_worst_ratio": value}] * 2 for value in (1.0, 1.2, 0.9))
        self.assertTrue(self.goals("executor", before, more)["executor.bus_worst_ratio"].met)
        self.assertFalse(self.goals("executor", before, less)["executor.bus_worst_ratio"].met)

    def test_runs_that_differ_much_judge_nothing(self):
        goal = self.goals("executor", [{"latency_ratio": 1.0}, {"latency_ratio": 1.1}], [{"latency_ratio": 1.0}] * 2)["executor.latency_ratio"]
        self.assertTrue(goal.too_noisy)

    def test_what_a_run_lacks_is_not_compared(self):
        self.assertEqual(self.goals("race", [{"gap_median": 0.1}, {}], [{"gap_median": 0.1}] * 2), {})


class Turns(unittest.TestCase):
    def test_each_tree_comes_first_as_often(self):
        self.assertEqual(against.turns(2), ["before", "after", "after", "before"])
        self.assertEqual(against.turns(3).count("before"), 3)


class Usage(unittest.TestCase):
    def refused(self, *arguments):
        done = subprocess.run([str(HERE / "against"), *arguments], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        return done.stderr

    def test_names_what_is_wrong(self):
        self.assertIn("BENCH = racing: must be one of planning, executor, race, accuracy", self.refused("HEAD", "racing"))
        self.assertIn("--rounds 1: must be at least 2", self.refused("HEAD", "race", "--rounds", "1"))
        self.assertIn("no-such-commit: this repository has no such commit", self.refused("no-such-commit", "race"))


if __name__ == "__main__":
    unittest.main()
