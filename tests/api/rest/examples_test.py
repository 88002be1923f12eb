#!/usr/bin/python3
"""Every route of openapi.yaml is asked with its own examples, and answers as it says."""

import contextlib
import json
import os
import sqlite3
import subprocess
import unittest

from server import ServiceTest, example_path, operations, resolved

STREAMS = {"/v1/events"}


class Examples(ServiceTest):
    def check(self, method, path, operation, answer):
        responses = operation["responses"]
        self.assertIn(str(answer.status), responses, f"{method} {path}: {answer.status} {answer.body[:400]}")
        content = resolved(self.document, responses[str(answer.status)]).get("content", {})
        self.assertIn(answer.type, content, f"{method} {path}")
        schema = content[answer.type].get("schema", {})
        value = answer.json() if answer.type == "application/json" else answer.body.decode()
        self.fits(schema, value, f"{method} {path}")

    def test_every_example_is_answered_as_described(self):
        asked = 0
        order = {"GET": 0, "POST": 1, "DELETE": 2}  # a job and a token exist before they are asked for
        token = self.server.token
        self.assertEqual(self.server.ask("POST", "/v1/clusters/lab/probes", {"budget_seconds": 1}, token=token).status, 202)
        self.assertEqual(self.server.ask("POST", "/v1/tokens", {"name": "one", "scopes": ["read"]}, token=token).status, 201)
        for method, path, operation, parameters in sorted(operations(self.document), key=lambda each: order[each[0]]):
            if path in STREAMS or path.endswith("/resume"):
                continue  # tested elsewhere
            where = example_path(self.document, path, parameters)
            content = operation.get("requestBody", {}).get("content", {}).get("application/json")
            bodies = [each["value"] for each in content["examples"].values()] if content else [None]
            for body in bodies:
                with self.subTest(f"{method} {where} {str(body)[:60]}"):
                    if body is not None:
                        self.fits(content["schema"], body, "the example itself")
                    self.check(method, path, operation, self.server.ask(method, where, body, token=token))
                    asked += 1
        self.assertGreater(asked, 35)

    def test_every_route_is_described_and_every_description_is_a_route(self):
        text = self.server.ask("GET", "/metrics").body.decode()
        self.assertIn("commtune_build_info", text)
        for method, path, operation, parameters in operations(self.document):
            wrong = {"GET": "DELETE", "POST": "PATCH", "DELETE": "PUT"}[method]
            answer = self.server.ask(wrong, example_path(self.document, path, parameters))
            if answer.status != 405:
                self.assertEqual(wrong, "DELETE", f"{wrong} {path}: {answer.status}")
                continue
            self.assertIn(method, answer.headers["Allow"])

    def test_every_path_refuses_what_does_not_exist(self):
        for path in ("/v1/plans/999", "/v1/plans/abcdef", "/v1/runs/999", "/v1/jobs/999", "/v1/clusters/none",
                     "/v1/clusters/none/fits", "/v1/profiles/none", "/v1/jobs/none", "/v1/none", "/none",
                     "/v1/plans/1/exports/none", "/v1/plans/1/timeline?method=none"):
            with self.subTest(path):
                self.problem(self.server.ask("GET", path), 404)

    def test_refusals_point_at_the_field(self):
        cases = [
            ({"model": "resnet50", "cluster": "lab", "workers": -4}, "/workers"),
            ({"model": "resnet50", "cluster": "lab", "overrides": {"batch": "x"}}, "/overrides/batch"),
            ({"model": "resnet50", "cluster": "lab", "candidates": [{"name": "a"}, {"name": 7}]}, "/candidates/1/name"),
            ({"cluster": "lab"}, "/model"),
            ({"model": "resnet50", "cluster": "lab", "verify": {"plans": 1}}, "/verify/plans"),
            ({"model": "resnet50", "cluster": "lab", "verify": {"budget": 5}}, "/verify/budget"),
            ({"model": "resnet50", "cluster": "lab", "verify": True}, "/verify"),
            ({"model": "resnet50", "cluster": "lab", "verify": 1}, "/verify"),
            ({"model": "resnet50", "cluster": "lab", "check": "5"}, "/check"),
            ({"model": "resnet50", "cluster": "lab", "check": "5s", "nodes": "n1"}, "/nodes"),
            ({"model": "resnet50", "cluster": "lab", "verify": {}, "overrides": {"batch": 7}}, "/overrides"),
            ({"model": "resnet50", "cluster": "lab", "verify": {}, "nodes": "n1"}, "/nodes"),
            ({"model": "resnet50", "cluster": "lab", "verify": {}, "keep": "none"}, "/keep"),
            ({"model": "resnet50", "cluster": "lab", "verify": {}, "candidates": [{"name": "a"}]}, "/candidates"),
            ({"model": "resnet50", "cluster": "lab", "explain": True, "candidates": [{"name": "a"}]}, "/explain"),
        ]
        for body, pointer in cases:
            with self.subTest(pointer):
                self.assertEqual(self.problem(self.server.ask("POST", "/v1/plans", body), 400).get("pointer"), pointer)
        self.assertEqual(self.problem(self.server.ask("GET", "/v1/plans?limit=0"), 400).get("parameter"), "limit")


class TwoDoors(ServiceTest):
    """What a request can ask, flags can ask too, and both get the same answer."""

    # Flags of fields that are called otherwise, or that are several.
    FLAGS = {
        "model": ["MODEL"],
        "dedicated_servers": ["--dedicated"],
        "recommend_workers": ["--recommend-workers", "--least-efficiency"],
        "candidates": ["--candidate"],
        "overrides": ["--bandwidth-scale", "--latency-scale", "--device-speed-scale", "--gradient-scale", "--batch"],
    }

    def tune(self, *arguments):
        command = [os.environ["COMMTUNE_E2E_TUNE"], "plan", *arguments]
        done = subprocess.run(command, env={**os.environ, "COMMTUNE_DB": str(self.database)}, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_every_field_of_a_question_has_a_flag(self):
        text = self.tune("--help")
        for field in self.document["components"]["schemas"]["PlanRequest"]["properties"]:
            for flag in self.FLAGS.get(field, ["--" + field.replace("_", "-")]):
                with self.subTest(field):
                    self.assertRegex(text, rf"(?m)^ +{flag}\b")

    def test_a_thorough_search_is_asked_for_alike_and_no_other_answer(self):
        body = {"model": "resnet50", "cluster": "lab", "draws": 0, "keep": "none"}
        quick, thorough = (self.server.ask("POST", "/v1/plans", {**body, "thorough": on}).json() for on in (False, True))
        self.assertEqual((quick["cached"], thorough["cached"]), (False, False))
        said = json.loads(self.tune("resnet50", "--cluster=lab", "--draws=0", "--keep=none", "--thorough", "--json"))
        self.assertEqual(said["ranking"], thorough["ranking"])

    def test_a_barrier_is_asked_for_alike_and_no_other_answer(self):
        body = {"model": "resnet50", "cluster": "lab", "draws": 0, "keep": "chosen"}
        answers = [self.server.ask("POST", "/v1/plans", {**body, **more}).json() for more in ({}, {"barrier": "full"}, {"barrier": "per-layer"})]
        self.assertEqual([answer["cached"] for answer in answers], [False] * 3)
        for answer, barrier in zip(answers[1:], ("full", "per-layer")):
            said = json.loads(self.tune("resnet50", "--cluster=lab", "--draws=0", "--keep=none", f"--barrier={barrier}", "--json"))
            self.assertEqual(said["plan"]["barrier"], barrier)
            self.assertEqual(said["ranking"], answer["ranking"])
            stored = self.server.ask("GET", f"/v1/plans/{answer['id']}").json()
            self.assertEqual(stored["plan"]["barrier"], barrier)

    def test_candidates_are_compared_alike(self):
        places = [{"name": "both"}, {"name": "one", "nodes": "n1", "devices_per_node": 2}, {"name": "none", "nodes": "x"}]
        body = {"model": "resnet50", "cluster": "lab", "draws": 8, "keep": "none", "candidates": places}
        asked = self.server.ask("POST", "/v1/plans", body).json()
        texts = ("both", "one nodes=n1 devices-per-node=2", "none nodes=x")
        flags = ("resnet50", "--cluster=lab", "--draws=8", "--keep=none", *(f"--candidate={text}" for text in texts))
        said = json.loads(self.tune(*flags, "--json"))
        self.assertEqual(said, asked)
        self.assertIn(f"the most samples per second: {asked['best']}", self.tune(*flags))


class Pages(ServiceTest):
    def test_every_address_of_the_dashboard_is_its_one_page(self):
        page = self.server.ask("GET", "/")
        if page.status == 404:
            self.skipTest("built without the dashboard")
        self.assertEqual(page.type, "text/html")
        self.assertIn("script-src 'self'", page.headers["Content-Security-Policy"])
        self.assertEqual(self.server.ask("GET", "/clusters/my.lab").body, page.body)
        self.problem(self.server.ask("GET", "/v1/none"), 404)
        script = page.body.decode().split('src="')[1].split('"')[0]
        answer = self.server.ask("GET", script)
        self.assertEqual((answer.status, answer.type), (200, "application/ecmascript"))
        self.assertIn("immutable", answer.headers["Cache-Control"])
        self.problem(self.server.ask("GET", "/assets/../../etc/passwd"), 404)


class Plans(ServiceTest):
    def ask(self, **fields):
        return self.server.ask("POST", "/v1/plans", {"model": "resnet50", "cluster": "lab", **fields})

    def test_the_same_question_has_the_same_answer_also_after_a_restart(self):
        first, second = self.ask(seed=7), self.ask(seed=7)
        self.assertEqual((first.status, second.status), (201, 200))
        self.assertEqual(first.headers["Location"], f"/v1/plans/{first.json()['id']}")
        self.assertEqual({**first.json(), "cached": True}, second.json())
        from server import Server

        other = Server(self.database)
        self.addCleanup(other.close)
        again = other.ask("POST", "/v1/plans", {"model": "resnet50", "cluster": "lab", "seed": 7})
        self.assertEqual(again.status, 200)
        self.assertEqual(again.json()["id"], first.json()["id"])

    def test_what_is_run_needs_a_token_that_may_operate(self):
        for runs in ({"verify": {}}, {"check": "5s"}):
            refused = self.problem(self.ask(**runs), 401)
            self.assertIn("scope operate", refused["detail"])
            self.assertEqual(self.ask(**runs).headers["WWW-Authenticate"], 'Bearer realm="commtune"')
        made = self.server.ask("POST", "/v1/tokens", {"name": "planner", "scopes": ["plan"]}, token=self.server.token).json()
        body = {"model": "resnet50", "cluster": "lab", "verify": {}}
        self.problem(self.server.ask("POST", "/v1/plans", body, token=made["token"]), 403)
        self.problem(self.server.ask("POST", "/v1/plans", {"model": "resnet50", "cluster": "lab", "check": "5s"}, token=made["token"]), 403)
        self.assertEqual(self.server.ask("GET", "/v1/version", token=made["token"]).json()["scope"], "plan")

    def test_a_verification_that_cannot_run_is_refused_at_once(self):
        def ask(**fields):
            return self.server.ask("POST", "/v1/plans", {"model": "resnet50", "cluster": "lab", "verify": {}, **fields}, token=self.server.token)

        self.assertEqual(self.problem(ask(workers=8), 400)["pointer"], "/verify")
        self.problem(ask(cluster="elsewhere"), 404)
        self.problem(ask(model="resent50"), 404)

    def test_a_verification_is_a_job_with_what_was_asked(self):
        layer = {"name": "w", "forward_seconds": 1e-3, "backward_seconds": 2e-3, "update_seconds": 0, "macs_per_sample": 0,
                 "tensors": [{"name": "w", "bytes": 4096}]}
        profile = {"format": "commtune/profile/1", "model": "one", "batch": 1, "data_type": "float32", "layers": [layer],
                   "origin": {"how": "derived", "device": "", "source": "a test", "note": ""}}
        body = {"model": profile, "cluster": "lab", "workers": 2, "draws": 0, "verify": {"plans": 2, "budget_seconds": 5}}
        answer = self.server.ask("POST", "/v1/plans", body, token=self.server.token)
        self.assertEqual(answer.status, 202, answer.body)
        job = answer.json()
        self.assertEqual(answer.headers["Location"], f"/v1/jobs/{job['id']}")
        self.fits({"$ref": "#/components/schemas/Job"}, job)
        self.assertEqual((job["kind"], job["request"]["workers"], job["request"]["verify"]),
                         ("tune", 2, {"plans": 2, "budget_seconds": 5}))
        stored = self.server.ask("GET", f"/v1/profiles/{job['request']['model']}")
        self.assertEqual(stored.json()["model"], "one", "a whole profile is stored, and named by its digest")

    def test_a_check_is_a_job_with_what_was_asked(self):
        def ask(**fields):
            return self.server.ask("POST", "/v1/plans", {"model": "resnet50", "cluster": "lab", "check": "2.5s", **fields}, token=self.server.token)

        answer = ask(hashed=True)
        self.assertEqual(answer.status, 202, answer.body)
        request = answer.json()["request"]
        self.assertEqual((request["check_seconds"], request["hashed"]), (2.5, True))
        self.assertNotIn("verify", request)
        self.assertEqual(self.problem(ask(workers=8), 400)["pointer"], "/check")
        self.assertEqual(self.ask().json()["checked"], False)

    def test_a_cluster_may_be_given_whole(self):
        fitted = self.server.ask("GET", "/v1/clusters/lab").json()["current_fit"]["fit"]
        as_stored = self.ask(draws=0).json()
        given, again = self.ask(cluster=fitted, draws=0), self.ask(cluster=fitted, draws=0)
        self.assertEqual((given.status, again.status), (201, 200))
        self.assertEqual(given.json()["iteration"], as_stored["iteration"])
        self.assertIsNone(given.json()["fit"])
        timeline = self.server.ask("GET", f"/v1/plans/{given.json()['id']}/timeline").json()
        self.assertAlmostEqual(timeline["prediction"]["iteration_seconds"], given.json()["iteration"]["seconds"])
        refused = self.server.ask("POST", "/v1/plans", {"model": "resnet50", "cluster": fitted, "check": "5s"}, token=self.server.token)
        self.assertEqual(self.problem(refused, 400)["pointer"], "/cluster")

    def test_what_nobody_measured_is_unknown_and_says_why(self):
        answer = self.ask(nodes="n1,n9", devices_per_node=2)
        self.assertEqual(answer.status, 200)
        self.assertEqual(answer.json()["status"], "unknown")
        self.assertIn("n9", answer.json()["reason"])

    def test_candidates_are_compared_and_the_unknown_one_does_not_win(self):
        answer = self.ask(candidates=[{"name": "both"}, {"name": "one", "nodes": "n1"}, {"name": "none", "nodes": "x"}]).json()
        rates = {each["name"]: each["answer"].get("samples_per_second", 0) for each in answer["candidates"]}
        self.assertEqual(answer["best"], max(rates, key=rates.get))
        self.assertEqual([each["answer"]["status"] for each in answer["candidates"]], ["planned", "planned", "unknown"])
        self.assertEqual([each["answer"].get("workers") for each in answer["candidates"]], [4, 2, None])

    def test_an_explanation_is_given_to_those_who_ask_for_it(self):
        self.assertNotIn("explanation", self.ask(keep="none").json())
        told, again = self.ask(keep="none", explain=True).json(), self.ask(keep="none", explain=True).json()
        self.assertEqual(told["explanation"]["method"], told["title"])
        self.assertAlmostEqual(told["explanation"]["iteration_seconds"], told["iteration"]["seconds"])
        self.assertEqual(told["explanation"]["critical_path"][0]["from_seconds"], 0)
        self.assertEqual((again["cached"], again["explanation"]), (True, told["explanation"]))
        one = self.ask(keep="none", draws=0, explain="bsp-ps").json()
        self.assertEqual((one["explanation"]["method"], one["method"]), ("BSP-PS", told["method"]))
        self.assertGreater(one["explanation"]["server_sends_bytes"], 0)
        for wrong in ("none-such", 1, ""):
            self.assertEqual(self.problem(self.ask(keep="none", draws=0, explain=wrong), 400)["pointer"], "/explain")

    def test_a_what_if_changes_the_answer_and_belongs_to_no_fit(self):
        as_it_is, slow = self.ask().json(), self.ask(overrides={"bandwidth_scale": 0.1}).json()
        self.assertGreater(slow["iteration"]["seconds"], as_it_is["iteration"]["seconds"] * 1.5)
        self.assertIsNone(self.server.ask("GET", f"/v1/plans/{slow['id']}").json()["fit"])
        timeline = self.server.ask("GET", f"/v1/plans/{slow['id']}/timeline").json()
        self.assertAlmostEqual(timeline["prediction"]["iteration_seconds"], slow["iteration"]["seconds"], places=9)
        faster = self.ask(overrides={"device_speed_scale": 2}).json()
        self.assertAlmostEqual(faster["iteration"]["compute_seconds"], as_it_is["iteration"]["compute_seconds"] / 2, places=6)
        half = self.ask(overrides={"batch": as_it_is["batch"] // 2}).json()
        self.assertAlmostEqual(half["iteration"]["compute_seconds"], as_it_is["iteration"]["compute_seconds"] / 2, places=6)

    def test_a_timeline_shows_the_prediction_of_any_method_of_the_ranking(self):
        plan = self.ask().json()
        for entry in plan["ranking"]:
            answer = self.server.ask("GET", f"/v1/plans/{plan['id']}/timeline?method={entry['method']}").json()
            self.assertEqual(answer["method"], entry["method"])
            self.assertAlmostEqual(answer["prediction"]["iteration_seconds"], entry["iteration_seconds"], places=9)

    def test_a_key_makes_a_repetition_harmless(self):
        body = {"plan": 1, "iteration_seconds": [0.3, 0.31, 0.32]}
        key = {"Idempotency-Key": "run-1"}
        first = self.server.ask("POST", "/v1/runs", body, key)
        second = self.server.ask("POST", "/v1/runs", body, key)
        self.assertEqual((first.status, second.status), (201, 201))
        self.assertEqual(first.body, second.body)
        self.assertEqual(first.headers["Location"], second.headers["Location"])
        self.assertEqual(second.headers["Idempotency-Replayed"], "true")
        self.problem(self.server.ask("POST", "/v1/runs", {"plan": 1}, key), 422)

    def test_an_unchanged_answer_is_not_sent_again(self):
        first = self.server.ask("GET", "/v1/clusters/lab")
        again = self.server.ask("GET", "/v1/clusters/lab", headers={"If-None-Match": first.headers["ETag"]})
        self.assertEqual((again.status, again.body), (304, b""))

    def test_pages_lead_to_the_last_row(self):
        for i in range(5):
            self.ask(seed=100 + i)
            self.server.ask("POST", "/v1/runs", {"plan": 1, "iteration_seconds": [0.3]})
        seen, after = [], 0
        while after is not None:
            page = self.server.ask("GET", f"/v1/runs?limit=2&after={after}").json()
            seen += [row["id"] for row in page["rows"]]
            after = page["next"]
        self.assertEqual(seen, sorted(set(seen), reverse=True))
        self.assertEqual(seen[-1], 1)


class Profiles(ServiceTest):
    def test_a_model_that_is_timed_again_is_another_row_of_the_same_layout(self):
        posted = self.document["paths"]["/v1/profiles"]["post"]["requestBody"]["content"]["application/json"]
        profile = posted["examples"]["tiny"]["value"]
        first = self.server.ask("POST", "/v1/profiles", profile).json()
        again = {**profile, "layers": [{**layer, "backward_seconds": 0.05} for layer in profile["layers"]]}
        second = self.server.ask("POST", "/v1/profiles", again).json()
        self.assertNotEqual((first["id"], first["digest"]), (second["id"], second["digest"]))
        self.assertEqual(first["layout"], second["layout"])
        for name, row in ((first["digest"], first), (second["digest"], second), (first["layout"], second)):
            with self.subTest(name):
                self.assertEqual(self.server.ask("GET", f"/v1/profiles/{name}").json()["id"], row["id"])
                plan = self.server.ask("POST", "/v1/plans", {"model": name, "cluster": "lab", "draws": 0}).json()
                self.assertEqual((plan["profile"], plan["layout"]), (row["id"], row["layout"]))
                stored = self.server.ask("GET", f"/v1/plans/{plan['id']}").json()
                self.assertEqual((stored["layout"], stored["plan"]["layout"]), (row["layout"], row["layout"]))

    def test_a_run_takes_a_profile_of_the_plans_layout_and_no_file(self):
        def ask(model):
            return self.server.ask("POST", "/v1/plans/1/runs", {"model": model}, token=self.server.token)

        self.assertEqual(ask("resnet50").status, 202)
        self.problem(ask("../secret.json"), 404)
        problem = self.problem(ask("vgg16"), 400)
        self.assertIn("layout", problem["detail"])


class Marks(ServiceTest):
    """A fit that is old, and was made under other conditions than those seen since."""

    @classmethod
    def prepare(cls):
        os.environ["COMMTUNE_FIT_AGE"] = "1ms"
        cls.addClassCleanup(lambda: os.environ.pop("COMMTUNE_FIT_AGE"))
        with contextlib.closing(sqlite3.connect(cls.database)) as connection, connection:
            connection.execute("UPDATE clusters SET newest_facts = json_set(facts, '$.\"host.n2.cpu\"', 'another')")

    def test_answers_say_so(self):
        difference = "cpu of n2: made up when it was fitted, another now"
        plan = self.server.ask("POST", "/v1/plans", {"model": "resnet50", "cluster": "lab"}).json()
        self.assertEqual((plan["stale"], plan["differences"]), (True, [difference]))
        stored = self.server.ask("GET", f"/v1/plans/{plan['id']}").json()
        self.assertEqual(stored["ranking"]["marks"], {"stale": True, "differences": [difference]})
        cluster = self.server.ask("GET", "/v1/clusters/lab").json()
        self.assertEqual((cluster["current_fit"]["stale"], cluster["current_fit"]["differences"]), (True, [difference]))
        self.assertTrue(self.server.ask("GET", "/v1/clusters").json()["rows"][0]["stale"])
        self.assertTrue(self.server.ask("GET", "/v1/clusters/lab/fits").json()["stale"])
        for path in ("scaling?most=2", "servers?most=2", "phase-map?workers=2&bandwidth_scales=1"):
            what_if = self.server.ask("GET", f"/v1/{path}&model=resnet50&cluster=lab").json()
            self.assertEqual((what_if["stale"], what_if["differences"]), (True, [difference]), path)

    def test_strict_refuses_a_difference_and_names_it(self):
        body = {"model": "resnet50", "cluster": "lab", "strict": True}
        problem = self.problem(self.server.ask("POST", "/v1/plans", body), 409)
        self.assertIn("cpu of n2: made up when it was fitted, another now", problem["detail"])
        compared = self.server.ask("POST", "/v1/plans", {**body, "candidates": [{"name": "all"}]}).json()
        self.assertEqual((compared["best"], compared["candidates"][0]["answer"]["code"]), (None, "conflict"))
        refusal = self.problem(self.server.ask("POST", "/v1/plans", {**body, "strict": "yes"}), 400)
        self.assertEqual(refusal["pointer"], "/strict")


if __name__ == "__main__":
    unittest.main(verbosity=2)  # the reason of a skip is seen
