"""PyTorch as its users have it: of the version that tests/api/python/requirements.txt names, in an environment of its own."""

import subprocess
from pathlib import Path

from .emulated import RaceError

ENVIRONMENT = Path(__file__).resolve().parents[2] / "api" / "python" / "environment"


def environment():
    """The folder of the Python environment, which is made where there is none; it takes 5 GB of the user's cache. Raises
    RaceError with the status 77 where it cannot be made."""
    done = subprocess.run([ENVIRONMENT], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()
        error = RaceError(said[-1] if said else f"{ENVIRONMENT}: exit status {done.returncode}")
        error.status = done.returncode
        raise error
    return Path(done.stdout.strip())
