#!/usr/bin/python3
"""What the service's bench reads out of callgrind's list."""

import importlib.machinery
import importlib.util
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
LOADER = importlib.machinery.SourceFileLoader("service", str(Path(__file__).resolve().parent / "service"))
service = importlib.util.module_from_spec(importlib.util.spec_from_loader("service", LOADER))
LOADER.exec_module(service)

LISTED = """
Ir
  938,808,772 (100.0%)  PROGRAM TOTALS

Ir                    file:function
  908,000,001 (96.72%)  ../api/rest/service.cc:commtune::api::rest::Service::with_body(commtune::api::rest::Head const&) [/bin/tune]
      400,000 ( 0.04%)  ../perfmodel/plan.h:commtune::tuner::tune(commtune::Profile const&, commtune::Cluster const&)
  894,110,276 (95.24%)  ../tuner/tuner.cc:commtune::tuner::tune(commtune::Profile const&, commtune::Cluster const&) [/bin/tune]
    9,000,000 ( 0.96%)  ../tuner/tuner.cc:commtune::tuner::tuned_byte_scheduler(commtune::tuner::Planning const&) [/bin/tune]
"""


class Counted(unittest.TestCase):
    def test_planning_is_counted_with_all_that_it_calls(self):
        self.assertEqual(service.counted_in(LISTED), (938_808_772, 894_110_276))

    def test_a_program_without_symbols_is_refused(self):
        stripped = "\n".join(line for line in LISTED.splitlines() if "tune(" not in line)
        with self.assertRaisesRegex(SystemExit, "has the program its symbols"):
            service.counted_in(stripped)


class Result(unittest.TestCase):
    def test_names_the_target_beside_the_value(self):
        self.assertEqual(service.word_of("new_per_second", 33.333333), "new_per_second=33.33(>=150)")
        self.assertEqual(service.word_of("kill_lost", 0), "kill_lost=0(<=0)")
        self.assertEqual(service.word_of("new_instructions", 234_702_193), "new_instructions=234702193")


if __name__ == "__main__":
    unittest.main()
