#!/usr/bin/env python3
"""A job whose last rank is killed, stopped, out of memory or of another opinion ends on every rank with a
message that names the rank, and leaves no process behind.

usage: mpi_fault_test.py PROGRAM -- MPIRUN...
"""

import os
import subprocess
import sys
import time
import unittest

PROGRAM = sys.argv[1]
MPIRUN = sys.argv[sys.argv.index("--") + 1 :]
PATIENCE_SECONDS = 150  # with what ends within seconds, except on a slow machine under load


def processes_of_program():
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                if file.read().split(b"\0")[0] == PROGRAM.encode():
                    found.append(int(entry))
        except OSError:
            pass
    return found


class Faults(unittest.TestCase):
    def end_of(self, how):
        done = subprocess.run([*MPIRUN, PROGRAM, how], text=True, capture_output=True, timeout=PATIENCE_SECONDS)
        self.assertNotEqual(done.returncode, 0)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while processes_of_program() and time.monotonic() < deadline:
            time.sleep(0.1)
        self.assertEqual(processes_of_program(), [])
        return done.stdout + done.stderr

    def test_a_killed_rank(self):
        self.assertRegex(self.end_of("kill"), r"rank 3\b.*(signal 9|Killed)|waited 5\.0 s for rank")

    def test_a_stopped_rank(self):
        text = self.end_of("stop")
        self.assertRegex(text, r"waited 5\.0 s for rank \d \(host .+\) in the reduce stage of message \d \(layer\d\.weight\)")

    def test_a_rank_out_of_memory(self):
        self.assertRegex(self.end_of("memory"), r"rank 3 \(host .+\): std::bad_alloc")

    def test_a_rank_with_another_plan(self):
        text = self.end_of("disagree")
        for rank in range(4):
            self.assertRegex(text, rf"rank {rank}: ranks disagree about the plan: .*rank 3 \(host ")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
