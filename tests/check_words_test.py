#!/usr/bin/python3
"""Names of types that nobody can know are found in made-up headers; known ones, and what is no type, pass."""

import subprocess
import tempfile
import unittest
from pathlib import Path

CHECK = Path(__file__).with_name("check-words")
MODEL = """# The model

## 12. Glossary

| word | meaning |
| --- | --- |
| road | a way for gradients |
| head-of-line (blocking) | what waits in front |
| `pace` | how fast |

## 13. Sources
| Birge | 1932 |
"""
PLAIN = "a\nclass\nipv4\nmessage\noptions\nreply\ntcp\n"


def run(header, model=MODEL, plain=PLAIN, name="executor/transport/a.h"):
    with tempfile.TemporaryDirectory() as folder:
        for path, text in {"perfmodel/MODEL.md": model, "tests/words.txt": plain, name: header}.items():
            file = Path(folder, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        return subprocess.run([CHECK, folder], capture_output=True, text=True, check=False)


class Words(unittest.TestCase):
    def passes(self, header, **others):
        done = run(header, **others)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def finds(self, header, text, **others):
        done = run(header, **others)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn(text, done.stdout)

    def test_words_of_the_glossary_and_plain_ones_pass(self):
        self.passes("struct RoadOptions {};\nenum class HeadOfLine : int { kLow };\nclass TCPMessages;\nusing Pace = double;\nstruct Ipv4Options;\nclass Replies;\n")

    def test_a_word_that_nobody_explains_is_found_with_its_place(self):
        self.finds("\nstruct ParcelOptions {};\n", "executor/transport/a.h:2: ParcelOptions: parcel: ")

    def test_every_way_to_name_a_type_is_read(self):
        for header in ("class Parcel {};", "enum Parcel {};", "enum class Parcel;", "enum struct Parcel : int;", "union Parcel {};", "using Parcel = int;",
                       "typedef int Parcel;", "struct [[nodiscard]] Parcel {};", "struct A { class Parcel; };", "struct parcel_message {};",
                       "template <class T>\nconcept Parcel = true;", "template <typename T> struct Parcel {};"):
            with self.subTest(header=header):
                self.finds(header, "parcel")

    def test_what_is_no_name_of_a_type_is_not_read(self):
        self.passes('// a class Parcel\n/* struct Parcel\n */ const char* x = "struct Parcel"; int parcel(int gate);\ntemplate <class Parcel> struct Message;\n'
                    "using namespace parcel;\nusing parcel::Gate;\n")

    def test_a_word_outside_the_glossary_s_table_does_not_count(self):
        self.finds("struct Birge;", "Birge: birge")
        self.finds("struct Blocking;", "Blocking: blocking")
        self.finds("struct Meaning;", "Meaning: meaning")

    def test_without_a_glossary_its_words_are_unknown(self):
        self.finds("struct Road;", "Road: road", model="# The model\n")

    def test_the_list_of_plain_words_is_sorted_and_has_each_once(self):
        self.finds("", 'tests/words.txt:2: "a" comes after "b"', plain="b\na\n")
        self.finds("", 'tests/words.txt:2: "a" comes after "a"', plain="a\na\n")
        self.finds("", 'tests/words.txt:1: "Two words": expected one word', plain="Two words\n")

    def test_sources_are_not_read(self):
        done = run("struct Parcel;", name="executor/a.cc")
        self.assertIn("no headers", done.stderr)


if __name__ == "__main__":
    unittest.main()
