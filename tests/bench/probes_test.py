#!/usr/bin/env python3
"""What can be known about the bench of probes without measuring: what it compares."""

import sys
import unittest

sys.dont_write_bytecode = True
from probes_parts.compare import held_out, repeated, typical_of

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
        errors = held_out(cluster(1e-3, 1e-9), [ring(1000, 2e-3)], shared_cores=True)
        self.assertAlmostEqual(errors["all-reduce alone"][0], abs(1.001e-3 / 2e-3 - 1))

    def test_sizes_out_of_the_fits_range_do_not_count(self):
        self.assertEqual(held_out(cluster(1e-3, 1e-9), [ring(8, 2e-3), ring(2 << 20, 2e-3)], shared_cores=True), {})


class Repeated(unittest.TestCase):
    def test_is_relative_to_the_first(self):
        self.assertAlmostEqual(repeated([ring(48, 2.0)], [ring(48, 1.0)], True)["all-reduce alone"][0], 0.5)


if __name__ == "__main__":
    unittest.main()
