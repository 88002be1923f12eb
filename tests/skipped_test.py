#!/usr/bin/python3
"""What was skipped is seen, and fails where it is required."""

import re
import subprocess
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
SKIPPED = HERE / "skipped"
CASE = '<testcase name="{name}" status="{status}">{inside}<system-out>{said}</system-out></testcase>'


def run(cases, *arguments):
    with tempfile.NamedTemporaryFile("w", suffix=".xml") as file:
        file.write("<testsuite>" + "".join(CASE.format(**{"inside": "", "said": "", **case}) for case in cases) + "</testsuite>")
        file.flush()
        return subprocess.run([SKIPPED, *arguments, file.name], capture_output=True, text=True, check=False)


NO_TUN = {"name": "e2e.cluster", "status": "notrun", "inside": "<skipped/>", "said": "checking\nno /dev/net/tun here"}
PART = {"name": "e2e.package", "status": "run",
        "said": "test_the_unit (__main__.Package.test_the_unit) ... skipped 'no systemd-analyze here'\ntest_b (__main__.Package.test_b) ... ok\n"}
GTEST = {"name": "store_test.Disk", "status": "notrun", "inside": "<skipped/>",
         "said": "[ RUN      ] Disk\na_test.cc:7: Skipped\nno small disk: EPERM\n\n[  SKIPPED ] Disk (0 ms)"}
FINE = {"name": "e2e.slurm", "status": "run", "said": "test_a (__main__.Slurm.test_a) ... ok\n"}
PICTURES = "makes the small pictures of the README where it is asked to"
# What Node's test runner prints to a pipe, where a test may give a reason to be skipped or none.
TAP = f"""TAP version 13
# Subtest: pages of a fit
    # Subtest: show the matrix of links
    ok 1 - show the matrix of links # SKIP no emulated cluster: \\#4
      ---
      duration_ms: 1.788507
      ...
    # Subtest: are thinned
    ok 2 - are thinned # SKIP
    # Subtest: are wide
    ok 3 - are wide # TODO later
    # Subtest: {PICTURES}
    ok 4 - {PICTURES} # SKIP COMMTUNE_E2E_README names no folder
    1..4
ok 1 - pages of a fit
# skipped 3
"""


class Skipped(unittest.TestCase):
    def test_each_skip_is_listed_with_its_reason(self):
        done = run([NO_TUN, PART, GTEST, FINE])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("3 of 4", done.stdout)
        self.assertIn("e2e.cluster: no /dev/net/tun here", done.stdout)
        self.assertIn("e2e.package test_the_unit: no systemd-analyze here", done.stdout)
        self.assertIn("store_test.Disk: no small disk: EPERM", done.stdout)

    def test_a_part_is_named_wherever_its_reason_stands(self):
        said = ("test_a (__main__.A.test_a)\nWhat it is for. ... skipped 'it\\'s \"small\"'\n"
                "test_b (__main__.A.test_b) ... a warning\nskipped \"isn't here\"\n"
                "test_c (__main__.A.test_c) ... \n  test_c (__main__.A.test_c) (i=1) ... skipped 'one of its cases'\n"
                "test_d (__main__.A.test_d) ... ok\n"
                "setUpClass (__main__.B) ... skipped 'a whole class'\n")
        done = run([{"name": "e2e.a", "status": "run", "said": said}])
        self.assertEqual([line.strip() for line in done.stdout.splitlines()[1:]], [
            "e2e.a test_a: it\\'s \"small\"", "e2e.a test_b: isn't here", "e2e.a test_c: one of its cases", "e2e.a setUpClass: a whole class"])

    def test_what_node_skips_is_seen(self):
        done = run([{"name": "e2e.dashboard", "status": "run", "said": TAP}], "--require", "browser")
        self.assertEqual(done.returncode, 1)
        self.assertIn("3 of 1", done.stdout)
        self.assertIn("e2e.dashboard show the matrix of links: no emulated cluster: #4\n", done.stdout)
        self.assertIn("e2e.dashboard are thinned: it does not say why\n", done.stdout)
        self.assertIn("required here, but skipped: browser: e2e.dashboard", done.stdout)

    def test_newer_versions_of_node_are_understood(self):
        said = "\u25b6 pages of a fit\n  \ufe63 are thinned (0.2ms) # SKIP\n  \ufe63 show links (1.5ms) # no emulated cluster\n  \u2714 work (4.5ms)\n"
        done = run([{"name": "e2e.dashboard", "status": "run", "said": said}], "--require", "browser")
        self.assertEqual(done.returncode, 1)
        self.assertIn("2 of 1", done.stdout)
        self.assertIn("e2e.dashboard are thinned: it does not say why\n", done.stdout)
        self.assertIn("e2e.dashboard show links: no emulated cluster\n", done.stdout)

    def test_pictures_for_the_readme_are_listed_and_not_required(self):
        said = f"ok 1 - {PICTURES} # SKIP COMMTUNE_E2E_README names no folder\n"
        done = run([{"name": "e2e.dashboard", "status": "run", "said": said}], "--require", "browser")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn(f"e2e.dashboard {PICTURES}: COMMTUNE_E2E_README names no folder\n", done.stdout)
        self.assertIn(f"it('{PICTURES}'", (HERE / "e2e/dashboard/dashboard_test.mjs").read_text(encoding="utf-8"))

    def test_attacks_and_the_installed_service_are_groups(self):
        skip = {"status": "run", "said": "test_a (__main__.A.test_a) ... skipped 'needs root'\n"}
        for name, group in (("rest.security", "hostile"), ("rest.helpers", "hostile"), ("store_test.HostileFolder.A", "hostile"), ("e2e.service_user", "service")):
            with self.subTest(name):
                done = run([{"name": name, **skip}], "--require", group)
                self.assertEqual(done.returncode, 1)
                self.assertIn(f"required here, but skipped: {group}: {name}", done.stdout)
        self.assertIn("hostile: no such test ran", run([{"name": "rest.examples", **skip}], "--require", "hostile").stdout)

    def test_every_script_that_skips_prints_why(self):
        skips, silent = re.compile(r"[sS]kip(?:Unless|If|Test)\b"), re.compile(r"unittest\.main\((?!.*verbosity=2)")
        scripts = {path.relative_to(HERE): path.read_text(encoding="utf-8") for path in HERE.rglob("*_test.py")}
        skipping = {path: text for path, text in scripts.items() if skips.search(text)}
        self.assertGreater(len(skipping), 5)
        self.assertEqual([str(path) for path, text in skipping.items() if silent.search(text)], [])

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
