"""One case: probe its cluster as a user would, rank all methods, run every method's plan."""

import contextlib
import itertools
import json
import math
import statistics
import tempfile
from pathlib import Path

from disturbance import Disturbance, Watch
from race_parts import emulated, ours
from . import output, rdma, results


T_95 = {2: 12.706, 4: 3.182}  # Student's t by the number of runs


class Here:
    """This machine in the place of an emulated cluster."""

    def __init__(self, ranks):
        self.name = "here"
        self.place = ["--local", str(ranks)]

    @staticmethod
    def command_on(_host, command):
        return command

    @staticmethod
    def status():
        return None  # no switch


@contextlib.contextmanager
def cluster_of(network, name, switch):
    if network.local:
        yield Here(network.slots)
        return
    if isinstance(network, rdma.RdmaNetwork):
        with rdma.cluster(network) as cluster:
            yield cluster
        return
    flags = ["--slots", str(network.slots)]
    with emulated.cluster(network, name, switch, flags) as cluster:
        cluster.place = ["--hosts", cluster.hostfile]
        yield cluster


class Tuner(ours.Tuner):
    """The same command, for all methods of a ranking."""

    def probe_to(self, largest, budget, profile=None):
        flags = ["-e", largest] + (["--budget", budget] if budget else []) + (["--for", str(profile)] if profile else [])
        return self._call("probe", *self._cluster.place, *flags, *self._extra)

    def rank(self, profile, more):
        return self._call("plan", str(profile), *self._cluster.place, *self._extra, *more)

    def run_methods(self, plan, methods, warmup, iterations):
        """Their reports by method, of ranks that start once and run the plans in turn."""
        flags = [flag for method in methods for flag in ("--method", method)]
        flags += ["--warmup", str(warmup), "--iterations", str(iterations), *self._cluster.place]
        reports = [run["report"] for run in self._call("run", str(plan), *flags, *self._extra)["runs"]]
        return {report["method"]: report for report in reports}


def verified(report):
    """It, if its gradients were."""
    if report["check"]["tensors"] == 0:
        raise emulated.RaceError(f"{report['method']}: no gradient was checked")
    return report


def checked(tuner, plan, method, warmup, iterations):
    """The report of a run whose gradients were verified."""
    return verified(tuner.run_methods(plan, [method], warmup, iterations)[method])


def measure(tuner, plan, method, arguments):
    """A report whose median is known well enough, or the last one; each try takes more iterations."""
    iterations = arguments.iterations
    while True:
        report = checked(tuner, plan, method, arguments.warmup, iterations)
        known = report["half_width_seconds"] <= arguments.width * report["median_seconds"]
        if known or 2 * iterations > arguments.most_iterations:
            return report
        iterations *= 2


def row_of(entry, answer, report, disturbance):
    doubt = entry.get("doubt", {})
    return results.Row(
        method=entry["method"],
        road=entry["road"],
        predicted=entry["iteration_seconds"],
        measured=report["median_seconds"],
        half_width=report["half_width_seconds"],
        iterations=len(report["iteration_seconds"]),
        chosen=entry["method"] == answer["chosen"],
        disturbance=disturbance,
        low=doubt.get("low_seconds"),
        high=doubt.get("high_seconds"),
    )


def together(visits):
    """One report of several runs of a plan, and the worst that disturbed one of them. The median's interval is that of the runs'
    medians, as iterations of one run have more in common than runs have; of one run, its own."""
    iterations = [seconds for report, _ in visits for seconds in report["iteration_seconds"]]
    medians = [report["median_seconds"] for report, _ in visits]
    report = {"iteration_seconds": iterations, "median_seconds": statistics.median(iterations)}
    if len(visits) == 1:
        report["half_width_seconds"] = visits[0][0]["half_width_seconds"]
    else:
        report["half_width_seconds"] = T_95[len(visits)] * statistics.stdev(medians) / math.sqrt(len(medians))
    return report, Disturbance(max(disturbance.stolen for _, disturbance in visits))


def wanted(answer, methods):
    """The entries of a ranking that are of these methods, in its order; none named: all."""
    return [entry for entry in answer["ranking"] if not methods or entry["method"] in methods]


def one_by_one(answer, tuner, watch, arguments, say):
    """Every wanted method's row, and the choice's once more, with as many iterations."""
    plan = answer["plans"][answer["chosen"]]
    rows = []
    say(output.heading())
    for entry in wanted(answer, arguments.method):
        report, disturbance = watch.calmly(lambda entry=entry: measure(tuner, plan, entry["method"], arguments))
        rows.append(row_of(entry, answer, report, disturbance))
        say(output.line(rows[-1]))
    return tuple(rows), choice_again(rows, answer, tuner, watch, arguments, say)


def there_and_back(answer, tuner, watch, arguments, say):
    """The same by ranks that start once for all methods, where starting them takes as long as many iterations: all methods, the
    choice once more and as often, all methods from the last to the first. What gets slowly better or worse meets all alike."""
    plan = answer["plans"][answer["chosen"]]
    entries = wanted(answer, arguments.method)
    methods = [entry["method"] for entry in entries]

    def passes(order, iterations):
        return watch.calmly(lambda: tuner.run_methods(plan, order, arguments.warmup, iterations))

    def row(method, visits):
        verified_visits = [(verified(reports[method]), disturbance) for reports, disturbance in visits]
        return row_of(ours.entry_of(answer, method), answer, *together(verified_visits))

    there = passes(methods, arguments.iterations)
    choice = answer["chosen"] if answer["chosen"] in methods else None
    middle = passes([choice], 2 * arguments.iterations) if choice else None
    back = passes(methods[::-1], arguments.iterations)
    rows = tuple(row(method, [there, back]) for method in methods)
    again = row(choice, [middle]) if choice else None
    say(output.heading())
    for each in rows:
        say(output.line(each))
    if again:
        say(output.line(again, again=True))
    return rows, again


def choice_again(rows, answer, tuner, watch, arguments, say):
    """The choice's row of another run; nothing where it is not among the rows."""
    choice = next((row for row in rows if row.chosen), None)
    if choice is None:
        return None
    plan = answer["plans"][answer["chosen"]]
    report, disturbance = watch.calmly(lambda: checked(tuner, plan, choice.method, arguments.warmup, choice.iterations))
    again = row_of(ours.entry_of(answer, choice.method), answer, report, disturbance)
    say(output.line(again, again=True))
    return again


def probed(tuner, largest, budget, profile):
    tuner.probe_to(largest, budget, profile)
    return tuner


def run_case(case, program, arguments, mode, say):
    say(f"\n{case.name}")
    with tempfile.TemporaryDirectory(prefix="commtune-accuracy-") as folder, cluster_of(
        case.network, arguments.name, arguments.switch
    ) as cluster:
        profile = Path(folder) / "profile.json"
        profile.write_text(json.dumps(case.profile()), encoding="utf-8")
        databases = (Path(folder) / f"probe-{number}.db" for number in itertools.count())
        watch = Watch(cluster.status)
        largest, budget = arguments.largest or mode.largest, arguments.budget or mode.budget
        aim = profile if mode.probes_for_model else None
        tuner, disturbance = watch.calmly(
            lambda: probed(Tuner(program, cluster, next(databases), arguments.tune_arg), largest, budget, aim)
        )
        answer = tuner.rank(profile, ([f"--check={mode.check}"] if mode.check else []) + arguments.plan_arg)
        rows, again = mode.sweep(answer, tuner, watch, arguments, say)
    if not rows:
        raise emulated.RaceError(f"{case.name}: no method is called {' or '.join(arguments.method)}")
    result = results.CaseResult(case, answer["bound_seconds"], rows, disturbance, again, answer.get("checked") is True)
    say(output.verdict(result, mode.counts))
    return result
