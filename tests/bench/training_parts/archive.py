"""The training bench's kept results: see case_archive.py."""

from case_archive import content_of, keep  # noqa: F401
from race_parts import bound
from race_parts.archive import systems_of

from . import results


def load(directory, cell):
    """The result kept of this very cell, or None."""
    content = content_of(directory, cell)
    if content is None:
        return None
    bounds = bound.Bounds(**content["bounds"]) if content["bounds"] else None
    return results.CellResult(cell, bounds, content["communication"], content["roles"], systems_of(content), content["loss"])
