#!/usr/bin/env python3
"""What the bench of attacks says of programs and scripts that refuse, let in, skip, or break: in a small made-up tree."""

import json
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
HOSTILE = Path(__file__).resolve().parent / "hostile"
SUITE = "Hostile"  # written apart from `class`, or the bench would take this script for one that has cases

# A program that answers as one of gtest does.
PROGRAM = """#!/usr/bin/env python3
import sys
said, report, status = {said!r}, {report!r}, {status!r}
if "--gtest_list_tests" in sys.argv:
    print("HostilePeer.\\n  Case")
    sys.exit({listed!r})
print(said)
if report:
    open(sys.argv[-1].removeprefix("--gtest_output=json:"), "w").write(report)
sys.exit(status)
"""
RUN = {"status": "RUN", "result": "COMPLETED"}
REFUSED = {"name": "Refused", **RUN}


def program(*tests, said="", status=0, listed=0, report=True):
    text = json.dumps({"testsuites": [{"name": "HostilePeer", "testsuite": tests}]}) if report else ""
    return PROGRAM.format(said=said, report=text, status=status, listed=listed)


def script(**classes):
    """A script of unittest with these classes, each with this body."""
    text = "import os, sys, unittest\n"
    for name, body in classes.items():
        text += f"class {SUITE}{name}(unittest.TestCase):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    return text + "unittest.main()\n"


FINE = "def test_a(self): pass"


def play(files, *arguments):
    """The bench's exit status and lines, with these files under tests/ and, as a_test, a program of the build."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name, text in files.items():
            path = root / ("build" if name == "a_test" else "") / "tests" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            path.chmod(0o755)
        bench = root / "tests" / "bench" / "hostile"
        bench.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(HOSTILE, bench)
        done = subprocess.run([bench, *arguments, "--build", root / "build"], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.splitlines(), done.stderr


class BenchTest(unittest.TestCase):
    def plays(self, status, files, *lines, arguments=()):
        got, said, error = play(files, *arguments)
        self.assertEqual(got, status, "\n".join(said) + error)
        for line in lines:
            self.assertIn(line, said)


class Programs(BenchTest):
    def test_what_is_refused_is_met(self):
        self.plays(0, {"a_test": program(REFUSED)}, "refused    HostilePeer.Refused", "RESULT hostile cases=1 refused=1 excluded=0 met",
                   arguments=("--complete",))

    def test_one_that_succeeds_is_missed(self):
        self.plays(1, {"a_test": program(REFUSED, {"name": "Let", **RUN, "failures": [{}]}, status=1)}, "succeeded  HostilePeer.Let",
                   "RESULT hostile cases=2 refused=1 excluded=0 missed")

    def test_a_skipped_one_is_excluded_with_its_reason(self):
        said = "[ RUN      ] HostilePeer.Skipped\nsomething else\na_test.cc:4: Skipped\nneeds root\n[  SKIPPED ] HostilePeer.Skipped (0 ms)"
        self.plays(0, {"a_test": program(REFUSED, {"name": "Skipped", "status": "RUN", "result": "SKIPPED"}, said=said)},
                   "excluded   HostilePeer.Skipped: skipped: needs root", "RESULT hostile cases=1 refused=1 excluded=1(cannot_be_played_here) met")

    def test_a_disabled_one_is_excluded(self):
        off = {"name": "DISABLED_Off", "status": "NOTRUN", "result": "SUPPRESSED"}
        self.plays(0, {"a_test": program(REFUSED, off)}, "excluded   HostilePeer.DISABLED_Off: disabled",
                   "RESULT hostile cases=1 refused=1 excluded=1(cannot_be_played_here) met")

    def test_a_status_that_no_case_explains_is_a_failure(self):
        self.plays(1, {"a_test": program(REFUSED, status=66)}, "succeeded  a_test, exit status 66")

    def test_one_that_ends_without_a_report_is_a_failure(self):
        self.plays(1, {"a_test": program(report=False)}, "succeeded  a_test, exit status 0")

    def test_one_that_cannot_list_its_cases_is_not_passed_over(self):
        self.plays(1, {"a_test": program(report=False, listed=127, status=127)}, "succeeded  a_test, exit status 127")


class Scripts(BenchTest):
    def test_what_is_refused_is_met(self):
        self.plays(0, {"a_test.py": script(A='def test_a(self):\n    """What it is."""\n    os.system("echo and more >&2")')},
                   "refused    HostileA.test_a", "RESULT hostile cases=1 refused=1 excluded=0 met", arguments=("--complete",))

    def test_one_that_succeeds_is_missed(self):
        self.plays(1, {"a_test.py": script(A=f"{FINE}\ndef test_b(self): self.fail()")}, "succeeded  HostileA.test_b",
                   "RESULT hostile cases=2 refused=1 excluded=0 missed")

    def test_a_class_that_cannot_be_prepared_is_seen_beside_another(self):
        self.plays(1, {"a_test.py": script(A=FINE, B=f"@classmethod\ndef setUpClass(cls): raise OSError\n{FINE}")},
                   "refused    HostileA.test_a", "succeeded  HostileB.setUpClass")

    def test_a_class_that_cannot_be_cleaned_up_is_seen(self):
        self.plays(1, {"a_test.py": script(A=f"@classmethod\ndef tearDownClass(cls): raise OSError\n{FINE}")}, "succeeded  HostileA.tearDownClass")

    def test_a_status_that_no_case_explains_names_the_script(self):
        self.plays(1, {"a_test.py": script(A=FINE).replace("unittest.main()", "unittest.main(exit=False)\nsys.exit(3)")},
                   "refused    HostileA.test_a", "succeeded  a_test.py, exit status 3", "RESULT hostile cases=2 refused=1 excluded=0 missed")

    def test_one_that_ends_in_the_middle_of_a_case_is_a_failure(self):
        self.plays(1, {"a_test.py": script(A=f"{FINE}\ndef test_b(self): os._exit(0)")}, "refused    HostileA.test_a", "succeeded  HostileA.test_b")

    def test_a_script_that_is_not_python_is_a_failure(self):
        self.plays(1, {"a_test.py": f"class {SUITE}A(:\n"}, "succeeded  a_test.py, exit status 1")

    def test_a_whole_script_may_be_left_out(self):
        self.plays(0, {"a_test": program(REFUSED), "a_test.py": f"class {SUITE}A: pass\nprint('skipped: no ip here')\nraise SystemExit(77)\n"},
                   "excluded   a_test.py: the whole script: skipped: no ip here")


class Complete(BenchTest):
    def test_what_is_excluded_is_a_failure_and_named(self):
        said = "[ RUN      ] HostilePeer.Skipped\na_test.cc:4: Skipped\nneeds root"
        files = {
            "a_test": program(REFUSED, {"name": "Skipped", "status": "RUN", "result": "SKIPPED"}, said=said),
            "a_test.py": script(A=f"{FINE}\n@unittest.skip('no nobody here')\ndef test_b(self): pass"),
        }
        result = "RESULT hostile cases=2 refused=2 excluded=2(cannot_be_played_here)"
        self.plays(0, files, f"{result} met")
        self.plays(1, files, "must be played, but was excluded: HostilePeer.Skipped: skipped: needs root",
                   "must be played, but was excluded: HostileA.test_b: skipped 'no nobody here'", f"{result} missed", arguments=("--complete",))

    def test_no_case_at_all_is_a_failure(self):
        self.plays(1, {}, "RESULT hostile cases=0 refused=0 excluded=0 missed")


if __name__ == "__main__":
    unittest.main()
