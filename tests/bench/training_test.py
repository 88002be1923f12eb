#!/usr/bin/env python3
"""What tests/bench/training makes of its measurements, and what it trains."""

import json
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
import noise
from race_parts import bound, jobs, ranks
from race_parts.results import summarise
from training_parts import archive, cells, results, systems

PLANS = systems.Plans(Path("layer.json"), Path("full.json"), Path("list.json"), [1.0, 2.0], "some plans")
LINK = bound.Port(up=59e6, down=59e6, delay=1e-4)


def measured(title, seconds, apart=1.001):
    """Two rounds, the second so much longer."""
    return summarise(title, False, [ranks.Round([seconds] * 3, 1.0, 1 << 20), ranks.Round([seconds * apart] * 3, 1.0, 1 << 20)])


def cell_result(layer=0.33, full=0.4, hook=0.41, listed=0.41, default=0.5, buckets=0.42, ratio=1, apart=1.001):
    """Of a cell whose bound is 0.3 s."""
    made = systems.systems_of(PLANS)
    times = {"layer": layer, "full": full, "hook": hook, "list": listed, "default": default, "best": buckets}
    found = [measured(each.title, times[each.role], apart) for each in made]
    bounds = bound.Bounds(compute=0.3, per_layer_barrier=0.3, full_barrier=0.35, communication=0.3 * ratio)
    return results.CellResult(cells.CELLS[1], bounds, ratio, [each.role for each in made], found)


def real_result(layer):
    found = cell_result(layer=layer, full=layer)
    found.bounds = None
    return found


def alone_result(wrapped):
    return results.CellResult(cells.ALONE, None, 0.0, ["plain", "wrapped"], [measured("plain", 1.0), measured("wrap", wrapped)])


def verdict(*found):
    line, goals = results.result_line(found, 0)
    return noise.verdict(goals), line


class FakeTuner:
    """Ranks two methods; the second one is chosen."""

    def __init__(self):
        self.asked = []

    def plan(self, _profile_path, directory, check, barrier):
        self.asked.append((barrier, check))
        directory.mkdir()
        ranking = [{"method": name, "title": f"{name} {barrier}"} for name in ("first", "second")]
        for entry in ranking:
            (directory / f"{entry['method']}.json").write_text(json.dumps({"barrier": barrier}), encoding="utf-8")
        return {"barrier": barrier, "ranking": ranking, "chosen": "second"}

    def exported(self, answer, method):
        """Of the first, DDP is the faster."""
        return ([1.0, 2.0], 0.3 if method == "first" else 0.4) if answer["barrier"] == "full" else None


class Planning(unittest.TestCase):
    def test_each_barrier_trains_by_the_choice_for_it(self):
        tuner = FakeTuner()
        with tempfile.TemporaryDirectory() as folder:
            directory = Path(folder) / "plans"
            plans = systems.plans_of(tuner, Path("profile.json"), directory)
        self.assertEqual(tuner.asked, [("per-layer", True), ("full", True)])
        self.assertEqual(plans.layer, directory / "per-layer" / "second.json")
        self.assertEqual(plans.full, directory / "full" / "second.json")
        self.assertEqual((plans.listed, plans.caps), (directory / "full" / "first.json", [1.0, 2.0]))
        self.assertEqual(plans.text, "layer: second per-layer; full: second full; list: first full in 2 buckets")


class Judgement(unittest.TestCase):
    def test_what_closes_the_gap_and_is_no_slower_is_met(self):
        word, line = verdict(cell_result(), real_result(0.42), alone_result(1.005))
        self.assertEqual(word, "met", line)
        self.assertTrue(line.startswith("RESULT training cells=3 gap_left_worst=0.2"), line)
        self.assertIn("excluded=systems:1(horovod:", line)

    def test_each_target_can_be_missed(self):
        for found in (
            {"layer": 0.36},  # half of the gap is left
            {"default": 0.42},  # 1.27 times
            {"listed": 0.43, "hook": 0.43},  # slower than the best bucket
            {"hook": 0.425},  # 3.6 % over the same buckets
        ):
            self.assertEqual(verdict(cell_result(**found))[0], "missed", found)
        self.assertEqual(verdict(real_result(0.43))[0], "missed")
        self.assertEqual(verdict(alone_result(1.02))[0], "missed")
        other_losses = cell_result()
        other_losses.loss = 0.01
        self.assertEqual(verdict(other_losses, cell_result())[0], "missed")

    def test_the_win_over_the_default_counts_where_there_is_much_to_send(self):
        self.assertEqual(verdict(cell_result(default=0.42, ratio=0.5))[0], "met")

    def test_rounds_that_differ_much_judge_nothing(self):
        self.assertEqual(verdict(cell_result(apart=1.5))[0], "too-noisy")

    def test_ddps_default_is_one_of_its_buckets(self):
        self.assertEqual(cell_result(default=0.39).best.title, "DDP as it comes")

    def test_losses_are_compared_rank_by_rank(self):
        same = [[1.0, 0.5], [2.0, 1.5]]
        self.assertEqual(results.losses_differ([same, same]), 0)
        self.assertAlmostEqual(results.losses_differ([same, [[1.0, 0.5], [2.0, 1.2]]]), 0.2)

    def test_the_tables_name_what_was_measured(self):
        found = cell_result()
        self.assertIn("communication/compute 1.00", results.table(found, "some plans"))
        self.assertIn("420.2 (25 MiB)", results.summary([found, alone_result(1.0)]))


class Archive(unittest.TestCase):
    def test_kept_cells_come_back_whole(self):
        with tempfile.TemporaryDirectory() as folder:
            for made in (cell_result(), alone_result(1.005)):
                made.loss = 1e-6
                archive.keep(Path(folder), made)
                self.assertEqual(archive.load(Path(folder), made.case), made)
            self.assertIsNone(archive.load(Path(folder), cells.CELLS[0]))


class Cells(unittest.TestCase):
    def test_communication_takes_the_stated_multiple_of_compute(self):
        for cell in cells.CELLS:
            profile = cell.profile([LINK] * 4)
            bounds = bound.bounds(profile, [LINK] * 4)
            self.assertAlmostEqual(bounds.communication / bounds.compute, cell.ratio, places=2)
            self.assertLess(jobs.gradient_bytes(profile), 12e6)

    def test_tensors_have_the_names_that_the_network_gives_them(self):
        layers = cells.CELLS[0].profile([LINK] * 4)["layers"]
        self.assertEqual(layers[1]["tensors"][0]["name"], "layers.1.tensor0")


if __name__ == "__main__":
    unittest.main()
