#!/usr/bin/env python3
"""How drawn and local runs of the accuracy bench are judged: within noise, and by what the tuner's ranges hold."""

import argparse
import dataclasses
import sys
import unittest

sys.dont_write_bytecode = True
import noise
from accuracy_parts import coverage, drawn, local, measuring, output, targets
from accuracy_test import LATE, result, row
from disturbance import Disturbance, Watch

CASES = drawn.cases("targets", 12)


def ranged(held, outside, case=CASES[0], **more):
    """A result of so many rows that their ranges hold, and so many that they do not; the first is the choice."""
    rows = [row("a", 1.0, 1.0, chosen=not index, low=0.96, high=1.04) for index in range(held)]
    return result(rows + [row("b", 1.0, 1.0, low=1.01, high=1.09) for _ in range(outside)], case, **more)


def again(measured):
    return row("a", 1.0, measured, chosen=True)


def goal(judgement, name):
    return next(goal for goal in judgement.goals if goal.name == name)


class Coverage(unittest.TestCase):
    def test_share_and_width_by_hand(self):
        # 9 of 10 and 8 of 10; widths of 0.08.
        found = coverage.coverage_of([ranged(9, 1), ranged(8, 2)])
        self.assertEqual((found.rows, found.share), (20, 0.85))
        self.assertAlmostEqual(found.width, 0.08)

    def test_the_interval_is_of_cases_not_of_rows(self):
        # Two cases, all rows held or none: drawn twice out of two, a quarter of the resamples has none, a quarter has all.
        self.assertEqual(coverage.interval([[True] * 50, [False] * 50]), (0, 1))
        # The same 100 rows as 100 cases: 0.5 -+ 1.645 x 0.05.
        low, high = coverage.interval([[True], [False]] * 50)
        self.assertAlmostEqual(low, 0.418, delta=0.011)
        self.assertAlmostEqual(high, 0.582, delta=0.011)

    def test_equal_cases_have_no_interval(self):
        self.assertEqual(coverage.interval([[True] * 9 + [False]] * 12), (0.9, 0.9))

    def test_ends_belong_to_the_range_and_rows_without_one_say_nothing(self):
        rows = [row("a", 1.0, 1.0, low=1.0, high=1.1), row("b", 1.0, 1.0, low=0.9, high=1.0), row("c", 1.0, 1.0)]
        found = coverage.coverage_of([result(rows)])
        self.assertEqual((found.rows, found.share), (2, 1))
        self.assertIsNone(coverage.coverage_of([result(rows[2:])]))


class RdmaTargets(unittest.TestCase):
    ROWS = [row("a", 2.0, 2.2, chosen=True), row("b", 2.1, 2.1), row("c", 2.2, 2.0), row("d", 2.3, 2.4)]

    def judged(self, fourth, again=None):
        return targets.over_rdma([result([*self.ROWS[:3], row("d", 2.3, fourth)], again=row("a", 2.0, again) if again else None)])

    def test_the_fastest_method_may_stand_third(self):
        judgement = self.judged(2.4)
        self.assertEqual(goal(judgement, "first_3_behind").value, 0)
        self.assertTrue(all(each.met for each in judgement.goals))
        self.assertEqual(judgement.notes, ("fastest_rank_worst=3(not-judged)", "shortest_iteration=2.0s"))
        judgement = self.judged(1.9)
        self.assertFalse(goal(judgement, "first_3_behind").met)
        self.assertIn("fastest_rank_worst=4(not-judged)", judgement.notes)

    def test_a_fourth_that_noise_may_have_made_the_fastest(self):
        # Behind by 5.3 %: repeats 3 % apart allow that, 2 % do not, and 16 % say nothing.
        for apart, word in ((2.266, "met"), (2.244, "missed"), (2.552, "too-noisy")):
            self.assertEqual(noise.verdict(self.judged(1.9, again=apart).goals), word)

    def test_the_median_error_may_be_fifteen_per_cent(self):
        self.assertTrue(goal(targets.over_rdma([result([row("a", 1.14, 1.0, chosen=True)])]), "error_median").met)
        self.assertFalse(goal(targets.over_rdma([result([row("a", 1.16, 1.0, chosen=True)])]), "error_median").met)


class ThereAndBack(unittest.TestCase):
    def test_all_methods_run_from_both_ends_and_the_choice_between(self):
        class Runs(list):
            def run_methods(self, _plan, methods, _warmup, iterations):
                self.append((methods, iterations))
                first, last = sum(len(run) for run, _ in self[:-1]), len(methods)
                seconds = dict(zip(methods, range(first + 1, first + last + 1)))
                return {method: {"method": method, "check": {"tensors": 1}, "iteration_seconds": [float(at)] * iterations,
                                 "median_seconds": float(at), "half_width_seconds": 0.5} for method, at in seconds.items()}

        tuner, answer = Runs(), {"chosen": "a", "plans": {"a": 1}, "ranking": [
            {"method": method, "road": "ring", "iteration_seconds": 1.0} for method in ("a", "b")]}
        arguments = argparse.Namespace(method=[], warmup=0, iterations=3)
        rows, second = measuring.there_and_back(answer, tuner, Watch(), arguments, lambda _: None)
        self.assertEqual(tuner, [(["a", "b"], 3), (["a"], 6), (["b", "a"], 3)])
        # 1st and 5th, 2nd and 4th; the choice alone 3rd: the same mean.
        self.assertEqual([(one.method, one.measured, one.iterations) for one in rows], [("a", 3.0, 6), ("b", 3.0, 6)])
        self.assertEqual((second.measured, second.iterations, second.half_width), (3.0, 6, 0.5))
        arguments.method = ["b"]
        self.assertIsNone(measuring.there_and_back(answer, Runs(), Watch(), arguments, lambda _: None)[1])


class DrawnTargets(unittest.TestCase):
    def test_all_met(self):
        done = [ranged(9, 1, case, again=again(1.002)) for case in CASES]
        line = output.result_line(targets.drawn(done))
        self.assertRegex(line, r"^RESULT accuracy cases=12 rows=120 error_median=0.0000\(<=0.015\) error_p95=0.0000\(<=0.06\) "
                               r"error_worst=0.0000\(<=0.12\) regret_median=0.0000\(<=0\) regret_worst=0.0000\(<=0.03\) "
                               r"coverage=0.9000\(0.8..0.97\) coverage_interval=0.9000..0.9000\(holds-0.9\) "
                               r"range_width=0.0800\(<=0.1\) late_share=0.0000\(<=0.1\) .*aa_median=0.0020 aa_p95=0.0020 "
                               r"excluded=none met$")

    def test_ranges_that_hold_too_much_or_too_little_miss(self):
        for held, name in ((10, "coverage"), (7, "coverage"), (7, "coverage_interval"), (10, "coverage_interval")):
            judgement = targets.drawn([ranged(held, 10 - held, case, again=again(1.0)) for case in CASES])
            self.assertFalse(goal(judgement, name).met, (held, name))
            self.assertEqual(noise.verdict(judgement.goals), "missed")

    def test_wide_ranges_miss(self):
        rows = [row("a", 1.0, 1.0, chosen=True, low=0.94, high=1.05)]
        self.assertFalse(goal(targets.drawn([result(rows, CASES[0])]), "range_width").met)

    def test_targets_are_met_within_twice_the_repeats_difference(self):
        # Errors of 2 % where 1.5 % are allowed: the choice measured again is 1.2 % apart, and 0.8 %.
        rows = [row("a", 1.02, 1.0, chosen=True), row("b", 1.02, 1.0)]
        for apart, met in ((1.012, True), (1.008, False)):
            judgement = targets.drawn([result(rows, case, again=row("a", 1.02, apart)) for case in CASES])
            self.assertEqual(goal(judgement, "error_median").met, met)
        # A regret of 0.2 % in the median, where 0 is allowed: repeats 0.1 % apart allow it.
        rows = [row("a", 1.0, 1.002, chosen=True), row("b", 1.0, 1.0)]
        for apart, met in ((1.003011, True), (1.002, False)):
            judgement = targets.drawn([result(rows, case, again=row("a", 1.0, apart)) for case in CASES])
            self.assertEqual(goal(judgement, "regret_median").met, met)

    def test_worst_values_are_held_against_the_worst_repeat(self):
        # One case of twelve has an error of 13 % (12 % are allowed); its repeat is 7 % apart.
        usual = [ranged(9, 1, case, again=again(1.0)) for case in CASES[1:]]
        odd = result([row("a", 1.13, 1.0, chosen=True), row("b", 1.0, 1.0)], CASES[0], again=again(1.07))
        judgement = targets.drawn([*usual, odd])
        self.assertTrue(goal(judgement, "error_worst").met)
        self.assertIn("error_worst=0.1300(<=0.12,A/A:0.1400)", output.result_line(judgement))

    def test_a_noisy_run_judges_nothing(self):
        judgement = targets.drawn([ranged(9, 1, case, again=again(1.016)) for case in CASES])
        self.assertEqual(noise.STATUS[noise.verdict(judgement.goals)], 3)
        self.assertRegex(output.result_line(judgement), r"error_median=0.0000\(<=0.015 TOO-NOISY\) .* too-noisy$")
        self.assertIn("error_median is to be at most 0.015", noise.explanation(judgement.goals)[0])

    def test_rows_without_range_are_said_and_their_absence_misses(self):
        judgement = targets.drawn([result([row("a", 1.0, 1.0, chosen=True)], CASES[0], again=again(1.0))], unasked=11)
        self.assertEqual(judgement.excluded, "cases:11(not-asked),rows-of-coverage:1(no-range)")
        self.assertFalse(goal(judgement, "coverage").met)

    def test_late_rows_count_as_in_the_matrix(self):
        judgement = targets.drawn([result([row("a", 1.0, 1.0, chosen=True), row("b", 1.0, 9.0, disturbance=LATE)], CASES[0])])
        self.assertEqual(goal(judgement, "error_worst").value, 0)
        self.assertFalse(goal(judgement, "late_share").met)


class Local(unittest.TestCase):
    CASES = local.cases([2, 4])

    def results(self, held, checked, measured=1.0):
        return [dataclasses.replace(ranged(held, 10 - held, case, again=again(measured)), checked=checked) for case in self.CASES]

    def test_unchecked_plans_are_judged_by_their_ranges_alone(self):
        for held, word in ((9, "met"), (8, "missed")):
            done = self.results(held, checked=False)
            done[0] = dataclasses.replace(done[0], rows=(*done[0].rows[:9], row("c", 2.0, 1.0, low=0.9, high=1.1)))
            line = output.result_line(targets.local(done), "local=2,4")
            self.assertRegex(line, r"^RESULT accuracy local=2,4 cases=4 rows=40 coverage=.* unchecked_error_median=0.0000\(not-j")
            self.assertIn(" unchecked_error_worst=1.0000(not-judged) unchecked_regret_worst=0.0000(not-judged) ", line)
            self.assertTrue(line.endswith(f" excluded=rows-of-errors-and-regret:40(not-judged:plan-not-checked) {word}"), line)

    def test_checked_plans_are_judged_within_noise(self):
        done = self.results(9, checked=True)
        self.assertEqual(noise.verdict(targets.local(done).goals), "met")
        self.assertEqual(targets.local(done).excluded, "none")
        self.assertEqual(noise.verdict(targets.local(self.results(9, checked=True, measured=1.07)).goals), "too-noisy")
        done[0] = dataclasses.replace(done[0], rows=(*done[0].rows[:9], row("c", 1.2, 1.0, low=0.9, high=1.1)))
        self.assertFalse(goal(targets.local(done), "error_worst").met)

    def test_noise_says_nothing_of_what_is_not_judged(self):
        self.assertEqual(noise.verdict(targets.local(self.results(9, checked=False, measured=1.07)).goals), "met")

    def test_iterations_of_all_rounds_make_one_median(self):
        visits = [({"iteration_seconds": times, "median_seconds": times[1]}, Disturbance(stolen=stolen))
                  for times, stolen in (([1, 2, 9], 0.0), ([2, 3, 9], 0.04), ([3, 4, 9], 0.01), ([4, 5, 9], 0.0))]
        report, disturbance = measuring.together(visits)
        self.assertEqual((len(report["iteration_seconds"]), report["median_seconds"], disturbance.stolen), (12, 4, 0.04))
        # 2, 3, 4, 5: a deviation of 1.29 over sqrt(4), times 3.182.
        self.assertAlmostEqual(report["half_width_seconds"], 2.054, delta=0.001)

    def test_every_method_has_its_turns_from_both_ends(self):
        class Runs(list):
            def run_methods(self, _plan, methods, _warmup, iterations):
                self.extend(methods)
                seconds = float(len(self))
                report = {"check": {"tensors": 1}, "iteration_seconds": [seconds] * iterations, "median_seconds": seconds}
                return dict.fromkeys(methods, report)

        tuner, answer = Runs(), {"chosen": "a", "plans": {"a": 1}, "ranking": [
            {"method": method, "road": "ring", "iteration_seconds": 1.0} for method in ("a", "b")]}
        arguments = argparse.Namespace(method=[], warmup=0, iterations=15)
        rows, second = local.in_turns(answer, tuner, Watch(), arguments, lambda _: None)
        self.assertEqual(tuner, ["a", "b", "a"] * 4)
        self.assertEqual([(one.method, one.chosen, one.iterations) for one in rows], [("a", True, 60), ("b", False, 60)])
        # The choice's first run is 1st, 6th, 7th and 12th, its second 3rd, 4th, 9th and 10th: the same mean.
        self.assertEqual((rows[0].measured, rows[1].measured, second.measured), (6.5, 6.5, 6.5))


if __name__ == "__main__":
    unittest.main(verbosity=2)
