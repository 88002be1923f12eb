#!/usr/bin/python3
"""What was skipped is seen, and fails where it is required."""

import subprocess
import tempfile
import unittest
from pathlib import Path

SKIPPED = Path(__file__).with_name("skipped")
CASE = '<testcase name="{name}" status="{status}">{inside}<system-out>{said}</system-out></testcase>'


def run(cases, *arguments):
    with tempfile.NamedTemporaryFile("w", suffix=".xml") as file:
        file.write("<testsuite>" + "".join(CASE.format(**{"inside": "", "said": "", **case}) for case in cases) + "</testsuite>")
        file.flush()
        return subprocess.run([SKIPPED, *arguments, file.name], capture_output=True, text=True, check=False)


NO_TUN = {"name": "e2e.cluster", "status": "notrun", "inside": "<skipped/>", "said": "checking\nno /dev/net/tun here"}
PART = {"name": "e2e.package", "status": "run", "said": "test_unit (package.Unit) ... skipped 'no systemd-analyze here'\n"}
GTEST = {"name": "store_test.Disk", "status": "notrun", "inside": "<skipped/>",
         "said": "[ RUN      ] Disk\na_test.cc:7: Skipped\nno small disk: EPERM\n\n[  SKIPPED ] Disk (0 ms)"}
FINE = {"name": "e2e.slurm", "status": "run", "said": "test_a ... ok"}


class Skipped(unittest.TestCase):
    def test_each_skip_is_listed_with_its_reason(self):
        done = run([NO_TUN, PART, GTEST, FINE])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("3 of 4", done.stdout)
        self.assertIn("e2e.cluster: no /dev/net/tun here", done.stdout)
        self.assertIn("e2e.package test_unit: no systemd-analyze here", done.stdout)
        self.assertIn("store_test.Disk: no small disk: EPERM", done.stdout)

    def test_what_is_required_must_not_be_skipped(self):
        done = run([NO_TUN, FINE], "--require", "cluster,slurm")
        self.assertEqual(done.returncode, 1)
        self.assertIn("required here, but skipped: cluster: e2e.cluster", done.stdout)
        self.assertNotIn("required here, but skipped: slurm", done.stdout)

    def test_what_pytest_skips_is_seen(self):
        said = "sssss\nSKIPPED [5] hosts_test.py:19: emulated clusters need root\n5 skipped in 0.05s\n"
        done = run([{"name": "torch.hosts", "status": "run", "said": said}], "--require", "torch")
        self.assertEqual(done.returncode, 1)
        self.assertIn("torch.hosts hosts_test.py:19: emulated clusters need root", done.stdout)
        self.assertIn("required here, but skipped: torch: torch.hosts", done.stdout)

    def test_what_is_required_must_have_run(self):
        done = run([FINE], "--require", "browser")
        self.assertEqual(done.returncode, 1)
        self.assertIn("browser: no such test ran", done.stdout)

    def test_what_ran_passes(self):
        self.assertEqual(run([FINE], "--require", "slurm").returncode, 0)

    def test_without_cuda_what_needs_a_gpu_is_missed(self):
        left_out = {"name": "gpu.left_out", "status": "notrun", "inside": "<skipped/>", "said": "skipped: built without CUDA"}
        links = {"name": "gpu_links", "status": "run", "said": "OK"}
        self.assertEqual(run([links], "--require", "gpu-standin").returncode, 0)
        done = run([left_out, links], "--require", "gpu-standin")
        self.assertEqual(done.returncode, 1)
        self.assertIn("required here, but skipped: gpu-standin: gpu.left_out", done.stdout)

    def test_an_unknown_group_is_refused(self):
        self.assertEqual(run([FINE], "--require", "gpus").returncode, 2)


if __name__ == "__main__":
    unittest.main()
