"""The tables that the bench prints, and which targets were missed."""

import collections
import statistics

from result_words import excluded

from .compare import SHARED_CORES, cost, latency, slope, typical, verdicts

# Targets: time per byte and the change of the delay from cluster to cluster, relative; held-out errors; seconds.
BETA_TARGET, DELAY_TARGET = 0.02, 0.10
MEDIAN_TARGET, P90_TARGET = 0.025, 0.08
OF_TWO_PROBES = 1.5  # times of what two probes differ by, a fit may be off
TIME_TARGETS = {4: 10.0, 8: 18.0}
SMALLEST_CHANGE = 20e-6  # of the delay from cluster to cluster: below it the stack's own share decides


def quantile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def target(name, value, limit):
    return f"{name}={value:.4f}(<={limit:.4g}{'' if value <= limit else ' MISSED'})"


class Held:
    """Held-out sizes of one kind: their errors, their limits, and by how much two probes of the same size differ."""

    def __init__(self, label, errors, differences):
        self.label = label
        self.count, self.median, self.p90 = len(errors), statistics.median(errors), quantile(errors, 0.9)
        self.twice = (statistics.median(differences), quantile(differences, 0.9)) if differences else None
        self.shared = label.endswith(SHARED_CORES)
        least = [OF_TWO_PROBES * difference for difference in self.twice or (0.0, 0.0)]
        self.median_limit, self.p90_limit = max(MEDIAN_TARGET, least[0]), max(P90_TARGET, least[1])

    @property
    def met(self):
        return self.median <= self.median_limit and self.p90 <= self.p90_limit


class Report:
    def __init__(self):
        self.missed, self.delays, self.errors, self.floor, self.worst_beta = [], [], {}, {}, 0.0
        self.cases, self.left_out = 0, collections.Counter()  # what no target judges, by (what, rule)
        self.disturbances = []  # while something was measured

    def expect(self, holds, text):
        if not holds:
            self.missed.append(text)
        return "ok" if holds else "MISSED"

    def case(self, case, truth, found, seconds, disturbance):
        self.cases += 1
        self.add_disturbance(disturbance)
        beta, delay = typical(truth)
        link = found["cluster"]["links"].get("inter-host")
        if link is None:  # on a machine too busy to measure one in time
            print(f"{case.name:46} {self.expect(False, f'{case.name}: no link between hosts was found')}", flush=True)
            return
        streamed = (link.get("streamed") or link["alone"])["curve"]
        largest = (link.get("streamed") or link["alone"])["largest_bytes"]
        measured = slope(streamed, largest / 4, largest)
        error = measured / beta - 1
        self.worst_beta = max(self.worst_beta, abs(error))
        alpha = cost(link["alone"]["curve"], 4)
        self.delays.append((case.name, delay, latency(found["links"])))
        links = found["links"]
        right = verdicts(links) == case.slow and len(links["groups"]) == case.groups
        limit = TIME_TARGETS.get(case.hosts, max(TIME_TARGETS.values()))
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

    def leave_out(self, count, what, rule):
        self.left_out[what, rule] += count

    def add_errors(self, errors, left_out):
        for rule, count in left_out.items():
            self.leave_out(count, "sizes", rule)
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
            if high - low < SMALLEST_CHANGE:
                self.leave_out(1, "delays", f"change-under-{1e6 * SMALLEST_CHANGE:.0f}us")
                continue
            error = (found_high - found_low) / (high - low) - 1
            word = self.expect(abs(error) <= DELAY_TARGET, f"{name}: change of the delay off by {error:+.1%}")
            print(f"  to {name:44} {1e6 * (high - low):8.0f} {1e6 * (found_high - found_low):9.0f} {error:+7.1%} {word}")
        own = [found - delay for _, delay, found in self.delays]
        print(f"  the stack's own share of the latency: {1e6 * min(own):.0f} to {1e6 * max(own):.0f} us")

    def held(self):
        return [Held(label, values, self.floor.get(label)) for label, values in sorted(self.errors.items())]

    def print_held_out(self):
        if not self.errors:
            return
        print("\nheld-out sizes                                  sizes   median      p90" + ("        two probes differ" if self.floor else ""))
        for one in self.held():
            text = (f"{one.label}: held-out median {one.median:.1%} (limit {one.median_limit:.1%}), p90 {one.p90:.1%} "
                    f"(limit {one.p90_limit:.1%})")
            word = self.expect(one.met, text)
            floor = f"  {one.twice[0]:8.1%} {one.twice[1]:8.1%}" if one.twice else ""
            print(f"  {one.label:45} {one.count:5} {one.median:8.1%} {one.p90:8.1%}  {word:6}{floor}".rstrip())

    def held_out_words(self):
        """Of each sort the kind that is closest to its limit, or furthest beyond, and by how much two probes of that kind
        differ: OF_TWO_PROBES times that is the limit where it is more than the target."""
        words = []
        for name, repeat, shared in (("held_out", "repeat", False), ("small_shared", "small_repeat", True)):
            kinds = [one for one in self.held() if one.shared == shared]
            if not kinds:
                continue
            for share, value, limit, at in (("median", "median", "median_limit", 0), ("p90", "p90", "p90_limit", 1)):
                worst = max(kinds, key=lambda one: getattr(one, value) / getattr(one, limit))
                words.append(target(f"{name}_{share}", getattr(worst, value), getattr(worst, limit)))
                if worst.twice:
                    words.append(f"{repeat}_{share}={worst.twice[at]:.4f}")
        return words

    def result_line(self):
        words = [target("beta_worst", self.worst_beta, BETA_TARGET)] if self.cases else []
        words += self.held_out_words()
        words.append(f"stolen_worst={max((found.stolen for found in self.disturbances), default=0.0):.4f}")
        words.append(f"late_worst={max((found.late for found in self.disturbances), default=0.0):.4f}")
        left_out = excluded(*((count, what, rule) for (what, rule), count in sorted(self.left_out.items())))
        words += [f"excluded={left_out}", f"targets_missed={len(self.missed)}"]
        return f"RESULT probes cases={self.cases} {' '.join(words)} {'missed' if self.missed else 'met'}"

    def result(self):
        """Every target that was missed, in words, then the line."""
        for text in self.missed:
            print(f"MISSED {text}")
        print("\n" + self.result_line())
