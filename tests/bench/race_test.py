#!/usr/bin/env python3
"""What can be known about the race without running one: its bound, its jobs, its verdict, its table of where time goes."""

import contextlib
import dataclasses
import itertools
import random
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
from race_parts import archive, bound, explain, jobs, ours, picture, pytorch, ranks, results


def profile(layers):
    """layers  (forward, backward, bytes) in forward order"""
    return {
        "format": "commtune/profile/1",
        "model": "test",
        "batch": 1,
        "data_type": "float32",
        "origin": {"how": "derived", "device": "", "source": "", "note": ""},
        "layers": [
            {
                "name": f"layer{index}",
                "forward_seconds": forward,
                "backward_seconds": backward,
                "update_seconds": 0,
                "tensors": [{"name": f"layer{index}.weight", "bytes": size}],
            }
            for index, (forward, backward, size) in enumerate(layers)
        ],
    }


def plan(messages, barrier="per-layer", road=None):
    """messages  lists of tensors, whole, sent in this order"""
    return {
        "road": road or {"kind": "all-to-all", "algorithm": "ring"},
        "release": "gradient",
        "order": "list",
        "barrier": barrier,
        "messages": [{"pieces": [{"tensor": t, "offset_bytes": 0, "length_bytes": 1000} for t in message]} for message in messages],
        "priority": list(range(len(messages))),
        "sequence": [],
    }


LINK = bound.Port(up=1000.0, down=1000.0, delay=0.0)


class SecondsPerByte(unittest.TestCase):
    def test_equal_links_need_a_rings_bytes(self):
        # 2 (4 - 1) copies over 4 links of 1000 B/s: 1.5 ms a byte
        self.assertAlmostEqual(bound.seconds_per_byte([LINK] * 4), 1.5e-3)

    def test_a_slow_link_carries_its_own_gradient_both_ways(self):
        # 6 copies over 3100 B/s are 1.94 ms; the slow link needs 1 / 100 s a byte: 10 ms
        slow = bound.Port(100.0, 100.0, 0.0)
        self.assertAlmostEqual(bound.seconds_per_byte([LINK] * 3 + [slow]), 10e-3)

    def test_each_direction_counts(self):
        self.assertAlmostEqual(bound.seconds_per_byte([bound.Port(1000.0, 500.0, 0.0)] * 2), 2e-3)

    def test_one_worker_sends_nothing(self):
        self.assertEqual(bound.seconds_per_byte([LINK]), 0)


class Jackson(unittest.TestCase):
    def test_equals_the_worst_set_of_jobs(self):
        # Carlier 1982: the preemptive schedule's length is max over sets A of min head + sum of bodies + min tail.
        numbers = random.Random(1)
        for _ in range(200):
            made = [tuple(numbers.randint(0, 9) for _ in range(3)) for _ in range(6)]
            worst = max(
                min(job[0] for job in some) + sum(job[1] for job in some) + min(job[2] for job in some)
                for size in range(1, 7)
                for some in itertools.combinations(made, size)
            )
            self.assertAlmostEqual(bound.jackson(made), worst)

    def test_no_jobs_take_no_time(self):
        self.assertEqual(bound.jackson([]), 0)


class Bounds(unittest.TestCase):
    def test_compute_binds_where_gradients_are_small(self):
        # Only the first layer's 4 bytes (6 ms) are exposed.
        made = bound.bounds(profile([(1, 2, 4), (1, 2, 4)]), [LINK] * 4)
        self.assertAlmostEqual(made.compute, 6)
        self.assertAlmostEqual(made.per_layer_barrier, 6.006)

    def test_barriers_by_hand(self):
        # Two layers, f = 1, b = 2, 1000 bytes = 1.5 s each. Gradients at 2 (last) and 4 (first). The last is sent 2..3.5,
        # the first 4..5.5. Per layer: the first layer runs 5.5..6.5, the last one's gradient is back: 7.5. A full
        # barrier ends at 5.5 as well: 7.5.
        made = bound.bounds(profile([(1, 2, 1000), (1, 2, 1000)]), [LINK] * 4)
        self.assertAlmostEqual(made.per_layer_barrier, 7.5)
        self.assertAlmostEqual(made.full_barrier, 7.5)
        # With 4000 bytes (6 s) in the last layer: it may be sent 2..4, wait for the first's 1.5 s, and end at 9.5: then
        # f = 1 follows. A full barrier adds both layers to 9.5.
        made = bound.bounds(profile([(1, 2, 1000), (1, 2, 4000)]), [LINK] * 4)
        self.assertAlmostEqual(made.per_layer_barrier, 10.5)
        self.assertAlmostEqual(made.full_barrier, 11.5)

    def test_no_order_of_whole_tensors_is_below(self):
        numbers = random.Random(2)
        for _ in range(50):
            made = profile([(numbers.random(), numbers.random(), numbers.randint(1, 500) * 4) for _ in range(4)])
            least = bound.bounds(made, [LINK] * 4).per_layer_barrier
            for order in itertools.permutations(range(4)):
                free, back = 0.0, [0.0] * 4
                ready, _, sizes = bound.layer_times(made)
                for layer in order:
                    free = max(free, ready[layer]) + sizes[layer] * 1.5e-3
                    back[layer] = free
                now = ready[0]
                for layer in range(4):
                    now = max(now, back[layer]) + made["layers"][layer]["forward_seconds"]
                self.assertGreaterEqual(now, least - 1e-12)


class Jobs(unittest.TestCase):
    def test_scaled_times_add_up_and_tensors_are_whole(self):
        for case in jobs.CASES:
            made = jobs.scaled(jobs.load(case.model), case.divisor, case.compute)
            self.assertAlmostEqual(bound.bounds(made, [LINK]).compute, case.compute)
            for layer in made["layers"]:
                for tensor in layer["tensors"]:
                    self.assertEqual(tensor["bytes"] % 4, 0)
                    self.assertGreater(tensor["bytes"], 0)

    def test_a_thousand_small_tensors(self):
        self.assertEqual(jobs.tensor_count(jobs.load("small1000")), 1000)

    def test_cases_have_names_of_their_own(self):
        self.assertEqual(len({case.name for case in jobs.CASES}), len(jobs.CASES))


def system(title, ours, seconds, cpu=1.0):
    return results.summarise(title, ours, [ranks.Round([seconds] * 3, cpu, 1 << 20)])


def case_result(ours_seconds, peers, cpu=1.0):
    made = profile([(1, 2, 1000), (1, 2, 1000)])
    systems = [system("commtune: joint", True, ours_seconds, cpu)]
    systems += [system(f"DDP {mib} MiB", False, seconds) for mib, seconds in zip((25, 5, 2, 1), peers)]
    return results.CaseResult(jobs.CASES[0], 2000, 2, bound.bounds(made, [LINK] * 4), systems)


class Verdict(unittest.TestCase):
    def test_met(self):
        line = results.result_line([case_result(7.6, (11.0, 8.5, 9.0, 9.5))])  # bound 7.5
        self.assertTrue(line.startswith("RESULT race cases=1 gap_median=0.0133(<=0.05)"), line)
        self.assertTrue(line.endswith(" aa=none excluded=none met"), line)

    def test_cases_that_were_not_asked_for_are_said(self):
        line = results.result_line([case_result(7.6, (11.0, 8.5, 9.0, 9.5))], unasked=15)
        self.assertTrue(line.endswith(" excluded=cases:15(not-asked) met"), line)

    def test_each_target_can_be_missed(self):
        for ours_seconds, peers, cpu, missed in (
            (8.0, (12.0, 9.0, 9.0, 9.0), 1.0, "gap_median"),
            (8.6, (13.0, 9.9, 9.9, 9.9), 1.0, "gap_worst"),
            (7.6, (12.0, 8.0, 9.0, 9.0), 1.0, "over_best_bucket_median"),
            (7.6, (12.0, 7.5, 9.0, 9.0), 1.0, "over_best_bucket_least"),
            (7.6, (10.0, 9.0, 9.0, 9.0), 1.0, "over_default_median"),
            (7.6, (12.0, 9.0, 9.0, 9.0), 1.1, "cpu_ratio_median"),
        ):
            one = case_result(ours_seconds, peers, cpu)
            self.assertIn(missed, [goal.name for goal in results.targets([one]) if not goal.met])
            self.assertTrue(results.result_line([one]).endswith(" missed"))

    def test_rounds_that_differ_widen_what_is_no_worse_or_decide_nothing(self):
        one = case_result(7.6, (12.0, 7.55, 9.0, 9.0))
        for apart, ending in ((1.001, " missed"), (1.01, " missed"), (1.5, " too-noisy")):
            for each in one.systems:
                each.rounds = [ranks.Round([each.seconds] * 3, 1.0, 1), ranks.Round([each.seconds * apart] * 3, 1.0, 1)]
            line = results.result_line([one])
            self.assertTrue(line.endswith(ending), line)  # never over_best_bucket_median
            self.assertIn(f"aa_median={apart - 1:.4f}", line)
        met = {goal.name: goal.met for goal in results.targets([one])}
        self.assertTrue(met["over_best_bucket_least"])

    def test_median_of_rounds(self):
        rounds = [ranks.Round([1.0, 1.0, 9.0], 1.0, 1), ranks.Round([3.0, 3.0, 3.0], 2.0, 2), ranks.Round([2.0] * 3, 3.0, 1)]
        made = results.summarise("x", True, rounds)
        self.assertEqual((made.seconds, made.fastest_round, made.slowest_round), (2.0, 1.0, 3.0))
        self.assertEqual((made.cpu_seconds, made.peak_bytes), (2.0, 2))

    def test_iterations_end_with_their_last_rank(self):
        """Ranks that are ahead in turn: three iterations take what all of them take, not three times the slowest rank's."""
        ahead_in_turn = [[0, 2_000_000_000, 3_000_000_000, 5_000_000_000], [1_000_000_000, 2_000_000_000, 4_000_000_000, 5_000_000_000]]
        self.assertEqual(ranks.durations(ahead_in_turn), [1.0, 2.0, 1.0])

    def test_tables_and_picture_hold_every_system(self):
        one = case_result(7.6, (11.0, 8.5, 9.0, 9.5))
        for each in one.systems:
            self.assertIn(each.title, results.case_table(one))
            self.assertIn(each.title.removeprefix("commtune: "), picture.svg([one]))
        self.assertEqual({len(row) for row in results.csv_rows(one)}, {len(results.COLUMNS)})


class Archive(unittest.TestCase):
    def test_a_kept_case_comes_back_whole(self):
        one = case_result(7.6, (11.0, 8.5, 9.0, 9.5))
        with tempfile.TemporaryDirectory() as directory:
            folder = Path(directory)
            archive.keep(folder, one)
            back = archive.load(folder, one.case)
            self.assertEqual(results.case_table(back), results.case_table(one))
            self.assertEqual(list(results.csv_rows(back)), list(results.csv_rows(one)))
            self.assertIsNone(archive.load(folder, jobs.CASES[1]))
            changed = dataclasses.replace(one.case, compute=one.case.compute * 2)
            archive.path_of(folder, one.case).rename(archive.path_of(folder, changed))
            self.assertIsNone(archive.load(folder, changed))


class Program(unittest.TestCase):
    def test_builds_with_sanitizers_are_told_apart(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertFalse(ours.is_sanitized(Path(folder)))
            for value, sanitized in (("", False), ("OFF", False), ("thread", True), ("address,undefined", True)):
                (Path(folder) / "CMakeCache.txt").write_text(f"A:BOOL=ON\nCOMMTUNE_SANITIZE:STRING={value}\nB:BOOL=ON\n", encoding="utf-8")
                self.assertEqual(ours.is_sanitized(Path(folder)), sanitized, value)


class Explanation(unittest.TestCase):
    def explained(self, iteration, other_rank):
        made = profile([(1, 2, 1000), (1, 2, 1000)])
        one = case_result(other_rank, (11.0,))
        times = [(2.0, 2.1, 3.9), (4.0, 4.1, 5.8)]  # queued, started, distributed: ideal 2..3.5 and 4..5.5
        messages = [
            {"queued_seconds": q, "started_seconds": s, "reduced_seconds": d, "distributed_seconds": d, "used_seconds": d}
            for q, s, d in times
        ]
        usage = {"copying_seconds": 0.05, "delayed_seconds": 0.1}
        ranks = [{"rank": 0, "iteration_seconds": [iteration], **usage}, {"rank": 1, "iteration_seconds": [other_rank]}]
        report = {"messages": messages, "ranks": ranks, "iteration_seconds": [other_rank]}
        one.chosen.rounds[0].detail["report"] = report
        return dict(explain.stages(one, made, plan([[1], [0]]), [LINK] * 4))

    def test_lines_by_hand(self):
        # Bound 7.5; the plan is optimal. Services last 1.8 and 1.7 s: the second then ends at 4 + 1.7 and the iteration
        # at 7.7; of that, copies took 0.05 s and waiting for cores 0.1 s. It started 0.1 s late: 7.8. Rank 0 took 7.9, another rank 8.0.
        found = self.explained(7.9, 8.0)
        expected = [("bound", 7.5), ("road", 7.5), ("plan", 7.5), ("copies", 7.55), ("contention", 7.65), ("stage cost", 7.7)]
        expected += [("idle wire", 7.8), ("waking up", 7.9), ("stragglers", 8.0)]
        self.assertEqual(list(found), [name for name, _ in expected])
        for name, seconds in expected:
            self.assertAlmostEqual(found[name], seconds, msg=name)

    def test_copies_and_contention_explain_no_more_than_there_is(self):
        rank = {"iteration_seconds": [1.0, 1.0], "copying_seconds": 0.4, "delayed_seconds": 9.0}
        self.assertEqual(explain.parts_of_service(rank, 0.5), (0.2, 0.3))
        self.assertEqual(explain.parts_of_service(rank, 0.1), (0.1, 0.0))

    def test_roads_on_an_uneven_network(self):
        slow = bound.Port(100.0, 100.0, 0.0)
        ports = [LINK] * 3 + [slow]
        ring = {"kind": "all-to-all", "algorithm": "ring"}
        servers = {"kind": "parameter-server", "servers": 3, "placement": "colocated", "assignment": "even"}
        self.assertAlmostEqual(explain.road_seconds_per_byte(ring, ports), 15e-3)  # 1.5 / 100
        self.assertAlmostEqual(explain.road_seconds_per_byte(servers, ports), 10e-3)  # what the bound says
        spared = servers | {"first": 1}
        slow_first = ports[-1:] + ports[:-1]
        self.assertAlmostEqual(explain.road_seconds_per_byte(spared, slow_first), 10e-3)
        tree = {"kind": "all-to-all", "algorithm": "double-binary-tree"}
        self.assertAlmostEqual(explain.road_seconds_per_byte(tree, ports), bound.seconds_per_byte(ports))


class Peer(unittest.TestCase):
    def test_where_pytorch_cannot_be_had_the_reason_is_said(self):
        with contextlib.ExitStack() as undo:
            undo.callback(setattr, pytorch, "ENVIRONMENT", pytorch.ENVIRONMENT)
            with tempfile.TemporaryDirectory() as folder:
                pytorch.ENVIRONMENT = Path(folder) / "environment"
                pytorch.ENVIRONMENT.write_text("#!/bin/sh\necho 'skipped: no network' >&2\nexit 77\n", encoding="utf-8")
                pytorch.ENVIRONMENT.chmod(0o755)
                with self.assertRaisesRegex(pytorch.RaceError, "no network") as raised:
                    pytorch.environment()
        self.assertEqual(raised.exception.status, 77)

    def test_an_exported_list_is_a_row_and_no_rival(self):
        made = case_result(1.0, [2.0, 3.0])
        made.systems.append(results.summarise("DDP, exported list of 3", False, [ranks.Round([1.5] * 3, 1.0, 1 << 20)]))
        made.buckets = 2
        self.assertEqual(made.best_peer.seconds, 2.0)
        self.assertIn("exported list of 3", results.case_table(made))


if __name__ == "__main__":
    unittest.main()
