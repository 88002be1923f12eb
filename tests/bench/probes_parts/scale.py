"""How the time of a probe grows with the number of hosts: measured to 16, by formula beyond."""


HOSTS = (2, 4, 8, 12, 16)
BEYOND = (16, 64, 256, 1024)
FLAGS = ["--rate", "1Gbit", "--delay", "200us"]

# What the probe does by default (probes/options.cc, probes/sampling/link_survey.cc).
BUDGET_FIXED, BUDGET_PER_HOST, BUDGET_MOST = 2.2, 1.25, 60.0
ALL_PAIRS_HOSTS, SAMPLED_ROUNDS = 64, 12


def budget(hosts):
    return min(BUDGET_FIXED + BUDGET_PER_HOST * hosts, BUDGET_MOST)


def rounds(hosts):
    """Of disjoint pairs that the survey runs; beyond a number of hosts they are sampled."""
    every = hosts - 1 if hosts % 2 == 0 else hosts
    return every if hosts <= ALL_PAIRS_HOSTS else SAMPLED_ROUNDS


def line(points):
    """Least squares: (at zero, per unit)."""
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    per = sum((x - mean_x) * (y - mean_y) for x, y in points) / sum((x - mean_x) ** 2 for x, _ in points)
    return mean_y - per * mean_x, per


def survey_seconds(found):
    """Until the last link of the matrix was known: the jitter is measured right after it."""
    for entry in found["timed"]:
        if entry["sample"]["subject"] == "jitter":
            return before
        before = entry["at_seconds"]
    raise RuntimeError("the probe measured no jitter")


def measure(machine, report):
    print("\nhosts  budget  command  survey   rounds  repetitions   largest all-reduce")
    starts, surveys = [], []
    for hosts in HOSTS:
        with machine.cluster(["--hosts", str(hosts), *FLAGS]):
            found, samples, seconds = machine.probe(hosts)
        survey = survey_seconds(found)
        starts.append((hosts, seconds - found["elapsed_seconds"]))
        surveys.append((rounds(hosts), survey))
        repetitions = sum(sample["repetitions"] for sample in samples)
        largest = max(s["size_bytes"] for s in samples if s.get("operation") == "all-reduce" and s["workers"] == hosts)
        word = report.expect(
            found["elapsed_seconds"] <= budget(hosts) + 0.5, f"{hosts} hosts: {found['elapsed_seconds']:.1f} s, not its budget"
        )
        print(
            f"{hosts:5} {budget(hosts):6.1f} s {seconds:6.1f} s {survey:5.2f} s {rounds(hosts):7} {repetitions:12} "
            f"{largest / (1 << 20):14.2f} MiB  {word}",
            flush=True,
        )
    start, survey = line(starts), line(surveys)
    print(f"  start and end of the ranks: {start[0]:.2f} s + {1e3 * start[1]:.0f} ms a host")
    print(f"  survey: {survey[0]:.2f} s + {1e3 * survey[1]:.0f} ms a round")
    print(f"  on paper (hosts of their own start at the same time; budget = min({BUDGET_FIXED} s + {BUDGET_PER_HOST} s a host, {BUDGET_MOST:.0f} s)):")
    for hosts in BEYOND:
        share = survey[0] + survey[1] * rounds(hosts)
        print(f"  {hosts:5} hosts: probe {budget(hosts):5.1f} s, of which survey {share:4.1f} s in {rounds(hosts)} rounds")
        report.expect(share <= 0.35 * budget(hosts), f"{hosts} hosts: the survey would take {share:.1f} s")
    return {"start_seconds": start, "survey_seconds": survey}
