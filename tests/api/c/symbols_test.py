#!/usr/bin/python3
"""The shared library shows what its header declares, and nothing else."""

import re
import subprocess
import sys
import unittest
from pathlib import Path

LIBRARY = Path(sys.argv.pop(1))
HEADER = Path(__file__).resolve().parents[3] / "api" / "c" / "commtune.h"


class Symbols(unittest.TestCase):
    def test_what_can_be_seen_is_what_the_header_declares(self):
        listed = subprocess.run(["nm", "--dynamic", "--defined-only", "--format=posix", LIBRARY], capture_output=True, text=True, check=True)
        seen = {line.split("@")[0].split()[0] for line in listed.stdout.splitlines()} - {"COMMTUNE_0"}
        declared = set(re.findall(r"\b(commtune_\w+)\(", re.sub(r"/\*.*?\*/", "", HEADER.read_text(encoding="utf-8"), flags=re.DOTALL)))
        self.assertEqual(seen, declared)
        self.assertGreater(len(seen), 15)


if __name__ == "__main__":
    unittest.main()
