#!/usr/bin/python3
"""Long work: jobs are queued, run as `tune` on the registered hosts, followed, cancelled, and survive the service."""

import http.client
import json
import os
import socket
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from server import PATIENCE_SECONDS, Server

LONG_SECONDS = 3600  # of a probe that does not end by itself while it is looked at


def wait_for_the_probes_lock():
    """Until no probe holds it (probes/host/host_lock.cc): the ranks of one that was ended are still there for a moment."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as lock:
            try:
                return lock.bind("\0commtune-probe")
            except OSError:
                if time.monotonic() > deadline:
                    raise
        time.sleep(0.1)


class Jobs(unittest.TestCase):
    """On this machine with two ranks."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="commtune-jobs-")
        cls.addClassCleanup(cls.folder.cleanup)
        cls.database = Path(cls.folder.name) / "store.db"
        wait_for_the_probes_lock()
        few = ["--budget", "240s", "-e", "64K", "-f", "64", "-n", "2", "--max-iterations", "2"]
        probe = subprocess.run(
            [os.environ["COMMTUNE_E2E_TUNE"], "probe", "--local", "2", *few, "--db", str(cls.database)],
            capture_output=True, text=True, check=False)
        if probe.returncode != 0:
            raise AssertionError(f"tune probe ended with {probe.returncode}: {probe.stderr}")

    def setUp(self):
        wait_for_the_probes_lock()
        self.server = Server(self.database)
        self.addCleanup(lambda: self.server.close())  # the one that there is then

    def act(self, method, path, body=None):
        """What needs the scope operate."""
        return self.server.ask(method, path, body, token=self.server.token)

    def start_probe(self, **request):
        answer = self.act("POST", "/v1/clusters/local/probes", request)
        self.assertEqual(answer.status, 202, answer.body)
        return answer.json()["id"]

    def job(self, job_id):
        return self.server.ask("GET", f"/v1/jobs/{job_id}").json()

    def wait_for(self, job_id, *states):
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            job = self.job(job_id)
            if job["state"] in states:
                return job
            time.sleep(0.1)
        self.fail(f"job {job_id} did not become {states}: {self.job(job_id)}")

    def plan_after_a_probe(self):
        """A plan on a fit that a job has just made; with longer probes where other work disturbs the measurements."""
        for seconds in (1, 5, 25):
            job = self.wait_for(self.start_probe(budget_seconds=seconds, last_bytes=65536), "complete", "failed")
            self.assertEqual(job["state"], "complete", job)
            said = [row["text"] for row in self.server.ask("GET", f"/v1/jobs/{job['id']}/log").json()["rows"]]
            self.assertIn(" probe ", said[0], "the log begins with what was done and ends with what came of it")
            self.assertEqual(said[-1], "complete")
            self.assertEqual(self.server.ask("GET", "/v1/clusters/local").json()["current_fit"]["id"], job["result"]["fit"])
            plan = self.server.ask("POST", "/v1/plans", {"model": "resnet50", "cluster": "local", "overrides": {}}).json()
            if plan["status"] == "planned":
                return plan
        return self.fail(f"no plan on a fit of 25 s: {plan}")

    def test_a_probe_and_a_run_complete_and_are_stored(self):
        plan = self.plan_after_a_probe()
        answer = self.act("POST", f"/v1/plans/{plan['id']}/runs", {"iterations": 2, "warmup": 1})
        run = self.wait_for(answer.json()["id"], "complete", "failed")
        self.assertEqual(run["state"], "complete", run)
        stored = self.server.ask("GET", f"/v1/runs/{run['result']['runs'][0]['run']}").json()
        self.assertEqual((stored["plan"], stored["iterations"]), (plan["id"], 2))

    def test_a_plan_is_verified_by_running(self):
        self.plan_after_a_probe()
        layers = [{"name": f"w{i}", "forward_seconds": 1e-3, "backward_seconds": 2e-3, "update_seconds": 0, "macs_per_sample": 0,
                   "tensors": [{"name": f"w{i}", "bytes": 65536}]} for i in range(4)]
        profile = {"format": "commtune/profile/1", "model": "small", "batch": 1, "data_type": "float32", "layers": layers,
                   "origin": {"how": "derived", "device": "", "source": "a test", "note": ""}}
        body = {"model": profile, "cluster": "local", "draws": 0, "verify": {"plans": 2, "budget_seconds": 5}}
        answer = self.act("POST", "/v1/plans", body)
        self.assertEqual(answer.status, 202, answer.body)
        job = self.wait_for(answer.json()["id"], "complete", "failed")
        self.assertEqual(job["state"], "complete", job)
        result = job["result"]
        plan = self.server.ask("GET", f"/v1/plans/{result['id']}").json()
        self.assertEqual(plan["ranking"]["answer"]["verified"], result["verified"])
        self.assertGreaterEqual(result["verified"]["plans"], 1)
        self.assertEqual(plan["method"], result["chosen"])
        self.assertEqual(plan["ranking"]["runs"], result["runs"])
        for method, runs in result["runs"].items():
            entry = next(each for each in result["ranking"] if each["method"] == method)
            self.assertGreater(entry["measured_seconds"], 0)
            for run in runs:
                self.assertEqual(self.server.ask("GET", f"/v1/runs/{run}").json()["method"], method)

    def test_jobs_of_one_cluster_wait_for_each_other_and_can_be_cancelled(self):
        first, second = self.start_probe(budget_seconds=LONG_SECONDS, fresh=True), self.start_probe(budget_seconds=1)
        self.wait_for(first, "running")
        self.assertEqual(self.job(second)["state"], "queued")
        self.assertEqual(self.act("DELETE", f"/v1/jobs/{second}").json()["state"], "cancelled")
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self.job(first)["progress"] == 0 and time.monotonic() < deadline:
            time.sleep(0.1)
        self.assertGreater(self.job(first)["progress"], 0)
        self.act("DELETE", f"/v1/jobs/{first}")
        self.assertEqual(self.wait_for(first, "cancelled", "failed", "complete")["state"], "cancelled")

    def test_what_ran_when_the_service_was_killed_is_interrupted_and_resumed(self):
        job = self.start_probe(budget_seconds=LONG_SECONDS, fresh=True)
        self.wait_for(job, "running")
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self.server.ask("GET", "/v1/probes?limit=1").json()["rows"][0]["samples"] and time.monotonic() < deadline:
            time.sleep(0.1)
        self.server.kill()
        self.server = Server(self.database)
        self.assertEqual(self.job(job)["state"], "interrupted")
        deadline = time.monotonic() + PATIENCE_SECONDS  # its process notices that its parent is gone
        while self.server.ask("GET", "/v1/probes?limit=1").json()["rows"][0]["state"] == "running" and time.monotonic() < deadline:
            time.sleep(0.1)
        wait_for_the_probes_lock()
        self.assertEqual(self.act("POST", f"/v1/jobs/{job}/resume").status, 202)
        self.wait_for(job, "running")
        self.assertEqual(self.job(job)["attempts"], 2)
        self.act("DELETE", f"/v1/jobs/{job}")
        self.wait_for(job, "cancelled", "complete")

    def test_a_stopping_service_interrupts_its_jobs(self):
        job = self.start_probe(budget_seconds=LONG_SECONDS, fresh=True)
        self.wait_for(job, "running")
        self.server.stop()
        self.server = Server(self.database)
        self.assertEqual(self.job(job)["state"], "interrupted")

    def test_events_tell_how_a_job_goes(self):
        connection = http.client.HTTPConnection(self.server.address, timeout=PATIENCE_SECONDS)
        connection.request("GET", "/v1/events")
        stream = connection.getresponse()
        self.assertEqual(stream.getheader("Content-Type"), "text/event-stream")
        job = self.start_probe(budget_seconds=1, last_bytes=65536)
        states, kind = [], ""
        while not states or states[-1] not in ("complete", "failed"):
            line = stream.readline().decode().strip()
            if line.startswith("event: "):
                kind = line.removeprefix("event: ")
            if line.startswith("data: ") and kind == "job":
                told = json.loads(line.removeprefix("data: "))
                if told["id"] == job:
                    states.append(told["state"])
        connection.close()
        self.assertEqual((states[0], states[-1]), ("queued", "complete"), self.job(job))

    def test_nothing_of_a_request_becomes_a_flag(self):
        for request in ({"hosts": "evil"}, {"budget_seconds": "1s --hosts x"}, {"servers": ["1 -H x"]}, {"fresh": "--fresh"}):
            answer = self.act("POST", "/v1/clusters/local/probes", request)
            self.assertEqual(answer.status, 400, answer.body)
        self.assertEqual(self.act("POST", "/v1/clusters/elsewhere/probes", {}).status, 404)
        for model in ("./resnet50.json", "--fresh", "nothing"):
            answer = self.act("POST", "/v1/clusters/local/probes", {"for": [model]})
            self.assertEqual(answer.status, 404, answer.body)


if __name__ == "__main__":
    unittest.main()
