"""What is printed: a line a row, the report in Markdown, the RESULT line."""

import statistics

import noise

from . import targets


def heading():
    return f"  {'method':<20} {'predicted':>12}  {'measured':>12} {'95 %':>8}  {'error':>8} {'stolen':>7} {'late':>7}"


def line(row):
    return (f"{'>' if row.chosen else ' '} {row.method:<20} {1e3 * row.predicted:9.2f} ms  {1e3 * row.measured:9.2f} ms "
            f"± {1e3 * row.half_width:6.2f}  {100 * row.error:+6.1f} % {100 * row.disturbance.stolen:5.1f} % "
            f"{100 * row.disturbance.late:5.1f} %{'' if row.disturbance.punctual else ': not counted'}")


def verdict(result):
    """What a case says of the choice."""
    if not result.chosen:
        return "  the choice was not measured"
    others = "" if result.case.network.emulated and result.disturbance.punctual else "; not counted"
    return (f"  regret of the choice {100 * result.regret:.1f} %, {result.over_bound:.3f} of the bound {1e3 * result.bound:.2f} ms; "
            f"probed with {100 * result.disturbance.stolen:.1f} % stolen, {100 * result.disturbance.late:.1f} % late{others}")


def report(results, quick, unasked=0):
    """Markdown: a line a case, then every row by error."""
    lines = ["# Predicted against measured", "", result_line(results, quick, unasked), "",
             "| case | communication / compute | chosen | median error | worst error | regret | over the bound |",
             "| --- | --- | --- | --- | --- | --- | --- |"]
    for result in results:
        errors = [abs(row.error) for row in result.rows]
        worst = max(result.rows, key=lambda row: abs(row.error))
        choice = result.chosen
        tail = [choice.method, f"{100 * statistics.median(errors):.1f} %", f"{100 * worst.error:+.1f} % {worst.method}",
                f"{100 * result.regret:.1f} %", f"{result.over_bound:.3f}"] if choice else ["-"] * 5
        ratio = f"{result.case.ratio:.2f}" if result.case.ratio else "-"
        lines.append(f"| {result.case.name} | {ratio} | " + " | ".join(tail) + " |")
    lines += ["", "| error | predicted ms | measured ms | method | case |", "| --- | --- | --- | --- | --- |"]
    rows = [(row, result.case) for result in results for row in result.rows]
    for row, case in sorted(rows, key=lambda pair: -abs(pair[0].error)):
        lines.append(f"| {100 * row.error:+.1f} % | {1e3 * row.predicted:.2f} | {1e3 * row.measured:.2f} | {row.method} | {case.name} |")
    return "\n".join(lines) + "\n"


def result_line(results, quick, unasked=0):
    goals = targets.goals_of(results, quick)
    disturbances = [row.disturbance for result in targets.emulated(results) for row in result.rows]
    stolen = statistics.median(disturbance.stolen for disturbance in disturbances)
    late = statistics.median(disturbance.late for disturbance in disturbances)
    return (f"RESULT accuracy cases={len(targets.counted(results))} rows={targets.size(targets.counted(results))} "
            f"{' '.join(goal.word for goal in goals)} "
            f"late_rows={targets.late_rows(results)} stolen_median={stolen:.4f} late_median={late:.4f} "
            f"excluded={targets.exclusions(results, unasked)} {noise.verdict(goals)}")
