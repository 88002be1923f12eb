#!/usr/bin/python3
"""What schedulers and pages ask beside a plan: glances that nothing is kept of, what-ifs, scores of nodes."""

import re
import socket
import time
import unittest

from server import PATIENCE_SECONDS, ServiceTest

JOB = {"model": "resnet50", "cluster": "lab"}


class Questions(ServiceTest):
    def get(self, path):
        answer = self.server.ask("GET", path)
        self.assertEqual(answer.status, 200, answer.body[:500])
        return answer.json()

    def plan(self, **more):
        answer = self.server.ask("POST", "/v1/plans", {**JOB, **more})
        self.assertIn(answer.status, (200, 201), answer.body[:500])
        self.fits({"$ref": "#/components/schemas/PlanReply"}, answer.json())
        return answer.json()

    def rows(self, kind):
        return {row["id"] for row in self.get(f"/v1/{kind}?limit=1000")["rows"]}

    def test_of_a_glance_nothing_is_kept(self):
        before = self.rows("plans"), self.rows("profiles")
        first = self.plan(keep="none", overrides={"batch": 7})
        again = self.plan(keep="none", overrides={"batch": 7})
        self.assertEqual((self.rows("plans"), self.rows("profiles")), before)
        self.assertEqual((first["id"], first["plans"], first["launch"]), (0, {}, ""))
        self.assertNotIn("COMMTUNE_PLAN", first["environment"])
        self.assertEqual((first["cached"], again["cached"]), (False, True))
        kept = self.plan(overrides={"batch": 7})
        self.assertEqual(kept["iteration"], first["iteration"], "keeping an answer does not change it")
        self.assertIn(kept["id"], self.rows("plans") - before[0])

    def test_a_large_model_is_drawn_less_often(self):
        layers = [{"name": f"w{i}", "forward_seconds": 1e-5, "backward_seconds": 2e-5, "update_seconds": 0, "macs_per_sample": 0,
                   "tensors": [{"name": f"w{i}", "bytes": 4096}]} for i in range(3000)]
        profile = {"format": "commtune/profile/1", "model": "many", "batch": 1, "data_type": "float32", "layers": layers,
                   "origin": {"how": "derived", "device": "", "source": "a test", "note": ""}}
        refused = self.problem(self.server.ask("POST", "/v1/plans", {"model": profile, "cluster": "lab", "draws": 1024}), 400)
        self.assertIn("must be at most 666", refused["detail"])
        self.assertEqual(refused["pointer"], "/draws")

    def test_assumptions_hold_in_every_what_if(self):
        def compute(**more):
            query = "&".join(f"{name}={value}" for name, value in {**JOB, "most": 2, "draws": 0, **more}.items())
            return self.get("/v1/scaling?" + query)["compute_seconds"]
        usual = compute()
        self.assertAlmostEqual(compute(device_speed_scale=2), usual / 2)
        batch = self.get("/v1/scaling?model=resnet50&cluster=lab&most=2&draws=0")["batch"]
        self.assertAlmostEqual(compute(batch=3 * batch), 3 * usual)
        job = "model=resnet50&cluster=lab"
        for path in (f"/v1/servers?{job}&most=2", f"/v1/phase-map?{job}&workers=4&bandwidth_scales=1"):
            first = lambda answer: (answer.get("points") or answer["cells"])[0]["iteration_seconds"]
            slow = first(self.get(path + "&device_speed_scale=0.1"))
            self.assertGreaterEqual(slow, 10 * usual, "no iteration is shorter than its compute")
            self.assertLess(first(self.get(path)), slow, path)
        for wrong in ("device_speed_scale=0", "batch=0", "batch=x", "gradient_scale=-1"):
            self.problem(self.server.ask("GET", f"/v1/scaling?{job}&{wrong}"), 400)

    def test_where_the_batch_is_unknown_so_are_samples_a_second(self):
        answer = self.plan(model="gpt2", keep="none", draws=0)
        self.assertEqual((answer["batch"], answer["samples_per_second"]), (0, None))
        self.assertEqual({entry["samples_per_second"] for entry in answer["ranking"]}, {None})
        job = "model=gpt2&cluster=lab"
        points = self.get(f"/v1/scaling?{job}&most=2&draws=0")["curves"][0]["points"]
        self.assertEqual({point["samples_per_second"] for point in points}, {None})
        self.assertIsNone(self.get(f"/v1/servers?{job}&most=1")["points"][0]["samples_per_second"])
        refused = self.problem(self.server.ask("POST", "/v1/plans", {"model": "gpt2", "cluster": "lab", "overrides": {"batch": 8}}), 400)
        self.assertEqual(refused["pointer"], "/overrides/batch")
        self.assertIn("--device-speed-scale", refused["detail"])
        compared = self.plan(model="gpt2", keep="none", candidates=[{"name": "one", "workers": 1}, {"name": "two", "workers": 2}])
        answers = {each["name"]: each["answer"] for each in compared["candidates"]}
        self.assertEqual(compared["best"], max(answers, key=lambda name: answers[name]["workers"] / answers[name]["iteration"]["seconds"]))

    def test_a_what_if_and_a_plan_agree(self):
        answer = self.plan(keep="none", draws=0, workers=4, overrides={"device_speed_scale": 2, "batch": 64})
        curves = self.get("/v1/scaling?model=resnet50&cluster=lab&most=4&draws=0&device_speed_scale=2&batch=64")["curves"]
        curve = next(curve for curve in curves if curve["method"] == answer["method"])
        point = next(point for point in curve["points"] if point["workers"] == 4)
        self.assertAlmostEqual(point["iteration_seconds"], answer["iteration"]["seconds"])

    def test_nodes_are_scored_and_unknown_ones_do_not_keep_a_job_from_starting(self):
        def scores(nodes, cluster="lab"):
            answer = self.server.ask("POST", f"/v1/prioritize?cluster={cluster}", {"task": {}, "nodes": nodes})
            self.assertEqual(answer.status, 200, answer.body[:500])
            self.assertEqual(answer.json()["errorMessage"], "")
            return answer.json()["nodeScore"]
        known = scores([{"Name": "n1"}, {"Name": "n2"}, "x9"])
        self.assertEqual(known["x9"], 50)
        for node in ("n1", "n2"):
            self.assertTrue(90 < known[node] <= 100, f"both links follow the same law: {known}")
        self.assertEqual(scores(["n1"], "nowhere"), {"n1": 50})
        self.problem(self.server.ask("POST", "/v1/prioritize?cluster=lab", {"nodes": [{"Name": 4}]}), 400)


class Limits(ServiceTest):
    flags = ("--compute-time", "1ms")

    def test_curves_and_maps_that_take_too_long_are_refused_and_plans_are_not(self):
        for path in ("/v1/phase-map?", "/v1/scaling?most=4096&", "/v1/servers?most=4&"):
            refused = self.problem(self.server.ask("GET", f"{path}model=resnet50&cluster=lab"), 400)
            self.assertIn("longer than the 0.001 s", refused["detail"])
        plan = self.server.ask("POST", "/v1/plans", JOB)
        self.assertEqual(plan.json()["status"], "planned")


class Leaving(ServiceTest):
    flags = ("--compute-time", "1h")

    def metric(self, name):
        lines = self.server.ask("GET", "/metrics").body.decode().splitlines()
        return sum(float(line.split()[-1]) for line in lines if re.match(name, line))

    def wait_for(self, name, value):
        for _ in range(10 * PATIENCE_SECONDS):
            if self.metric(name) == value:
                return
            time.sleep(0.1)
        self.fail(f"{name} never was {value}")

    def test_a_map_whose_client_has_gone_is_not_finished(self):
        values = ",".join(str(i) for i in range(1, 17))
        path = f"/v1/phase-map?model=resnet50&cluster=lab&workers={values}&bandwidth_scales={values}&latency_scales=1,2,3,4"
        host, port = self.server.address.split(":")
        with socket.create_connection((host, int(port))) as client:
            client.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            self.wait_for("commtune_http_in_flight", 2)  # the map, and the question for the metrics
        self.wait_for(r'commtune_http_requests_total\{.*route="/v1/phase-map",status="499"\}', 1)
        self.wait_for("commtune_http_in_flight", 1)


if __name__ == "__main__":
    unittest.main()
