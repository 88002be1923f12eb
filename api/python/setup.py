"""Builds the wheel: the package and libcommtune.

COMMTUNE_BUILT_LIBRARY names a libcommtune.so that was built already; otherwise it is built here, by CMake, from the
tree that this folder lies in.
"""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.dist import Distribution

ROOT = Path(__file__).resolve().parents[2]


def built_library(folder: Path) -> Path:
    """libcommtune.so, which is made in the folder unless the environment names one."""
    if named := os.environ.get("COMMTUNE_BUILT_LIBRARY"):
        return Path(named)
    subprocess.run(
        [
            "cmake",
            "-S",
            ROOT,
            "-B",
            folder,
            "-DCMAKE_BUILD_TYPE=Release",
            "-DCOMMTUNE_BUILD_TESTS=OFF",
            "-DCOMMTUNE_UNITY=ON",
        ],
        check=True,
    )
    jobs = os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL", str(os.cpu_count() or 1))
    subprocess.run(["cmake", "--build", folder, "--target", "commtune", "-j", jobs], check=True)
    return folder / "lib" / "libcommtune.so"


class BuildWithLibrary(build_py):
    """Puts the library beside the package's modules."""

    def run(self) -> None:
        """Builds, then copies."""
        super().run()
        with tempfile.TemporaryDirectory(prefix="commtune-build-") as folder:
            shutil.copyfile(built_library(Path(folder)), Path(self.build_lib) / "commtune" / "libcommtune.so")


class WithLibrary(Distribution):
    """A wheel for this kind of machine alone."""

    def has_ext_modules(self) -> bool:
        """It has: not by setuptools' own hands."""
        return True


setup(cmdclass={"build_py": BuildWithLibrary}, distclass=WithLibrary)
