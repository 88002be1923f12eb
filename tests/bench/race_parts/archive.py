"""Results of single cases, kept in a folder, so that a long race can be run in parts."""

import dataclasses
import json
import re

from . import bound, ddp, results


def path_of(directory, case):
    return directory / "cases" / (re.sub(r"[^A-Za-z0-9.]+", "_", case.name) + ".json")


def keep(directory, result):
    path = path_of(directory, result.case)
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(dataclasses.asdict(result), indent=1) + "\n", encoding="utf-8")


def load(directory, case):
    """The result kept of this very case, or None: a case that was changed since is another one."""
    try:
        content = json.loads(path_of(directory, case).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    if content["case"] != dataclasses.asdict(case):
        return None
    systems = []
    for system in content["systems"]:
        rounds = [ddp.Round(**each) for each in system.pop("rounds")]
        systems.append(results.SystemResult(**system, rounds=rounds))
    bounds = bound.Bounds(**content["bounds"])
    return results.CaseResult(case, content["gradient_bytes"], content["tensors"], bounds, systems)
