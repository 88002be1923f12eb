#!/usr/bin/env python3
"""The RESULT line of `sampling`: the same for the same seed, and worse for a plan that is worse."""

import re
import subprocess
import sys
import unittest

PROGRAM = sys.argv.pop(1)


def run(*flags):
    return subprocess.run([PROGRAM, *flags], capture_output=True, text=True, check=False)


def figures(*flags):
    done = run("--cases", "2", *flags)
    assert done.returncode == 0, done.stderr
    last = done.stdout.splitlines()[-1]
    assert last.startswith("RESULT sampling "), last
    return dict(word.split("=", 1) for word in last.split()[2:])


class Sampling(unittest.TestCase):
    def test_is_the_same_for_the_same_seed(self):
        first = figures("--random", "3")
        self.assertEqual(first, figures("--random", "3"))
        self.assertNotEqual(first["alone_median"], figures("--random", "4")["alone_median"])
        self.assertIn("excluded", first)

    def test_shares_of_the_budget_are_all_of_it(self):
        found = figures()
        parts = ("survey", "links", "first_sizes", "refinement", "planning", "rest")
        self.assertAlmostEqual(sum(float(found[part]) for part in parts), 1, delta=0.005)

    def test_more_time_gives_more_roads_enough_sizes(self):
        short, usual = figures("--budget", "0.2"), figures()
        self.assertLess(float(short["enough"]), float(usual["enough"]))
        self.assertGreater(float(usual["enough"]), 0.9)

    def test_varies_one_gain_beside_the_noise(self):
        done = run("--cases", "1", "--vary", "range")
        rows = [line for line in done.stdout.splitlines() if re.match(r"(A/A|range) ", line)]
        self.assertEqual([row.split()[0] for row in rows].count("A/A"), 2)
        self.assertEqual([row.split()[1] for row in rows if row.startswith("range")], ["quarter", "halved", "doubled", "fourfold", "removed"])

    def test_varies_several_gains(self):
        done = run("--cases", "1", "--vary", "range,between")
        rows = [line.split()[:2] for line in done.stdout.splitlines() if re.match(r"(between|range) ", line)]
        self.assertEqual(rows, [[gain, how] for gain in ("range", "between") for how in ("halved", "doubled", "removed")])

    def test_says_what_refining_for_a_model_gains(self):
        flags = ("--cases", "1", "--for", "resnet50", "--random", "5")
        done = run(*flags)
        self.assertEqual(done.returncode, 0, done.stderr)
        *_, last = done.stdout.splitlines()
        found = dict(word.split("=", 1) for word in last.removeprefix("RESULT sampling-for ").split())
        self.assertEqual((found["model"], found["cases"]), ("resnet50", "1"))
        for how in ("alike", "shipped", "for"):
            self.assertLess(float(found[f"{how}_error_median"]), 1)
            self.assertLessEqual(float(found[f"{how}_spent"]), 1.01)
        self.assertEqual(done.stdout, run(*flags).stdout)  # whatever the machine does meanwhile

    def test_another_gain_gives_other_figures(self):
        self.assertNotEqual(figures("--set", "range=0"), figures())
        self.assertEqual(figures("--set", "range=60"), figures())

    def test_refuses_what_it_does_not_know(self):
        for flags in (["--for", "nothing"], ["--set", "luck=1"], ["--set", "range=a"], ["--set", "range"], ["--vary", "luck"], ["--vary", "range,luck"], ["--cases"], ["--budget", "0"], ["--fast"]):
            self.assertEqual(run(*flags).returncode, 2, flags)


if __name__ == "__main__":
    unittest.main()
