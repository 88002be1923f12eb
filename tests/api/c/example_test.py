#!/usr/bin/python3
"""The example in C trains: by buckets over a ring, and by a file's plan with two servers."""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM, PLAN = sys.argv.pop(1), sys.argv.pop(1)
ELEMENTS = [64, 32, 1024, 32, 32, 1]


def servers():
    """The last layer alone, the others cut into halves that overtake each other by priority."""
    halves = [(tensor, offset, length) for tensor, count in enumerate(ELEMENTS[:4])
              for offset, length in ((0, count // 2 * 4), (count // 2 * 4, count * 4 - count // 2 * 4))]
    messages = [[(5, 0, 4), (4, 0, 128)]] + [[half] for half in reversed(halves)]
    return {"format": "commtune/plan/1", "method": "by hand", "model": "spirals", "profile": "", "workers": 4,
            "road": {"kind": "parameter-server", "servers": 2, "placement": "colocated", "assignment": "even"},
            "messages": [{"pieces": [{"tensor": t, "offset_bytes": o, "length_bytes": n} for t, o, n in message]} for message in messages],
            "priority": list(range(len(messages)))[::-1], "release": "gradient", "order": "priority", "barrier": "per-layer", "credit_bytes": 1024}


class Example(unittest.TestCase):
    def test_losses_fall_as_those_of_one_process(self):
        with tempfile.TemporaryDirectory() as folder:
            plan = PLAN
            if PLAN == "servers":
                plan = Path(folder) / "plan.json"
                plan.write_text(json.dumps(servers()), encoding="utf-8")
            done = subprocess.run([PROGRAM, str(plan)], capture_output=True, text=True, check=False, timeout=250)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        self.assertRegex(done.stdout, r"400 steps, \d+ messages of 4740 B in all")

    def test_a_plan_that_is_not_there_is_named(self):
        done = subprocess.run([PROGRAM, "/no/such/plan"], capture_output=True, text=True, check=False, timeout=250)
        self.assertEqual(done.returncode, 1)
        self.assertIn("adopt: bad_call: plan /no/such/plan: No such file or directory", done.stderr)


if __name__ == "__main__":
    unittest.main()
