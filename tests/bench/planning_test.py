#!/usr/bin/env python3
"""What can be known about the count of instructions without counting any."""

import contextlib
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


class BuildType(unittest.TestCase):
    def test_is_the_one_of_the_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(planning.build_type(Path(folder)), "unknown")
            (Path(folder) / "CMakeCache.txt").write_text("A:STRING=x\nCMAKE_BUILD_TYPE:STRING=Check\n")
            self.assertEqual(planning.build_type(Path(folder)), "Check")


if __name__ == "__main__":
    unittest.main()
