#!/usr/bin/python3
"""What CUDA is compiled with are the versions that PyTorch requires, so that nothing comes twice."""

import hashlib
import importlib.metadata
import os
import re
import subprocess
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PINS = ROOT / ".ci/gpu.txt"
REQUIREMENTS = ROOT / "tests/api/python/requirements.txt"
EXACT = re.compile(r"^(?P<name>[\w-]+)(\[[\w,]*\])?\s*\(?==(?P<version>[\d.]+?)(\.\*)?\)?\s*(;.*)?$")


def python_environment():
    """Where tests/api/python/environment keeps what requirements.txt names; it is not made here."""
    version = subprocess.run(["/usr/bin/python3", "--version"], check=True, capture_output=True).stdout
    digest = hashlib.sha256(REQUIREMENTS.read_bytes() + version).hexdigest()[:12]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "commtune" / f"python-{digest}"


def exact_versions(lines):
    matches = [EXACT.match(line.strip()) for line in lines]
    return {match["name"]: match["version"] for match in matches if match}


class Toolkit(unittest.TestCase):
    def test_pins_are_those_that_pytorch_requires(self):
        environment = python_environment()
        if not (environment / "complete").exists():
            self.skipTest("no environment with PyTorch here (tests/api/python/environment makes it)")
        packages = [str(path) for path in environment.glob("lib/python3*/site-packages")]
        found = {one.metadata["Name"]: one for one in importlib.metadata.distributions(path=packages)}
        required = exact_versions(found["torch"].requires) | exact_versions(found["cuda-toolkit"].requires)
        for name, version in exact_versions(PINS.read_text(encoding="utf-8").splitlines()).items():
            with self.subTest(name):
                self.assertEqual(version, required.get(name), f"{PINS.name} against torch {found['torch'].version}")

    def test_every_line_pins_one_version(self):
        lines = [line for line in PINS.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
        self.assertEqual(len(lines), len(exact_versions(lines)))


if __name__ == "__main__":
    unittest.main(verbosity=2)  # the reason of a skip is seen
