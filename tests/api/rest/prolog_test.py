#!/usr/bin/python3
"""Slurm's task prolog: prints the plan's environment, and lets the job start whatever happens."""

import os
import subprocess
import unittest
from pathlib import Path

from server import PATIENCE_SECONDS, ServiceTest

PROLOG = Path(os.environ["COMMTUNE_E2E_TUNE"]).parent / "task_prolog"


class Prolog(ServiceTest):
    def say(self, **environment):
        done = subprocess.run([str(PROLOG)], env={"PATH": os.environ["PATH"], "COMMTUNE_SECONDS": str(PATIENCE_SECONDS), **environment}, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.splitlines()

    def test_the_plan_of_the_nodes_becomes_the_environment(self):
        lines = self.say(COMMTUNE_MODEL="resnet50", COMMTUNE_CLUSTER="lab", COMMTUNE_URL=self.server.url,
                         SLURM_JOB_NODELIST="n[1-2]", SLURM_TASKS_PER_NODE="2(x2)")
        exports = dict(line.removeprefix("export ").split("=", 1) for line in lines if line.startswith("export "))
        plan = self.server.ask("GET", f"/v1/plans/{exports['COMMTUNE_PLAN']}").json()
        self.assertEqual(exports["COMMTUNE_PLAN_DIGEST"], plan["digest"])
        self.assertEqual(plan["workers"], 4)
        self.assertTrue(lines[-1].startswith("print commtune: plan "), lines)

    def test_a_job_that_does_not_ask_gets_nothing(self):
        self.assertEqual(self.say(), [])

    def test_the_job_starts_when_nobody_knows_or_nobody_answers(self):
        cases = [{"COMMTUNE_URL": "http://127.0.0.1:1"}, {"COMMTUNE_URL": self.server.url, "COMMTUNE_CLUSTER": "none"},
                 {"COMMTUNE_URL": self.server.url, "SLURM_JOB_NODELIST": "x[1-4]"}]
        for case in cases:
            lines = self.say(**{"COMMTUNE_MODEL": "resnet50", "COMMTUNE_CLUSTER": "lab", **case})
            self.assertEqual(len(lines), 1, lines)
            self.assertIn("the job starts without a plan", lines[0])


if __name__ == "__main__":
    unittest.main()
