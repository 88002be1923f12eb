#!/usr/bin/env python3
"""Targets are met within twice the A/A difference, and not judged where that is above the target."""

import sys
import unittest

sys.dont_write_bytecode = True
from noise import Comparison, STATUS, Repeats, Target, difference, explanation, percentile, verdict


class AA(unittest.TestCase):
    def test_a_difference_has_no_sign(self):
        self.assertAlmostEqual(difference(2.0, 2.1), 0.05)
        self.assertAlmostEqual(difference(2.0, 1.9), 0.05)

    def test_summary_by_hand(self):
        # Of 20, the 95th percentile is the 19th.
        repeats = Repeats(tuple(range(1, 21)))
        self.assertEqual((repeats.median, repeats.p95, repeats.worst), (10.5, 19, 20))
        self.assertEqual(repeats.words, "aa_median=10.5000 aa_p95=19.0000")

    def test_nothing_measured_twice(self):
        self.assertEqual((Repeats(()).median, Repeats(()).p95, Repeats(()).worst), (0, 0, 0))
        self.assertEqual(Repeats(()).words, "aa=none")

    def test_percentile_counts_values(self):
        self.assertEqual(percentile(range(1, 101), 0.95), 95)
        self.assertEqual(percentile([7], 0.95), 7)


class Judged(unittest.TestCase):
    def test_a_quiet_run_is_held_to_the_target(self):
        self.assertTrue(Target("a", 0.014, 0.015, repeat=0.004).met)
        self.assertFalse(Target("a", 0.016, 0.015, repeat=0.004).met)
        self.assertEqual(Target("a", 0.016, 0.015, repeat=0.004).word, "a=0.0160(<=0.015 MISSED)")

    def test_within_twice_what_repeats_differ_by(self):
        self.assertTrue(Target("a", 0.019, 0.015, repeat=0.01).met)
        self.assertFalse(Target("a", 0.021, 0.015, repeat=0.01).met)
        self.assertEqual(Target("a", 0.019, 0.015, repeat=0.01).word, "a=0.0190(<=0.015,A/A:0.0200)")

    def test_too_noisy_only_above_the_target(self):
        self.assertFalse(Target("a", 0.0, 0.015, repeat=0.015).too_noisy)
        noisy = Target("a", 0.0, 0.015, repeat=0.016)
        self.assertTrue(noisy.too_noisy)
        self.assertEqual(noisy.word, "a=0.0000(<=0.015 TOO-NOISY)")
        self.assertEqual(explanation([noisy]), ["too noisy: two measurements of the same thing differ by 0.0160, and a is to be "
                                                "at most 0.015"])

    def test_a_target_of_zero(self):
        self.assertTrue(Target("a", 0.0005, 0.0, rounding=0.0005, noisy=0.015).met)
        self.assertFalse(Target("a", 0.0006, 0.0, rounding=0.0005, noisy=0.015).met)
        self.assertTrue(Target("a", 0.0006, 0.0, repeat=0.002, rounding=0.0005, noisy=0.015).met)
        self.assertFalse(Target("a", 0.0, 0.0, repeat=0.002, rounding=0.0005, noisy=0.015).too_noisy)
        self.assertTrue(Target("a", 0.0, 0.0, repeat=0.016, rounding=0.0005, noisy=0.015).too_noisy)

    def test_no_worse_is_so_within_twice_what_repeats_differ_by(self):
        self.assertTrue(Comparison("a", 0.96, 1, at_most=False, repeat=0.02).met)
        self.assertFalse(Comparison("a", 0.95, 1, at_most=False, repeat=0.02).met)
        self.assertTrue(Comparison("a", 1.04, 1, at_most=True, repeat=0.02).met)
        self.assertEqual(Comparison("a", 0.97, 1, at_most=False, repeat=0.02).word, "a=0.970(>=1,A/A:0.040)")
        self.assertEqual(Comparison("a", 1.05, 1, at_most=True, repeat=0.02).word, "a=1.050(<=1 MISSED)")

    def test_a_win_counts_as_it_was_measured(self):
        self.assertFalse(Comparison("a", 1.09, 1.1, at_most=False, repeat=0.02).met)
        self.assertFalse(Comparison("a", 1.2, 1.1, at_most=False, repeat=0.1).too_noisy)
        noisy = Comparison("a", 1.2, 1.1, at_most=False, repeat=0.11)
        self.assertTrue(noisy.too_noisy)
        self.assertEqual(noisy.word, "a=1.200(>=1.1 TOO-NOISY)")
        self.assertTrue(Comparison("a", 1, 1, at_most=False, repeat=0.06).too_noisy)
        self.assertIn("to be at least 1.1", explanation([noisy])[0])

    def test_noise_decides_before_what_was_missed(self):
        met, missed, noisy = Target("a", 1, 2), Target("a", 3, 2), Target("a", 1, 2, repeat=3)
        self.assertEqual([verdict(goals) for goals in ([met], [met, missed], [met, missed, noisy])], ["met", "missed", "too-noisy"])
        self.assertEqual(STATUS[verdict([noisy])], 3)


if __name__ == "__main__":
    unittest.main(verbosity=2)
