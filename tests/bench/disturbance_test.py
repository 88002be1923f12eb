#!/usr/bin/env python3
"""Stolen time and late deliveries are counted right, and what was disturbed is measured again."""

import sys
import unittest

sys.dont_write_bytecode = True
from disturbance import Disturbance, Watch


def stat(user, idle, stolen):
    return f"cpu  {user} 0 0 {idle} 0 0 0 {stolen} 0 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n"


def status(frames, late):
    return {"lateness": {"frames": frames, "over_50us_ratio": late / max(frames, 1)}}


def between(stats, statuses=(None, None)):
    stats, statuses = iter(stats), iter(statuses)
    watch = Watch(lambda: next(statuses), lambda: next(stats))
    return watch.between(watch.now(), watch.now())


class Share(unittest.TestCase):
    def test_stolen_is_of_the_wanted_time_not_of_all_time(self):
        self.assertAlmostEqual(between([stat(100, 1000, 0), stat(130, 1900, 10)]).stolen, 0.25)

    def test_nothing_is_stolen_where_nothing_was_wanted(self):
        self.assertEqual(between([stat(100, 1000, 5), stat(100, 2000, 5)]).stolen, 0)

    def test_late_is_of_the_deliveries_meanwhile(self):
        calm = [stat(0, 0, 0), stat(100, 0, 0)]
        self.assertAlmostEqual(between(calm, [status(1000, 500), status(3000, 520)]).late, 0.01)
        self.assertEqual(between(calm, [status(0, 0), status(0, 0)]).late, 0)
        self.assertEqual(between(calm).late, 0)

    def test_links_are_punctual_up_to_the_limit(self):
        self.assertTrue(Disturbance(stolen=0.5, late=0.05).punctual)
        self.assertFalse(Disturbance(late=0.06).punctual)


class Calmly(unittest.TestCase):
    def measured(self, stolen, late):
        """What is kept when these many of 100 wanted ticks are stolen and of 100 deliveries late during the first,
        second, ... try."""
        stats, statuses = [], []
        for number, (ticks, frames) in enumerate(zip(stolen, late)):
            gone, missed = sum(stolen[:number]), sum(late[:number])
            stats += [stat(0, 0, gone), stat(100 - ticks, 0, gone + ticks)]
            statuses += [status(100 * number, missed), status(100 * (number + 1), missed + frames)]
        tries, stats, statuses = iter(range(len(stolen))), iter(stats), iter(statuses)
        return Watch(lambda: next(statuses), lambda: next(stats)).calmly(lambda: next(tries))

    def test_a_calm_measurement_is_not_repeated(self):
        self.assertEqual(self.measured([4], [3]), (0, Disturbance(0.04, 0.03)))

    def test_one_with_stolen_time_is(self):
        self.assertEqual(self.measured([30, 1], [0, 0]), (1, Disturbance(0.01, 0)))

    def test_one_with_late_deliveries_is(self):
        self.assertEqual(self.measured([0, 0], [8, 2]), (1, Disturbance(0, 0.02)))

    def test_the_calmest_counts_when_none_is_calm(self):
        self.assertEqual(self.measured([30, 10, 0], [0, 8, 20]), (1, Disturbance(0.1, 0.08)))


if __name__ == "__main__":
    unittest.main()
