"""The tables that the bench prints, and which targets were missed."""

import json
import statistics

from .compare import SHARED_CORES, cost, latency, slope, typical, verdicts

# Targets: time per byte and the change of the delay from cluster to cluster, relative; held-out errors; seconds.
BETA_TARGET, DELAY_TARGET = 0.02, 0.10
MEDIAN_TARGET, P90_TARGET = 0.03, 0.08
TIME_TARGETS = {4: 8.0, 8: 15.0}


def quantile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


class Report:
    def __init__(self):
        self.missed, self.delays, self.errors, self.floor, self.worst_beta = [], [], {}, {}, 0.0
        self.disturbances = []  # while something was measured

    def expect(self, holds, text):
        if not holds:
            self.missed.append(text)
        return "ok" if holds else "MISSED"

    def case(self, case, truth, found, seconds, disturbance):
        self.add_disturbance(disturbance)
        beta, delay = typical(truth)
        link = found["cluster"]["links"]["inter-host"]
        streamed = (link.get("streamed") or link["alone"])["curve"]
        largest = (link.get("streamed") or link["alone"])["largest_bytes"]
        measured = slope(streamed, largest / 4, largest)
        error = measured / beta - 1
        self.worst_beta = max(self.worst_beta, abs(error))
        alpha = cost(link["alone"]["curve"], 4)
        self.delays.append((case.name, delay, latency(found["links"])))
        links = found["links"]
        right = verdicts(links) == case.slow and len(links["groups"]) == case.groups
        limit = TIME_TARGETS.get(case.hosts, 15.0)
        beta_word = self.expect(abs(error) <= BETA_TARGET, f"{case.name}: time per byte off by {error:+.1%}")
        verdict_word = self.expect(right, f"{case.name}: found {verdicts(links)} and groups {links['groups']}")
        time_word = self.expect(seconds <= limit, f"{case.name}: took {seconds:.1f} s")
        print(
            f"{case.name:46} {1e9 * beta:7.3f} {1e9 * measured:7.3f} {error:+7.1%} {beta_word:6} {1e6 * delay:6.0f} "
            f"{1e6 * alpha:6.0f}  {verdict_word:6} {seconds:5.1f} s {time_word:6} {disturbance.stolen:6.1%} {disturbance.late:6.1%}",
            flush=True,
        )

    def add_disturbance(self, disturbance):
        self.disturbances.append(disturbance)

    def add_errors(self, errors):
        for label, values in errors.items():
            self.errors.setdefault(label, []).extend(values)

    def add_floor(self, differences):
        for label, values in differences.items():
            self.floor.setdefault(label, []).extend(values)

    def print_delays(self):
        """A small message takes the delay and the stack's own share: its change from cluster to cluster is the delay's."""
        if len(self.delays) < 2:
            return
        print("\nchange of the delay from cluster to cluster      true us  found us")
        ordered = sorted(self.delays, key=lambda entry: entry[1])
        for (_, low, found_low), (name, high, found_high) in zip(ordered, ordered[1:]):
            if high - low < 20e-6:
                continue
            error = (found_high - found_low) / (high - low) - 1
            word = self.expect(abs(error) <= DELAY_TARGET, f"{name}: change of the delay off by {error:+.1%}")
            print(f"  to {name:44} {1e6 * (high - low):8.0f} {1e6 * (found_high - found_low):9.0f} {error:+7.1%} {word}")
        own = [found - delay for _, delay, found in self.delays]
        print(f"  the stack's own share of the latency: {1e6 * min(own):.0f} to {1e6 * max(own):.0f} us")

    def print_held_out(self):
        if not self.errors:
            return
        print("\nheld-out sizes                                  sizes   median      p90" + ("        two probes differ" if self.floor else ""))
        for label, values in sorted(self.errors.items()):
            median, p90 = statistics.median(values), quantile(values, 0.9)
            within = median <= MEDIAN_TARGET and p90 <= P90_TARGET
            text = f"{label}: held-out median {median:.1%}, p90 {p90:.1%}"
            word = "-" if label.endswith(SHARED_CORES) else self.expect(within, text)
            twice = self.floor.get(label)
            floor = f"  {statistics.median(twice):8.1%} {quantile(twice, 0.9):8.1%}" if twice else ""
            print(f"  {label:45} {len(values):5} {median:8.1%} {p90:8.1%}  {word:6}{floor}".rstrip())

    def result(self):
        judged = [values for label, values in self.errors.items() if not label.endswith(SHARED_CORES)]
        flat = [error for values in judged for error in values]
        print(
            "\nRESULT "
            + json.dumps(
                {
                    "bench": "probes",
                    "worst_beta_error": round(self.worst_beta, 4),
                    "held_out_median": round(statistics.median(flat), 4) if flat else None,
                    "held_out_p90": round(quantile(flat, 0.9), 4) if flat else None,
                    "stolen_worst": round(max((found.stolen for found in self.disturbances), default=0.0), 4),
                    "late_worst": round(max((found.late for found in self.disturbances), default=0.0), 4),
                    "missed": self.missed,
                    "ok": not self.missed,
                }
            )
        )
