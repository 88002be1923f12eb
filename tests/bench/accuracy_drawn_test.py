#!/usr/bin/env python3
"""Drawn cases of the accuracy bench: the same for a seed, within their limits, spread over what may be drawn."""

import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.append(str(Path(__file__).resolve().parents[1] / "cluster"))
import options
from accuracy_parts import cases, drawn, models
from race_parts import emulated, jobs


class Drawn(unittest.TestCase):
    def test_a_seed_decides_each_case_whatever_their_number(self):
        self.assertEqual(drawn.cases("09a8393a", 14), drawn.cases("09a8393a", 14))
        self.assertEqual(drawn.cases("09a8393a", 14)[:5], drawn.cases("09a8393a", 5))
        self.assertNotEqual(drawn.cases("09a8393a", 5), drawn.cases("09a8393b", 5))
        self.assertNotEqual(drawn.cases("09a8393a", 14)[12:], drawn.cases("09a8393a", 2))
        # As drawn when this was written: figures of a seed stay comparable.
        self.assertEqual(drawn.case("abc", 4).name, "measured-resnet101/53.6 0.168s on 4x360Mbit/362us x2 ranks")

    def test_limits_are_kept(self):
        names = set()
        for seed in range(200):
            case = drawn.case(str(seed), seed % drawn.BLOCK)
            keys = options.ClusterOptions(hosts=case.network.hosts, rate=case.network.rate, delay=case.network.delay,
                                          host=[case.network.odd_host] if case.network.odd_host else [])
            self.assertLessEqual(sum(port["up"] for port in keys.ports()), emulated.CARRIED)
            self.assertTrue(case.network.emulated)
            self.assertTrue(case.network.hosts >= 2 and case.network.ranks <= 8, case.name)
            self.assertTrue(0.25 * 0.99 <= case.ratio <= 4 * 1.01, case.name)
            self.assertTrue(0.06 <= case.compute <= 0.3, case.name)
            self.assertTrue(0.2e6 < jobs.gradient_bytes(case.profile()) < 193e6, case.name)
            names.add(case.name)
        self.assertEqual(len(names), 200)

    def test_twelve_cases_cover_what_may_be_drawn(self):
        for seed in ("a", "b", "c"):
            found = drawn.cases(seed, 12)
            self.assertEqual({(case.network.hosts, case.network.slots) for case in found}, set(drawn.SHAPES))
            self.assertEqual(sum(bool(case.network.odd_host) for case in found), 3)
            self.assertLessEqual(set(models.SHIPPED), {case.model for case in found})
            self.assertLessEqual(set(models.MADE_UP), {case.model.rpartition("-")[0] for case in found})
            self.assertEqual(sum(case.model.startswith("measured-") for case in found), 4)
            for low in (0.25, 0.5, 1, 2):  # a quarter of the logarithmic range each
                self.assertEqual(sum(0.999 * low <= case.ratio < 1.999 * low for case in found), 3, [case.ratio for case in found])

    def test_a_slow_host_decides_a_rings_time(self):
        slow = cases.Network(4, "1Gbit", "200us", "2:rate=250Mbit,delay=1ms")
        self.assertEqual(slow.bytes_per_second, cases.Network(4, "250Mbit", "200us").bytes_per_second)
        self.assertEqual(cases.Network(4, "1Gbit", "200us", "2:delay=1ms").bytes_per_second, cases.GIGABIT.bytes_per_second)


class Models(unittest.TestCase):
    def test_measured_gradients_add_up(self):
        # Parameters of the models as PyTorch has them, and the sums of their gradients' times.
        sums = {"resnet50": (25_557_032, 63_533), "resnet101": (44_549_160, 120_391), "vgg16": (138_357_544, 85_310),
                "bert": (108_897_794, 66_335), "gpt2": (124_439_808, 211_329)}
        self.assertEqual(set(sums), set(models.MEASURED))
        for name, (parameters, microseconds) in sums.items():
            profile = models.load(f"measured-{name}")
            self.assertEqual(jobs.gradient_bytes(profile), 4 * parameters)
            self.assertAlmostEqual(sum(layer["backward_seconds"] for layer in profile["layers"]), 1e-6 * microseconds)
            self.assertAlmostEqual(sum(layer["forward_seconds"] for layer in profile["layers"]), 0.5e-6 * microseconds)
            self.assertEqual(profile["layers"][-1]["backward_seconds"], 0)  # its gradient is the first

    def test_made_up_models_are_what_they_are_called(self):
        for seed in range(20):
            largest = {}
            for kind in models.MADE_UP:
                profile = models.load(f"{kind}-{seed:08x}")
                self.assertEqual(profile, models.load(f"{kind}-{seed:08x}"))
                self.assertNotEqual(profile["layers"], models.load(f"{kind}-{seed + 1:08x}")["layers"])
                sizes = [sum(tensor["bytes"] for tensor in layer["tensors"]) for layer in profile["layers"]]
                largest[kind] = sizes.index(max(sizes)), max(sizes) / sum(sizes), len(sizes)
                scaled = jobs.scaled(profile, 1000, 0.1)
                self.assertTrue(all(tensor["bytes"] >= 4 for layer in scaled["layers"] for tensor in layer["tensors"]))
            self.assertEqual(largest["huge-first"][0], 0)
            self.assertEqual(largest["huge-last"][0], largest["huge-last"][2] - 1)
            self.assertTrue(all(0.45 < largest[kind][1] < 0.81 for kind in ("huge-first", "huge-last")))
            self.assertLessEqual(largest["few-large"][2], 8)
            self.assertGreaterEqual(largest["many-small"][2], 100)

    def test_other_names_are_shipped(self):
        for name in (*models.SHIPPED, "small1000"):
            self.assertEqual(models.load(name), jobs.load(name))


if __name__ == "__main__":
    unittest.main(verbosity=2)
