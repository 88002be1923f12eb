"""Results of a bench's cases, each a file, so that a long bench can be run in parts."""

import dataclasses
import json
import re


def path_of(directory, case):
    return directory / "cases" / (re.sub(r"[^A-Za-z0-9.]+", "_", case.name) + ".json")


def keep(directory, result):
    """Keeps a result, a dataclass with its `case`."""
    path = path_of(directory, result.case)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(dataclasses.asdict(result), indent=1) + "\n", encoding="utf-8")


def content_of(directory, case):
    """What was kept of this very case, as a dict, or None: a case that was changed since is another one."""
    try:
        content = json.loads(path_of(directory, case).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return content if content["case"] == dataclasses.asdict(case) else None
