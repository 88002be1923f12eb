#!/usr/bin/env python3
"""perfmodel/MODEL.md is what comments cite: the sections that they name exist, and so do the files and methods it names."""

import re
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parents[2]
MODEL = ROOT / "perfmodel" / "MODEL.md"
FOLDERS = ("api", "executor", "perfmodel", "probes", "store", "tests", "tuner")
CODE = {".cc", ".h", ".py", ".cmake", ".txt"}

HEADING = re.compile(r"^##+ (\d+(?:\.\d+)*)\.? ", re.MULTILINE)
CITATION = re.compile(r"\bMODEL(\.md)?,? sections? (\d+(?:\.\d+)*)(?: and (\d+(?:\.\d+)*))?")
NEXT_COMMENT_LINE = re.compile(r"\s*\n\s*(?:///?|#)?<? ?")
PATH = re.compile(r"`((?:build/)?(?:%s)/[\w./-]*)`" % "|".join(FOLDERS))
METHOD = re.compile(r'^\s*Method\{"([\w-]+)"', re.MULTILINE)


def sections(text):
    return HEADING.findall(text)


def citations(text):
    """Every section that a text cites, and whether it names the file as it is called."""
    joined = NEXT_COMMENT_LINE.sub(" ", text)
    return [(section, bool(named)) for named, *found in CITATION.findall(joined) for section in found if section]


def sources():
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in CODE and path.is_file() and "node_modules" not in path.parts and path != Path(__file__).resolve():
                yield path


class Reading(unittest.TestCase):
    def test_a_citation_may_go_on_in_the_next_line(self):
        self.assertEqual(citations("/// as in MODEL.md\n  /// section 4.2. More"), [("4.2", True)])
        self.assertEqual(citations("# (MODEL section 12)"), [("12", False)])
        self.assertEqual(citations("// MODEL.md, sections 3 and 4."), [("3", True), ("4", True)])

    def test_a_setting_is_no_citation(self):
        self.assertEqual(citations("COMMTUNE_MODEL section 3, tune MODEL"), [])

    def test_sections_are_its_headings(self):
        self.assertEqual(sections("# The model\n## 1. Words\n### 1.1 More\n## 2. Rest\n"), ["1", "1.1", "2"])


class Model(unittest.TestCase):
    text = MODEL.read_text(encoding="utf-8")

    def test_sections_are_numbered_in_order(self):
        before = [0]
        for section in sections(self.text):
            now = [int(part) for part in section.split(".")]
            following = [before[: len(now) - 1] + [before[len(now) - 1] + 1] if len(now) <= len(before) else before + [1]]
            self.assertIn(now, following, section)
            before = now

    def test_every_cited_section_exists(self):
        known, cited = set(sections(self.text)), 0
        for path in [*sources(), MODEL]:
            for section, named in citations(path.read_text(encoding="utf-8", errors="replace")):
                cited += 1
                self.assertIn(section, known, f"{path.relative_to(ROOT)}: MODEL.md has no section {section}")
                self.assertTrue(named, f"{path.relative_to(ROOT)}: write MODEL.md section {section}")
        self.assertGreater(cited, 10)

    def test_every_section_that_it_refers_to_exists(self):
        known = set(sections(self.text))
        for section in re.findall(r"\bsection (\d+(?:\.\d+)*)", self.text):
            self.assertIn(section, known)

    def test_every_file_that_it_names_exists(self):
        named = PATH.findall(self.text)
        self.assertGreater(len(named), 10)
        for path in named:
            source = path.removeprefix("build/") + ".cc" if path.startswith("build/") else path
            self.assertTrue((ROOT / source).exists(), f"MODEL.md names {path}")

    def test_its_methods_are_the_registry_s(self):
        registry = METHOD.findall((ROOT / "tuner" / "methods" / "registry.cc").read_text(encoding="utf-8"))
        table = self.text.split("\n## 2.")[1].split("\n## 3.")[0]
        listed = [name for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for name in re.findall(r"`([\w-]+)`", row)]
        self.assertEqual(sorted(listed), sorted([*registry, "joint"]))


if __name__ == "__main__":
    unittest.main(verbosity=2)
