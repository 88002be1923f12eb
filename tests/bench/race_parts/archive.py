"""The race's kept results: see case_archive.py."""

from case_archive import content_of, keep, path_of  # noqa: F401

from . import bound, ranks, results


def load(directory, case):
    """The result kept of this very case, or None."""
    content = content_of(directory, case)
    if content is None:
        return None
    bounds = bound.Bounds(**content["bounds"])
    return results.CaseResult(
        case, content["gradient_bytes"], content["tensors"], bounds, systems_of(content), content.get("buckets", 0)
    )


def systems_of(content):
    """The SystemResults of a kept result."""
    systems = []
    for system in content["systems"]:
        rounds = [ranks.Round(**each) for each in system.pop("rounds")]
        systems.append(results.SystemResult(**system, rounds=rounds))
    return systems
