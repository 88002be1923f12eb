#!/usr/bin/env python3
"""What can be known about the bench of sessions without running any."""

import importlib.machinery
import importlib.util
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
LOADER = importlib.machinery.SourceFileLoader("session", str(Path(__file__).resolve().parent / "session"))
session = importlib.util.module_from_spec(importlib.util.spec_from_loader("session", LOADER))
sys.modules["session"] = session
LOADER.exec_module(session)

import noise


def way(first, second=None, total=10.0):
    names = "abcdefgh"
    return session.Way([dict(zip(names, first)), dict(zip(names, second or first))], [total, total])


class Correlation(unittest.TestCase):
    def test_is_of_the_order_alone(self):
        self.assertAlmostEqual(session.correlation([1, 2, 3, 4], [10, 11, 400, 401]), 1)
        self.assertAlmostEqual(session.correlation([1, 2, 3, 4], [4, 3, 2, 1]), -1)
        # Spearman's by 1 - 6 * sum d^2 / (n (n^2 - 1)), d = 1, 1, 0, 0: 1 - 12 / 60
        self.assertAlmostEqual(session.correlation([1, 2, 3, 4], [2, 1, 3, 4]), 0.8)

    def test_equal_values_share_their_ranks(self):
        self.assertEqual(session.ranks_of([5, 1, 5, 9]), [1.5, 0, 1.5, 3])
        self.assertEqual(session.correlation([1, 1, 1], [1, 2, 3]), 1)


class Verdict(unittest.TestCase):
    def verdict(self, alone, together, starts=1):
        return noise.verdict(session.goals_of(alone, together, starts)[1])

    def test_the_same_order_in_less_time_is_met(self):
        self.assertEqual(self.verdict(way([1, 2, 3, 4]), way([1, 2.1, 3, 4], total=5)), "met")

    def test_another_order_is_missed_unless_noise_says_no_more(self):
        mixed = [4, 1, 3, 2]
        self.assertEqual(self.verdict(way([1, 2, 3, 4]), way(mixed, total=5)), "missed")
        near, nearer = [1.00, 1.01, 1.02, 1.03], [1.03, 1.02, 1.01, 1.00]
        self.assertEqual(self.verdict(way(near), way(nearer, total=5)), "missed")
        self.assertEqual(self.verdict(way(near, [1.03, 1.04, 1.05, 1.06]), way(nearer, total=5)), "met")

    def test_two_measurements_that_differ_by_much_say_nothing(self):
        self.assertEqual(self.verdict(way([1, 2, 3, 4], [2, 4, 6, 8]), way([1, 2, 3, 4], [2, 4, 6, 8], 5)), "too-noisy")

    def test_ranks_that_start_twice_or_take_longer_are_missed(self):
        self.assertEqual(self.verdict(way([1, 2]), way([1, 2], total=5), starts=2), "missed")
        self.assertEqual(self.verdict(way([1, 2]), way([1, 2], total=11)), "missed")


if __name__ == "__main__":
    unittest.main()
