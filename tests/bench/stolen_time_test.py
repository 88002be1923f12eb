#!/usr/bin/env python3
"""Stolen time is counted right, and what was disturbed is measured again."""

import sys
import unittest

sys.dont_write_bytecode = True
import stolen_time


def stat(user, idle, stolen):
    return f"cpu  {user} 0 0 {idle} 0 0 0 {stolen} 0 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n"


class Share(unittest.TestCase):
    def test_is_of_the_wanted_time_not_of_all_time(self):
        self.assertAlmostEqual(stolen_time.share(stat(100, 1000, 0), stat(130, 1900, 10)), 0.25)

    def test_is_nothing_where_nothing_was_wanted(self):
        self.assertEqual(stolen_time.share(stat(100, 1000, 5), stat(100, 2000, 5)), 0)


class Calmly(unittest.TestCase):
    def measured(self, stolen, **limits):
        """What is kept when these many ticks of 100 wanted are stolen during the first, second, ... try."""
        texts, total = [], 0
        for ticks in stolen:
            texts += [stat(0, 0, total), stat(100 - ticks, 0, total + ticks)]
            total += ticks
        tries = iter(range(len(stolen)))
        reads = iter(texts)
        return stolen_time.calmly(lambda: next(tries), stat=lambda: next(reads), **limits)

    def test_a_calm_measurement_is_not_repeated(self):
        self.assertEqual(self.measured([4]), (0, 0.04))

    def test_a_disturbed_one_is(self):
        self.assertEqual(self.measured([30, 1]), (1, 0.01))

    def test_the_calmest_counts_when_none_is_calm(self):
        self.assertEqual(self.measured([30, 10, 20]), (1, 0.1))


if __name__ == "__main__":
    unittest.main()
