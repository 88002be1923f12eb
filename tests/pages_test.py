#!/usr/bin/env python3
"""What pages for people say is true of the tree: links and paths that they name exist, and tables of settings and exit
statuses are those of the code."""

import re
import subprocess
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parents[1]
FIRST = ROOT / "README.md"
WAYS_IN = ROOT / "api" / "README.md"
MOST_LINES = 120  # of the first page

LINK = re.compile(r"\]\(([^)#\s:]*)(?:#([\w-]+))?\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
PATH = re.compile(r"(?<![\w/.-])((?:api|executor|perfmodel|probes|store|tests|tuner)/[\w./-]*\w|(?:api|executor|perfmodel|probes|store|tests|tuner)/)")
COMMIT = re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{7}\b")
SETTING = re.compile(r'SettingRow\{\s*"\w+",\s*"(--[\w-]+)",\s*"(COMMTUNE_\w+)"')
STATUS = re.compile(r'ErrorStatus \w+\{"\w+",\s*(\d+),\s*\d+,\s*"([^"]+)"\}')


def pages():
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=False)
    found = [ROOT / name for name in listed.stdout.split()] if listed.returncode == 0 else []
    return [page for page in found if page.exists()] or [FIRST, WAYS_IN]  # without git, those that there always are


def git(*words):
    """What git prints of this tree; nothing where it fails."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def anchor(heading):
    """As GitHub makes it."""
    return re.sub(r"[^\w -]", "", heading.strip().lower()).replace(" ", "-")


def written(folder, pattern):
    """What a pattern finds in a folder's sources, wherever it is there."""
    return [found for path in sorted(folder.rglob("*.cc")) for found in pattern.findall(path.read_text(encoding="utf-8"))]


class Pages(unittest.TestCase):
    def test_links_lead_somewhere(self):
        for page in pages():
            for target, place in LINK.findall(page.read_text(encoding="utf-8")):
                with self.subTest(page=page.name, link=target or place):
                    path = page.parent / target if target else page
                    self.assertTrue(path.exists())
                    if place:
                        self.assertIn(place, [anchor(heading) for heading in HEADING.findall(path.read_text(encoding="utf-8"))])

    def test_paths_exist(self):
        for page in pages():
            for path in PATH.findall(page.read_text(encoding="utf-8")):
                with self.subTest(page=str(page.relative_to(ROOT)), path=path):
                    self.assertTrue((ROOT / path).exists() or (page.parent / path).exists())


    @unittest.skipUnless(git("rev-parse", "--is-shallow-repository") == "false", "needs a clone with its history")
    def test_commits_that_figures_are_from_exist(self):
        known = set(git("rev-list", "--abbrev-commit", "--abbrev=7", "HEAD").split())
        for page in pages():
            for commit in COMMIT.findall(page.read_text(encoding="utf-8")):
                with self.subTest(page=str(page.relative_to(ROOT)), commit=commit):
                    self.assertTrue(commit in known, "not a commit of this history")


class FirstPage(unittest.TestCase):
    text = FIRST.read_text(encoding="utf-8")

    def test_it_is_read_in_ten_minutes(self):
        self.assertLessEqual(len(self.text.splitlines()), MOST_LINES)

    def test_the_first_code_that_it_shows_runs_and_checks_the_product(self):
        code = re.search(r"^```\n(.*?)^```", self.text, re.MULTILINE | re.DOTALL)
        self.assertEqual([line.split()[0] for line in code[1].splitlines()], ["api/quickstart", "tests/all"])

    def test_each_figure_names_its_commit(self):
        heading, table = "| command | what it printed | not counted | commit |", []
        for line in self.text[self.text.index(heading) :].splitlines()[2:]:
            if not line.startswith("|"):
                break
            table.append(line)
        self.assertGreater(len(table), 2)
        for line in table:
            self.assertRegex(line, rf"\| [^|]*{COMMIT.pattern} \|$")

    def test_the_quickstart_installs_only_what_building_and_running_need(self):
        script = (ROOT / "api" / "quickstart").read_text(encoding="utf-8")
        self.assertEqual(re.findall(r"^\.ci/install(.*)$", script, re.MULTILINE), [" build run"])


class WaysIn(unittest.TestCase):
    text = WAYS_IN.read_text(encoding="utf-8")

    def test_it_lists_every_setting(self):
        rows = written(ROOT / "api", SETTING)
        self.assertGreater(len(rows), 5)
        self.assertEqual(sorted(re.findall(r"\| `(--[\w-]+)` \| `(COMMTUNE_\w+)` \|", self.text)), sorted(rows))

    def test_it_lists_every_exit_status(self):
        rows = dict(written(ROOT / "api", STATUS))
        self.assertGreater(len(rows), 5)
        listed = dict(re.findall(r"^\| (\d+) \| (.+) \|$", self.text, re.MULTILINE))
        self.assertEqual({status: listed.get(status) for status in rows}, rows)
        self.assertEqual(sorted(set(listed) - set(rows)), ["0", "1", "130"])


if __name__ == "__main__":
    unittest.main(verbosity=2)  # the reason of a skip is seen
