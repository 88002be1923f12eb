#!/usr/bin/env python3
"""Replays on GPUs, as a user asks for them, on libraries that stand in for NVIDIA's."""

import json
import os
import subprocess
import unittest

import product

SMALL = ("resnet50", "--scale-bytes", "0.01", "--scale-time", "0.02", "--draws", "8")
STANDIN = os.environ["COMMTUNE_E2E_STANDIN"]


class Gpu(product.Product):
    def setUp(self):
        super().setUp()
        self.probe()
        self.answer = self.json(*SMALL)

    def run_on_gpus(self, *arguments):
        (run,) = self.json("run", *arguments, "--device", "cuda", "--iterations", "2", LD_LIBRARY_PATH=STANDIN)["runs"]
        self.assertGreater(run["report"]["check"]["tensors"], 0)
        return run

    def test_the_chosen_plan_runs_and_says_on_what(self):
        run = self.run_on_gpus("latest")
        self.assertEqual(self.json("show", "runs", str(run["run"]))["settings"]["device"], "cuda")
        self.assertNotIn("device", self.json("show", "runs", str(self.run_on_host()))["settings"])

    def run_on_host(self):
        (run,) = self.json("run", "latest", "--iterations", "2")["runs"]
        return run["run"]

    def test_a_plan_by_nccl_runs(self):
        plan = self.json("show", "plans", str(self.answer["plans"]["bsp-a2a"]))["plan"]
        plan["road"] = {"kind": "all-to-all", "algorithm": "library"}
        plan["library"] = "nccl"
        (self.home / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
        self.run_on_gpus("plan.json", "--model", plan["layout"])
        text = self.refused(9, "run", "plan.json", "--model", plan["layout"])
        self.assertIn("library nccl: it sums in a GPU's memory, and these gradients lie on the host", text)

    def test_a_probe_measures_what_the_gpus_and_nccl_take(self):
        probe = self.probe("--device", "cuda", "--cluster", "gpus", LD_LIBRARY_PATH=STANDIN,
                           COMMTUNE_STANDIN_NCCL_ALPHA_US="3000")
        facts = self.json("show", "clusters", "gpus")["facts"]
        self.assertTrue(any(name.endswith(".gpu_0") and "stand-in" in text for name, text in facts.items()), facts)
        self.assertTrue(any(name.endswith(".nccl") for name in facts), facts)
        by_library = [each for each in probe["cluster"]["operations"]
                      if each["road"].get("algorithm") == "library" and each["operation"] == "all-reduce"]
        self.assertTrue(by_library, probe["cluster"]["operations"])
        answer = self.json(*SMALL, "--cluster", "gpus")
        (run,) = self.json("run", str(answer["plans"]["bsp-a2a"]), "--iterations", "2", LD_LIBRARY_PATH=STANDIN)["runs"]
        self.assertEqual(self.json("show", "runs", str(run["run"]))["settings"]["device"], "cuda")
        self.assertIn("device = cuda", self.refused(9, "run", str(answer["plans"]["bsp-a2a"])))
        answer = self.json(*SMALL, "--cluster", "gpus", "--local", "2", "--check", "1s", LD_LIBRARY_PATH=STANDIN)
        self.assertTrue(answer["checked"], answer["check"])
        newest = self.json("show", "runs")["rows"][0]
        self.assertEqual(self.json("show", "runs", str(newest["id"]))["settings"]["device"], "cuda")

    def slow_downs(self, *arguments, **slowed):
        """Of a probe on GPUs where compute and collectives slow each other so."""
        variables = {"COMMTUNE_STANDIN_" + name: str(value) for name, value in slowed.items()}
        probe = self.json("probe", "--local", "2", "-e", "64K", "-f", "16", "-n", "2", "--max-iterations", "2", "--fresh",
                          "--budget", "3s", "--device", "cuda", "--cluster", "gpus", *arguments, LD_LIBRARY_PATH=STANDIN,
                          COMMTUNE_STANDIN_NCCL_ALPHA_US="2000", **variables)
        return probe["cluster"]

    def test_a_probe_measures_how_layers_and_collectives_slow_each_other(self):
        # By so much that a busy machine does not hide which is which: its own noise is some tenths.
        for of_layers, of_traffic in ((3, 0), (0, 3)):
            cluster = self.slow_downs("--sm-share", "1", INTERFERENCE=of_layers, CONTENTION=of_traffic)
            measured = [cluster[name]["value"] if name in cluster else 0 for name in ("interference", "contention")]
            for value, truth in zip(measured, (of_layers, of_traffic)):
                self.assertEqual(value > 1, truth > 1, (measured, of_layers, of_traffic))
        self.assertRegex(self.ok("show", "clusters", "gpus"), r"on a GPU: a kernel's launch .*, traffic slows by \d+")

    def test_a_share_is_of_a_gpu_and_no_more_than_all_of_it(self):
        self.assertIn("device = cuda", self.refused(2, "probe", "--local", "2", "--sm-share", "0.5"))
        self.assertIn("sm_share = 1.5", self.refused(2, "probe", "--local", "2", "--device", "cuda", "--sm-share", "1.5",
                                                     LD_LIBRARY_PATH=STANDIN))

    def test_nccls_tuner_gets_what_the_probe_measured(self):
        # Rings: LL costs 1.5 ms and a byte 150 ns, Simple 9 ms and 3 ns: they cost the same at 51,020 B. NCCL's own choice
        # in the stand-in is always Simple; trees cost as much as that. So much that a busy machine changes little.
        costs = {"RING_LL_ALPHA_US": "1500", "RING_LL_BYTES_PER_S": "6.6667e6", "ALPHA_US": "9000", "BYTES_PER_S": "3.3333e8"}
        variables = {"COMMTUNE_STANDIN_NCCL_" + name: value for name, value in costs.items()}
        probe = self.json("probe", "--local", "2", "-e", "256K", "-f", "16", "-n", "2", "--max-iterations", "2", "--budget", "600s",
                          "--device", "cuda", "--cluster", "gpus", LD_LIBRARY_PATH=STANDIN, **variables)
        tunings = {each.get("tuning") for each in probe["cluster"]["nccl"]}
        self.assertTrue({"Ring+Simple", "Ring+LL", "Tree+LL", "Ring+LL+2"} <= tunings, tunings)
        self.assertTrue(any("NCCL, NVLS+Simple" in note for note in probe["notes"]), probe["notes"])
        self.assertIn("all-reduce, NCCL Ring+LL, 2 workers", self.ok("show", "clusters", "gpus"))

        answer = self.json(*SMALL, "--cluster", "gpus")
        table = self.json("export", str(answer["id"]), "--to", "nccl")["settings"]["COMMTUNE_NCCL_TUNING"]
        self.assertIn(f"export COMMTUNE_NCCL_TUNING={table}", self.ok("export", str(answer["plans"]["bsp-a2a"]), "--to", "env"))
        decisions = self.decisions("--table", table, "-b", "1K", "-e", "1M")
        self.assertEqual(decisions[4096].split(",")[0], "Ring+LL")
        self.assertFalse(decisions[262144].startswith("Ring+LL"), decisions)
        self.assertEqual(decisions[1048576], "NCCL's own", "beyond what was measured")
        smallest = min(size for size, decision in self.decisions("--table", table, "-b", "16K", "-f", "1.02").items()
                       if not decision.startswith("Ring+LL"))
        self.assertTrue(51020 / 2 < smallest < 51020 * 1.3, smallest)
        self.assertEqual(set(self.decisions("--table", table, "--ranks", "4").values()), {"NCCL's own"})

    @staticmethod
    def decisions(*arguments):
        """Of nccl-tuner-decisions, by size."""
        program = os.path.join(os.path.dirname(product.program()), "nccl-tuner-decisions")
        shown = subprocess.run([program, *arguments], check=True, capture_output=True, text=True, timeout=60).stdout
        rows = (line.split(None, 1) for line in shown.splitlines())
        return {int(row[0]): row[1] for row in rows if row[0].isdigit()}

    def test_without_a_gpu_it_names_the_rank_and_the_reason(self):
        text = self.refused(9, "run", "latest", "--device", "cuda")
        self.assertRegex(text, r"rank \d \(host .*\): device = cuda: libcuda\.so\.1 cannot be loaded here")
        self.assertRegex(self.refused(9, "probe", "--local", "2", "--device", "cuda"), r"device = cuda: libcuda")
        self.assertIn("cpu,cuda", self.refused(2, "run", "latest", "--device", "tpu"))


if __name__ == "__main__":
    unittest.main()
