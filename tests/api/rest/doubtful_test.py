#!/usr/bin/python3
"""Answers that rest on fits which explain their samples badly say so; without a usable fit there is none."""

import json
import sqlite3
import unittest

from server import ServiceTest


def change_fits(database, change):
    """Changes the stored snapshot by what is called with it."""
    with sqlite3.connect(database) as connection:
        ((fit, text),) = connection.execute("SELECT id, snapshot FROM fits").fetchall()
        snapshot = json.loads(text)
        change(snapshot)
        connection.execute("UPDATE fits SET snapshot = ? WHERE id = ?", (json.dumps(snapshot, separators=(",", ":")), fit))
    connection.close()


def fits_of(measured):
    return [measured[setting] for setting in ("alone", "streamed", "duplex") if setting in measured]


def judge(database, quality, wanted=lambda operation: True):
    """Gives the stored fits of some operations, and those of the links where all are wanted, this quality."""
    def change(snapshot):
        chosen = [each for each in snapshot["operations"] if wanted(each)]
        if len(chosen) == len(snapshot["operations"]):
            chosen += snapshot["links"].values()
        for each in chosen:
            for fit in fits_of(each):
                fit["quality"].update(quality)
    change_fits(database, change)


def make_cheaper(database, factor, operation):
    """So that plans take the road on which this was measured."""
    def change(snapshot):
        for each in snapshot["operations"]:
            for piece in (piece for fit in fits_of(each) for piece in fit["curve"] if each["operation"] == operation):
                piece["alpha_seconds"] *= factor
                piece["beta_seconds_per_byte"] *= factor
    change_fits(database, change)


class StoredBefore(ServiceTest):
    @classmethod
    def prepare(cls):
        judge(cls.database, {"p90_relative": 0.5})

    def test_a_plan_that_was_stored_before_anybody_said_so_says_so(self):
        """The made-up database's first plan carries no word of it: it is told from the stored fit."""
        plan = self.server.ask("GET", "/v1/plans/1")
        self.fits({"$ref": "#/components/schemas/PlanDetail"}, plan.json())
        self.assertEqual(plan.json()["ranking"]["answer"]["doubtful"], [])
        self.assertTrue(plan.json()["doubtful"])
        through_servers = plan.json()["plan"]["road"]["kind"] == "parameter-server"
        behind_it = ("link", "push", "pull") if through_servers else ("link", "all-reduce")
        for fit in plan.json()["doubtful"]:
            self.assertTrue(fit["fit"].startswith(behind_it), fit)
            self.assertEqual(fit["p90_relative"], 0.5)


class Doubtful(ServiceTest):
    @classmethod
    def prepare(cls):
        judge(cls.database, {"p90_relative": 0.5}, lambda operation: operation["operation"] == "all-reduce")

    def test_an_answer_names_the_doubtful_fits_and_what_rests_on_them(self):
        answer = self.server.ask("POST", "/v1/plans", {"model": "resnet50", "cluster": "lab"})
        self.assertEqual(answer.status, 201)
        self.fits({"$ref": "#/components/schemas/PlanAnswer"}, answer.json())
        doubtful = answer.json()["doubtful"]
        self.assertEqual(len(doubtful), 2)  # alone and streamed
        for fit in doubtful:
            self.assertIn("all-reduce", fit["fit"])
            self.assertEqual(fit["p90_relative"], 0.5)
            self.assertIn("wfbp-a2a", fit["methods"])
        noted = any("doubtful fit" in note for note in answer.json()["notes"])
        self.assertEqual(noted, answer.json()["method"] in doubtful[0]["methods"])

    def test_the_bound_comes_with_the_edge_of_the_doubt(self):
        answer = self.server.ask("POST", "/v1/plans", {"model": "resnet50", "cluster": "lab"}).json()
        self.assertLess(answer["bound_low_seconds"], answer["bound_seconds"])
        without = self.server.ask("POST", "/v1/plans", {"model": "resnet50", "cluster": "lab", "draws": 0}).json()
        self.assertNotIn("bound_low_seconds", without)


class DoubtfulServers(ServiceTest):
    @classmethod
    def prepare(cls):
        judge(cls.database, {"p90_relative": 0.5}, lambda operation: operation["operation"] == "push-pull")
        make_cheaper(cls.database, 0.2, "push-pull")

    def test_a_ring_that_was_measured_rests_on_no_fit_of_servers(self):
        answer = self.server.ask("POST", "/v1/plans", {"model": "resnet50", "cluster": "lab"}).json()
        self.assertTrue(answer["doubtful"])
        for fit in answer["doubtful"]:
            self.assertIn("push-pull", fit["fit"])
            self.assertNotIn("wfbp-a2a", fit["methods"])


class Unusable(ServiceTest):
    @classmethod
    def prepare(cls):
        judge(cls.database, {"median_relative": 0.6, "p90_relative": 2.0, "r_squared": -0.2})

    def test_nothing_is_ranked_without_a_usable_fit(self):
        for method, path, body in (
            ("POST", "/v1/plans", {"model": "resnet50", "cluster": "lab"}),
            ("GET", "/v1/scaling?model=resnet50&cluster=lab&most=4", None),
        ):
            with self.subTest(path):
                problem = self.problem(self.server.ask(method, path, body), 422)
                self.assertIn("poor_fit", json.dumps(problem))
                self.assertIn("probe it again", problem["detail"])

    def test_a_candidate_without_a_usable_fit_is_unknown(self):
        asked = {"model": "resnet50", "cluster": "lab", "candidates": [{"name": "both"}]}
        (candidate,) = self.server.ask("POST", "/v1/plans", asked).json()["candidates"]
        self.assertEqual((candidate["answer"]["status"], candidate["answer"]["code"]), ("unknown", "poor_fit"))


if __name__ == "__main__":
    unittest.main()
