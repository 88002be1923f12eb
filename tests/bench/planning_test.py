#!/usr/bin/env python3
"""What can be known about the count of instructions without counting any."""

import contextlib
import dataclasses
import importlib.machinery
import importlib.util
import io
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.dont_write_bytecode = True
LOADER = importlib.machinery.SourceFileLoader("planning", str(Path(__file__).resolve().parent / "planning"))
planning = importlib.util.module_from_spec(importlib.util.spec_from_loader("planning", LOADER))
sys.modules["planning"] = planning
LOADER.exec_module(planning)

CASE = next(iter(planning.LIMITS))


def counted(instructions, build="Release", cases=(CASE,)):
    """Exit status and last line where every case executes so many."""
    text = io.StringIO()
    with mock.patch.object(planning, "instructions_of", return_value=(instructions, "chosen=joint")), \
            contextlib.redirect_stdout(text):
        status = planning.count("program", build, list(cases))
    return status, text.getvalue().splitlines()[-1]


class Count(unittest.TestCase):
    def test_passes_at_the_limit(self):
        status, result = counted(planning.LIMITS[CASE].by_build["Release"] * planning.MILLION)
        self.assertEqual(status, 0)
        self.assertIn("over=none", result)

    def test_fails_beyond_it(self):
        status, result = counted(planning.LIMITS[CASE].by_build["Release"] * planning.MILLION + 1)
        self.assertEqual(status, 1)
        self.assertIn(f"over={CASE}", result)

    def test_says_what_was_left_out(self):
        others = [case for case in planning.LIMITS if case != CASE]
        self.assertIn("excluded=" + ",".join(f"{case}:not-asked" for case in others), counted(1)[1])
        self.assertIn(f"{CASE}:no-limit-for-Debug-builds", counted(1, build="Debug")[1])


class Limits(unittest.TestCase):
    """Nobody raises a limit without saying by how much and why, nor above its target."""

    LIMIT = planning.Limit(before=1000, target=0.5, lowered={"Release": 400, "Check": 440}, by_build={"Release": 440, "Check": 484},
                           raised=("2 to 4 %: more draws", "6 %: wider ranges"))  # 1.04 * 1.06 = 1.1024

    def mistakes(self, **changes):
        return list(dataclasses.replace(self.LIMIT, **changes).mistakes())

    def test_those_that_there_are_fit_together(self):
        for case, limit in planning.LIMITS.items():
            self.assertEqual(list(limit.mistakes()), [], case)
        self.assertEqual(self.mistakes(), [])

    def test_none_is_above_the_target(self):
        self.assertEqual(self.mistakes(target=0.44), [])
        self.assertIn("440 is above target * before = 430", self.mistakes(target=0.43)[0])
        self.assertIn("target = 1.2: must be above 0 and at most 1", self.mistakes(target=1.2))

    def test_none_is_raised_further_than_the_reasons_go(self):
        # 400 * 1.1024 = 440.96, 440 * 1.1024 = 485.06
        self.assertEqual(self.mistakes(by_build={"Release": 440, "Check": 485}), [])
        self.assertIn("Check: 486 is 10.5% above lowered = 440: raised has reasons for 10.2%", self.mistakes(by_build={"Release": 440, "Check": 486}))
        self.assertIn("raised has reasons for 0.0%", self.mistakes(raised=())[0])

    def test_a_reason_says_by_how_much_and_why(self):
        for reason in ("", " ", "10 %", "10 %: ", "more draws", ": more draws"):
            self.assertIn(f'raised: "{reason}": must begin with by how much', self.mistakes(raised=(*self.LIMIT.raised, reason))[0])

    def test_what_was_lowered_is_kept_for_every_build(self):
        self.assertIn("399 is below lowered = 400", self.mistakes(by_build={"Release": 399, "Check": 484})[0])
        self.assertIn("lowered has Release, by_build has Release, Check", self.mistakes(lowered={"Release": 400})[0])


class BuildType(unittest.TestCase):
    def test_is_the_one_of_the_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(planning.build_type(Path(folder)), "unknown")
            (Path(folder) / "CMakeCache.txt").write_text("A:STRING=x\nCMAKE_BUILD_TYPE:STRING=Check\n")
            self.assertEqual(planning.build_type(Path(folder)), "Check")


if __name__ == "__main__":
    unittest.main()
