"""What is printed: a line a row, the report in Markdown, the RESULT line."""

import statistics

import noise


def heading():
    return f"  {'method':<20} {'predicted':>12}  {'measured':>12} {'95 %':>8}  {'error':>8} {'stolen':>7} {'late':>7}  90 % range"


def range_of(row):
    if row.low is None:
        return ""
    return f"  {1e3 * row.low:.2f} to {1e3 * row.high:.2f} ms{'' if row.in_range else ': outside'}"


def line(row, again=False):
    mark = "=" if again else ">" if row.chosen else " "
    return (f"{mark} {row.method:<20} {1e3 * row.predicted:9.2f} ms  {1e3 * row.measured:9.2f} ms "
            f"± {1e3 * row.half_width:6.2f}  {100 * row.error:+6.1f} % {100 * row.disturbance.stolen:5.1f} % "
            f"{100 * row.disturbance.late:5.1f} %{range_of(row)}{'' if row.disturbance.punctual else ': not counted'}")


def verdict(result, counts):
    """What a case says of the choice. counts: whether a row does"""
    if not result.chosen:
        return "  the choice was not measured"
    others = "" if counts(result.chosen, result) else "; not counted"
    repeat = "" if result.repeat is None else f", measured again {100 * result.repeat:.1f} % apart"
    return (f"  regret of the choice {100 * result.regret:.1f} %{repeat}, {result.over_bound:.3f} of the bound "
            f"{1e3 * result.bound:.2f} ms; probed with {100 * result.disturbance.stolen:.1f} % stolen, "
            f"{100 * result.disturbance.late:.1f} % late{others}")


def case_line(result):
    """Of the report's table."""
    errors = [abs(row.error) for row in result.rows]
    worst = max(result.rows, key=lambda row: abs(row.error))
    choice = result.chosen
    repeat = "-" if result.repeat is None else f"{100 * result.repeat:.1f} %"
    tail = [choice.method, f"{100 * statistics.median(errors):.1f} %", f"{100 * worst.error:+.1f} % {worst.method}",
            f"{100 * result.regret:.1f} %", repeat, f"{result.over_bound:.3f}"] if choice else ["-"] * 6
    ratio = f"{result.case.ratio:.2f}" if result.case.ratio else "-"
    return f"| {result.case.name} | {ratio} | " + " | ".join(tail) + " |"


def report(judgement, label=""):
    """Markdown: a line a case, then every row by error."""
    lines = ["# Predicted against measured", "", result_line(judgement, label), "",
             "| case | communication / compute | chosen | median error | worst error | regret | A/A | over the bound |",
             "| --- | --- | --- | --- | --- | --- | --- | --- |"]
    lines += [case_line(result) for result in judgement.results]
    lines += ["", "| error | predicted ms | measured ms | method | case |", "| --- | --- | --- | --- | --- |"]
    rows = [(row, result.case) for result in judgement.results for row in result.rows]
    for row, case in sorted(rows, key=lambda pair: -abs(pair[0].error)):
        times = f"{1e3 * row.predicted:.2f} | {1e3 * row.measured:.2f}"
        lines.append(f"| {100 * row.error:+.1f} % | {times} | {row.method} | {case.name} |")
    return "\n".join(lines) + "\n"


def result_line(judgement, label=""):
    """label: what kind of run it was, where it was not of the matrix"""
    rows = sum(len(result.rows) for result in judgement.counted)
    words = [*([label] if label else []), f"cases={len(judgement.counted)}", f"rows={rows}"]
    words += [*(goal.word for goal in judgement.goals), *judgement.notes, judgement.repeats.words]
    return f"RESULT accuracy {' '.join(words)} excluded={judgement.excluded} {noise.verdict(judgement.goals)}"
