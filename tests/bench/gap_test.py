#!/usr/bin/env python3
"""The table that `gap` writes, into a folder in which somebody else has laid a link."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = sys.argv.pop(1)


class Table(unittest.TestCase):
    def test_replaces_a_link_and_leaves_alone_what_it_points_at(self):
        with tempfile.TemporaryDirectory() as folder:
            victim, table = Path(folder) / "victim", Path(folder) / "gap.csv"
            victim.write_text("dear")
            table.symlink_to(victim)
            subprocess.run([PROGRAM, "--jobs", "1", "--csv", str(table)], stdout=subprocess.DEVNULL, check=False)
            self.assertEqual(victim.read_text(), "dear")
            self.assertFalse(table.is_symlink())
            heading, *rows = table.read_text().splitlines()
            self.assertTrue(heading.startswith("workers,tensors,ratio,"))
            self.assertEqual(len(rows), 1)


if __name__ == "__main__":
    unittest.main()
