#!/usr/bin/env python3
"""The package is installed by pip, without network, into an environment of its own, and imports there."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[3] / "api" / "python"


class Wheel(unittest.TestCase):
    def test_it_is_built_with_the_library_in_it_and_works_alone(self):
        environment = {**os.environ, "COMMTUNE_BUILT_LIBRARY": os.environ["COMMTUNE_LIBRARY"]}
        for name in ("COMMTUNE_LIBRARY", "PYTHONPATH"):
            environment.pop(name)
        with tempfile.TemporaryDirectory() as folder:
            tree = Path(folder) / "python"
            subprocess.run(["cp", "-r", PACKAGE, tree], check=True)  # setuptools writes beside its sources
            install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-build-isolation", "--target", f"{folder}/site", tree]
            subprocess.run(install, check=True, env=environment)
            code = "import commtune, commtune._library as l; print(commtune.library_version(), l._LIBRARY)"
            said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=folder, env={**environment, "PYTHONPATH": f"{folder}/site"})
        self.assertEqual(said.stdout.split(), ["0.1.0", f"{folder}/site/commtune/libcommtune.so"])


if __name__ == "__main__":
    unittest.main()
