#!/usr/bin/python3
"""Which files check-tidy looks at, and when it fails: in small made-up repositories, with a program in place of clang-tidy."""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

CHECK = Path(__file__).with_name("check-tidy")
# Writes down which file it is to look at; finds something where the file says so.
CLANG_TIDY = """#!/bin/sh
for file; do :; done
[ "$file" != --version ] || { echo "made-up version 1"; exit 0; }
echo "$file" >>"$LOOKED_AT"
! grep -n FINDING "$file"
"""
FINE = {
    "CMakeLists.txt": """
        cmake_minimum_required(VERSION 3.25)
        set(CMAKE_CXX_COMPILER_FORCED ON)  # none is tried: nothing is compiled
        project(made_up CXX)
        set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
        add_library(made_up OBJECT perfmodel/plan.cc perfmodel/ring.cc tuner/tuner.cc)
    """,
    ".clang-tidy": "Checks: bugprone-*\n",
    ".gitignore": "/build*/\n",
    "perfmodel/plan.h": "",
    "perfmodel/plan.cc": '#include "perfmodel/plan.h"\n',
    "perfmodel/ring.h": "",
    "perfmodel/ring.cc": '#include "perfmodel/ring.h"\n',
    "tuner/options.h": "",
    "tuner/tuner.cc": '#include "perfmodel/plan.h"\n#include "tuner/options.h"\n',
}
SOURCES = ["perfmodel/plan.cc", "perfmodel/ring.cc", "tuner/tuner.cc"]


class Tidy(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name, "tree")
        self.looked_at = Path(folder.name, "looked-at")
        program = Path(folder.name, "bin", "clang-tidy")
        program.parent.mkdir()
        program.write_text(CLANG_TIDY, encoding="utf-8")
        program.chmod(0o755)
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | {
            "PATH": f"{program.parent}:{os.environ['PATH']}", "LOOKED_AT": str(self.looked_at), "XDG_CACHE_HOME": f"{folder.name}/cache",
            "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
        self.write(FINE)
        (self.root / "tests").mkdir()
        shutil.copy(CHECK, self.root / "tests")
        self.git("init", "--quiet")
        self.write({".ci/tidy-clean": f"{self.commit()} # what is known to be clean\n"})
        self.commit()

    def write(self, files):
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def git(self, *words):
        return subprocess.run(["git", "-c", "user.name=test", "-c", "user.email=test", *words], cwd=self.root, env=self.environment,
                              capture_output=True, text=True, check=True).stdout.strip()

    def commit(self):
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message=change")
        return self.git("rev-parse", "HEAD")

    def change(self, *names, text="// changed\n"):
        for name in names:
            with open(self.root / name, "a", encoding="utf-8") as file:
                file.write(text)

    def check(self, status, looked_at, *arguments, says=""):
        """It ends with this status, after it has looked at these files."""
        self.looked_at.write_text("", encoding="utf-8")
        done = subprocess.run([self.root / "tests" / "check-tidy", *arguments], env=self.environment, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.assertEqual(sorted(self.looked_at.read_text(encoding="utf-8").split()), looked_at, done.stdout)
        self.assertIn(says, done.stdout)

    def test_nothing_has_changed(self):
        self.check(0, [], says="0 files")

    def test_what_changed_in_any_commit_since_the_clean_one_is_looked_at(self):
        self.change("perfmodel/plan.cc")
        self.commit()
        self.change("tuner/tuner.cc")
        self.commit()
        self.check(0, ["perfmodel/plan.cc", "tuner/tuner.cc"])

    def test_what_is_not_committed_is_looked_at(self):
        self.change("perfmodel/ring.cc")
        self.check(0, ["perfmodel/ring.cc"])

    def test_the_newest_tag_is_clean_too(self):
        self.change("perfmodel/plan.cc")
        self.commit()
        self.git("tag", "v1")
        self.change("tuner/tuner.cc")
        self.commit()
        self.check(0, ["tuner/tuner.cc"])

    def test_a_header_is_looked_at_through_one_source(self):
        self.change("perfmodel/plan.h")  # the one beside it, not tuner.cc
        self.check(0, ["perfmodel/plan.cc"])
        self.change("tuner/options.h")  # none is beside it
        self.check(0, ["tuner/tuner.cc"])

    def test_other_checks_are_a_change_of_all_files(self):
        self.change(".clang-tidy", text="WarningsAsErrors: '*'\n")
        self.commit()
        self.change("perfmodel/plan.cc")
        self.commit()
        self.check(0, SOURCES)

    def test_all_files_are_looked_at_when_asked_for(self):
        self.check(0, SOURCES, "--all")

    def test_what_was_clean_with_the_same_content_is_not_looked_at_again(self):
        self.change("perfmodel/plan.cc")
        self.check(0, ["perfmodel/plan.cc"])
        self.commit()
        self.check(0, [], says="1 files, 1 of them known to be clean")
        self.change("perfmodel/plan.h")  # it reads that
        self.check(0, ["perfmodel/plan.cc"])
        self.change(".clang-tidy", text="WarningsAsErrors: '*'\n")
        self.check(0, SOURCES)

    def test_findings_fail_and_are_not_taken_for_clean(self):
        self.change("perfmodel/plan.cc", "tuner/tuner.cc")
        self.change("perfmodel/plan.cc", text="// FINDING\n")
        self.check(1, ["perfmodel/plan.cc", "tuner/tuner.cc"], says="3:// FINDING")
        self.check(1, ["perfmodel/plan.cc"], says="2 files, 1 of them known to be clean, 1 with findings")

    def test_what_there_is_no_time_for_fails(self):
        self.change("perfmodel/plan.cc")
        self.check(1, [], "--seconds", "0", says="no time for perfmodel/plan.cc")
        self.check(0, ["perfmodel/plan.cc"])
        self.check(0, [], "--seconds", "0")


if __name__ == "__main__":
    unittest.main()
