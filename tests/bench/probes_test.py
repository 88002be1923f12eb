#!/usr/bin/env python3
"""What can be known about the bench of probes without measuring: what it compares."""

import contextlib
import io
import sys
import unittest

sys.dont_write_bytecode = True
from disturbance import Disturbance
from probes_parts.cases import CASES
from probes_parts.compare import held_out, repeated, typical_of
from probes_parts.report import Report

RING = {"kind": "all-to-all", "algorithm": "ring"}


def ring(size, seconds, in_flight=1):
    return {"subject": "operation", "road": RING, "operation": "all-reduce", "workers": 4, "in_flight": in_flight,
            "size_bytes": size, "seconds": seconds}


def cluster(alpha, beta):
    curve = [{"from_bytes": 0, "alpha_seconds": alpha, "beta_seconds_per_byte": beta}]
    fit = {"curve": curve, "smallest_bytes": 16, "largest_bytes": 1 << 20}
    return {"links": {}, "operations": [{"road": RING, "operation": "all-reduce", "workers": 4, "alone": fit}]}


class TypicalOf(unittest.TestCase):
    def test_is_the_median_of_the_probes_that_measured_a_size(self):
        probes = [[ring(48, 1.0), ring(192, 5.0)], [ring(48, 3.0)], [ring(48, 1.2), ring(192, 6.0)]]
        self.assertEqual([(sample["size_bytes"], sample["seconds"]) for sample in typical_of(probes)],
                         [(48, 1.2), (192, 5.5)])

    def test_takes_a_probes_last_word_on_a_size(self):
        self.assertEqual(typical_of([[ring(48, 2.0), ring(48, 1.0)]])[0]["seconds"], 1.0)

    def test_keeps_streams_apart(self):
        self.assertEqual(len(typical_of([[ring(48, 2.0), ring(48, 1.0, in_flight=64)]])), 2)

    def test_is_nothing_without_probes(self):
        self.assertEqual(typical_of([]), [])


class HeldOut(unittest.TestCase):
    def test_errors_are_relative_to_what_was_measured(self):
        errors, left_out = held_out(cluster(1e-3, 1e-9), [ring(1000, 2e-3)], shared_cores=True)
        self.assertEqual(left_out, {})
        self.assertAlmostEqual(errors["all-reduce alone"][0], abs(1.001e-3 / 2e-3 - 1))

    def test_sizes_out_of_the_fits_range_do_not_count_and_are_said(self):
        errors, left_out = held_out(cluster(1e-3, 1e-9), [ring(8, 2e-3), ring(2 << 20, 2e-3)], shared_cores=True)
        self.assertEqual((errors, left_out), ({}, {"outside-the-fit's-sizes": 2}))

    def test_what_was_not_fitted_is_said(self):
        samples = [ring(1000, 2e-3, in_flight=64), {"subject": "jitter", "in_flight": 1, "size_bytes": 1, "seconds": 1.0}]
        errors, left_out = held_out(cluster(1e-3, 1e-9), samples, shared_cores=True)
        self.assertEqual((errors, left_out), ({}, {"no-fit": 1, "no-curve": 1}))


class Repeated(unittest.TestCase):
    def test_is_relative_to_the_first(self):
        self.assertAlmostEqual(repeated([ring(48, 2.0)], [ring(48, 1.0)], True)["all-reduce alone"][0], 0.5)


SMALL = "all-reduce streamed, small, shared cores"


def report(errors, differences):
    made = Report()
    made.add_disturbance(Disturbance(stolen=0.01))
    made.add_errors(errors, {"no-fit": 3})
    made.add_floor(differences)
    return made


def printed(made):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        made.print_held_out()
        made.result()
    return out.getvalue()


class Verdict(unittest.TestCase):
    def test_small_streams_on_shared_cores_are_judged(self):
        # Errors of 30 % where two probes of the same size differ by 10 %: the fit is wrong, not the probe.
        made = report({SMALL: [0.3] * 5}, {SMALL: [0.1] * 5})
        text = printed(made)
        self.assertEqual(len(made.missed), 1)
        self.assertRegex(text, r"shared cores +5 +30.0% +30.0%  MISSED +10.0% +10.0%")
        self.assertIn(" small_shared_median=0.3000(<=0.15 MISSED) small_repeat_median=0.1000 "
                      "small_shared_p90=0.3000(<=0.15 MISSED) small_repeat_p90=0.1000 ", text)

    def test_no_fit_need_be_closer_than_another_probe(self):
        made = report({SMALL: [0.2] * 5}, {SMALL: [0.14] * 5})
        self.assertIn(" small_shared_median=0.2000(<=0.21) small_repeat_median=0.1400 ", printed(made))
        self.assertEqual(made.missed, [])

    def test_without_a_second_probe_the_targets_hold(self):
        made = report({SMALL: [0.04] * 5}, {})
        self.assertIn(" small_shared_median=0.0400(<=0.025 MISSED) ", printed(made))

    def test_each_kind_is_held_against_its_own_repeatability(self):
        made = report({"message alone": [0.04] * 5, SMALL: [0.04] * 5}, {"message alone": [0.01] * 5, SMALL: [0.25] * 5})
        text = printed(made)
        self.assertIn(" held_out_median=0.0400(<=0.025 MISSED) repeat_median=0.0100 ", text)
        self.assertIn(" small_shared_median=0.0400(<=0.375) small_repeat_median=0.2500 ", text)

    def test_a_probe_that_found_no_link_has_missed(self):
        made = Report()
        truth = {"pairs": [{"goodput_bytes_per_second": 1e8, "delay_seconds": 1e-4}]}
        with contextlib.redirect_stdout(io.StringIO()):
            made.case(CASES[0], truth, {"cluster": {"links": {}}}, 1.0, Disturbance())
        self.assertEqual(made.missed, [f"{CASES[0].name}: no link between hosts was found"])
        self.assertRegex(made.result_line(), r"^RESULT probes cases=1 .* missed$")

    def test_the_line_is_key_and_value(self):
        line = printed(report({"message alone": [0.01] * 5}, {})).splitlines()[-1]
        self.assertRegex(line, r"^RESULT probes cases=0 (\w+=[^ ]+( MISSED\))? )+met$")
        self.assertIn(" excluded=sizes:3(no-fit) targets_missed=0 met", line)


if __name__ == "__main__":
    unittest.main()
