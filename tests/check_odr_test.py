#!/usr/bin/python3
"""With the flags of check-odr, a program in which two sources define one type differently does not link."""

import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

CHECK = Path(__file__).with_name("check-odr")
FLAGS = re.findall(r'-DCMAKE_CXX_FLAGS_ODR="([^"]*)"', CHECK.read_text(encoding="utf-8"))
COMPILER = os.environ.get("CXX", "c++").split()  # as CMake finds it

FIRST = """
struct LinkCost { MEMBERS };
double cost(const LinkCost& link);
int main() { return cost(LinkCost{}) > 0; }
"""
SECOND = """
struct LinkCost { MEMBERS };
double cost(const LinkCost& link) { return link.alpha; }
"""


def linked(first, second):
    """What the compiler says of a program of two sources, in each of which the type has these members."""
    with tempfile.TemporaryDirectory() as folder:
        objects = []
        for name, text, members in (("first", FIRST, first), ("second", SECOND, second)):
            source = Path(folder, f"{name}.cc")
            source.write_text(text.replace("MEMBERS", members), encoding="utf-8")
            objects.append(source.with_suffix(".o"))
            subprocess.run([*COMPILER, *FLAGS[0].split(), "-c", source, "-o", objects[-1]], check=True, capture_output=True)
        return subprocess.run([*COMPILER, *FLAGS[0].split(), *objects, "-o", f"{folder}/program"], capture_output=True, text=True, check=False,
                              env={**os.environ, "LC_ALL": "C"})


class OneDefinition(unittest.TestCase):
    def test_the_flags_are_found(self):
        self.assertEqual(len(FLAGS), 1)

    def test_a_type_with_other_members_in_another_source_does_not_link(self):
        for second in ("double alpha; double beta;", "float alpha;", "double alpha; float beta;"):
            with self.subTest(second):
                done = linked("double alpha; int beta;", second)
                self.assertNotEqual(done.returncode, 0)
                self.assertRegex(done.stderr, r"struct LinkCost.* violates the C\+\+ One Definition Rule")

    def test_the_same_type_in_both_links(self):
        done = linked("double alpha; int beta;", "double alpha; int beta;")
        self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
