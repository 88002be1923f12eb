"""Ranks on this machine without emulated links, as api/quickstart shows first. Other work there comes and goes, so all methods
run in turn, several times."""

from . import output
from .cases import Case, Network
from .measuring import checked, row_of, together, wanted

MODELS = (("resnet50", 1, 0.252865), ("bert_base", 10, 0.3))  # the first as quickstart plans it: with its profile's own times
LARGEST, BUDGET = "128M", "40s"  # of a probe, as there
ROUNDS = 4  # even: as many forwards as backwards


def cases(ranks):
    return tuple(Case(model, Network(0, slots=count), divisor, compute) for count in ranks for model, divisor, compute in MODELS)


def in_turns(answer, tuner, watch, arguments, say):
    """Every wanted method's row, and the choice's again. Each round runs all methods and the choice a second time at the other
    end; every other round the other way round, so that what gets slowly better or worse meets all of them alike."""
    plan = answer["plans"][answer["chosen"]]
    entries = wanted(answer, arguments.method)
    choice = [entry for entry in entries if entry["method"] == answer["chosen"]]
    turns: list[tuple[dict, list]] = [(entry, []) for entry in [*entries, *choice]]
    for number in range(ROUNDS):
        say(f"  round {number + 1} of {ROUNDS}")
        for entry, visits in turns:
            visits.append(
                watch.calmly(lambda entry=entry: checked(tuner, plan, entry["method"], arguments.warmup, arguments.iterations))
            )
        turns.reverse()
    rows = [row_of(entry, answer, *together(visits)) for entry, visits in turns]
    say(output.heading())
    for row, again in zip(rows, [False] * len(entries) + [True]):
        say(output.line(row, again))
    return tuple(rows[: len(entries)]), rows[len(entries)] if choice else None
