#!/usr/bin/python3
"""Who may come in, and what a hostile or clumsy client can do."""

import contextlib
import http.client
import json
import os
import select
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from server import PATIENCE_SECONDS, ROOT, Server, ServiceTest, example_path, made_store, operations

sys.path.insert(0, str(ROOT / "tests" / "fuzz"))
import mutations  # noqa: E402


def made_token(database, *flags):
    made = json.loads(subprocess.run(
        [os.environ["COMMTUNE_E2E_TUNE"], "token", "make", "test", "--db", str(database), "--json", *flags],
        check=True, capture_output=True, text=True).stdout)
    return made["id"], made["token"]


class Tokens(ServiceTest):
    flags = ("--require-token", "--rate", "100000", "--log-requests")

    @classmethod
    def prepare(cls):
        cls.tokens = {scope: made_token(cls.database, "--scope", scope)[1] for scope in ("read", "plan", "operate")}
        revoked, cls.revoked = made_token(cls.database, "--scope", "operate")
        subprocess.run([os.environ["COMMTUNE_E2E_TUNE"], "token", "revoke", str(revoked), "--db", str(cls.database)],
                       check=True, capture_output=True)
        _, cls.expired = made_token(cls.database, "--scope", "operate", "--expires", "1ms")
        time.sleep(0.01)

    def test_every_route_refuses_who_may_not(self):
        good = self.tokens["operate"]
        wrong = good[:-1] + ("0" if good[-1] != "0" else "1")
        rank = {"read": 1, "plan": 2, "operate": 3}
        rows = 0
        for method, path, operation, parameters in operations(self.document):
            where = example_path(self.document, path, parameters)
            scope = operation["x-scope"]
            if scope == "none":
                self.assertEqual(self.server.ask(method, where).status, 200)
                continue
            table = [("no token", None, 401), ("wrong", wrong, 401), ("revoked", self.revoked, 401),
                     ("expired", self.expired, 401), ("malformed", "ct_1_", 401), ("empty", "", 401),
                     ("of another id", "ct_999_" + "0" * 64, 401)]
            table += [(f"only {name}", token, 403) for name, token in self.tokens.items() if rank[name] < rank[scope]]
            for name, token, status in table:
                with self.subTest(f"{method} {where}: {name}"):
                    answer = self.server.ask(method, where, token=token)
                    self.problem(answer, status)
                    if status == 401:
                        self.assertIn("Bearer", answer.headers["WWW-Authenticate"])
                    rows += 1
        self.assertGreater(rows, 200)

    def test_each_scope_may_what_it_says(self):
        self.assertEqual(self.server.ask("GET", "/v1/plans", token=self.tokens["read"]).status, 200)
        body = {"model": "resnet50", "cluster": "lab"}
        self.assertIn(self.server.ask("POST", "/v1/plans", body, token=self.tokens["plan"]).status, (200, 201))
        made = self.server.ask("POST", "/v1/tokens", {"name": "x", "scopes": ["read"]}, token=self.tokens["operate"])
        self.assertEqual(made.status, 201)
        secret = made.json()["token"]
        self.assertEqual(self.server.ask("GET", "/v1/plans", token=secret).status, 200)
        self.server.ask("DELETE", f"/v1/tokens/{made.json()['id']}", token=self.tokens["operate"])
        self.problem(self.server.ask("GET", "/v1/plans", token=secret), 401)

    def test_another_address_than_loopback_asks_for_tokens_and_warns_of_plain_text(self):
        open_to_all = Server(self.database, "--allow-plain-http", listen="0.0.0.0:0")
        self.assertEqual(open_to_all.ask("GET", "/v1/plans").status, 401)
        self.assertEqual(open_to_all.ask("GET", "/v1/plans", token=self.tokens["read"]).status, 200)
        self.assertIn("not_encrypted", open_to_all.stop())

    def test_no_secret_is_kept_or_logged(self):
        self.server.ask("GET", "/v1/plans?x=1", token=self.tokens["read"])
        stored = self.database.read_bytes() + self.database.with_suffix(".db-wal").read_bytes()
        for token in self.tokens.values():
            self.assertNotIn(token.rsplit("_", 1)[1].encode(), stored)
        listed = self.server.ask("GET", "/v1/tokens", token=self.tokens["operate"]).body.decode()
        self.assertNotIn("hash", listed)
        self.__class__.said = self.server.stop()
        for token in self.tokens.values():
            self.assertNotIn(token.rsplit("_", 1)[1], self.said)
        self.assertIn("path=\"/v1/plans\"", self.said)
        type(self).setUpClass()


class HostileNetwork(unittest.TestCase):
    """Who listens on the way would read the tokens: off the loopback address they travel encrypted, or not at all."""

    def test_plain_http_off_the_loopback_is_refused_and_the_flag_that_allows_it_named(self):
        for address in ("0.0.0.0:0", "[::]:0", "127.evil.example:0"):
            done = subprocess.run([os.environ["COMMTUNE_E2E_TUNE"], "serve", "--db", ":memory:", "--listen", address],
                                  capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("--allow-plain-http", done.stderr)
            self.assertEqual(done.stdout, "")


class Journal(unittest.TestCase):
    """Others may read what systemd keeps of a service's output: the token of a start is not in it."""

    def greeting(self, stream):
        """What `tune serve` says at its start, where systemd calls that file its journal."""
        with tempfile.TemporaryDirectory() as folder:
            end, output = os.pipe()
            told = os.fstat(output)
            environment = {**os.environ, "XDG_RUNTIME_DIR": folder, "JOURNAL_STREAM": stream or f"{told.st_dev}:{told.st_ino}"}
            with open(end, encoding="utf-8") as said, subprocess.Popen(
                    [os.environ["COMMTUNE_E2E_TUNE"], "serve", "--listen", "127.0.0.1:0", "--db", f"{folder}/store.db"],
                    env=environment, stdout=output, stderr=subprocess.DEVNULL) as process:
                os.close(output)
                text = ""
                while "token file:" not in text:
                    line = said.readline()
                    self.assertTrue(line, text)
                    text += line
                token = (Path(folder) / "commtune" / "token").read_text(encoding="utf-8").strip()
                process.terminate()
                self.assertEqual(process.wait(timeout=PATIENCE_SECONDS), 0)
            return text, token

    def test_has_the_file_of_the_token_and_not_the_token(self):
        text, token = self.greeting(stream=None)
        self.assertNotIn(token, text)
        self.assertNotIn("ct_start_", text)
        self.assertIn("token file:", text)

    def test_is_no_other_output(self):
        text, token = self.greeting(stream="8:1")
        self.assertIn(token, text)


class HostileRuns(ServiceTest):
    """Who has no token could say that every prediction is wrong."""

    @classmethod
    def prepare(cls):
        cls.anybodys, cls.token = (made_token(cls.database, "--scope", scope)[1] for scope in ("plan", "operate"))

    def judged(self):
        lines = self.server.ask("GET", "/metrics").body.decode().splitlines()
        return next(float(line.split()[-1]) for line in lines if line.startswith("commtune_plan_prediction_error_ratio_count"))

    def test_a_run_without_a_token_is_kept_marked_and_judges_no_prediction(self):
        self.kept_and_marked(None)

    def test_a_token_that_may_only_plan_can_be_a_whole_sites_and_attests_nothing(self):
        self.kept_and_marked(self.anybodys)

    def kept_and_marked(self, token):
        before = self.judged()
        answer = self.server.ask("POST", "/v1/runs", {"plan": 1, "iteration_seconds": [900, 901, 902]}, token=token)
        self.assertEqual((answer.status, answer.json()["attested"]), (201, False))
        self.assertEqual(self.judged(), before)
        listed = self.server.ask("GET", "/v1/runs?limit=1").json()["rows"][0]
        self.assertEqual((listed["id"], listed["attested"]), (answer.json()["id"], False))
        shown = subprocess.run([os.environ["COMMTUNE_E2E_TUNE"], "show", "runs", "--limit", "1", "--db", str(self.database)],
                               check=True, capture_output=True, text=True).stdout.splitlines()[1]
        self.assertIn("complete, unattested", shown)
        self.assertNotIn("%", shown, "its error is nobody's")

    def test_a_run_with_a_token_that_may_operate_judges_its_prediction(self):
        before = self.judged()
        answer = self.server.ask("POST", "/v1/runs", {"plan": 1, "iteration_seconds": [0.3, 0.31, 0.32], "workload": "replay"}, token=self.token)
        self.assertEqual((answer.status, answer.json()["attested"]), (201, True))
        self.assertEqual(answer.json()["settings"]["workload"], "replay")
        self.assertEqual(self.judged(), before + 1)


class HostileQuotas(ServiceTest):
    """Who stores without end, until there is no room for anybody else."""

    flags = ("--max-profiles-per-token", "2", "--max-plans-per-token", "2", "--max-runs-per-token", "2", "--max-waiting-jobs-per-token", "0")
    RUN = {"plan": 1, "iteration_seconds": [0.3, 0.31, 0.32]}

    @classmethod
    def prepare(cls):
        cls.greedy, cls.modest = (made_token(cls.database, "--scope", "operate")[1] for _ in range(2))

    def post(self, path, body, token=None):
        return self.server.ask("POST", path, body, token=token)

    def refused(self, path, body, token, flag):
        answer = self.post(path, body, token)
        document = self.problem(answer, 429)
        self.assertEqual(document["code"], "quota_exceeded")
        self.assertIn(flag, document["detail"])
        self.assertNotIn("Retry-After", answer.headers, "waiting deletes nothing")

    def test_plans_of_one_token(self):
        def question(seed):
            return {"model": "resnet50", "cluster": "lab", "draws": 0, "seed": seed}
        for seed in (1, 2):
            self.assertEqual(self.post("/v1/plans", question(seed), self.greedy).status, 201)
        self.refused("/v1/plans", question(3), self.greedy, "--max-plans-per-token")
        self.assertEqual(self.post("/v1/plans", question(1), self.greedy).status, 200)
        self.assertEqual(self.post("/v1/plans", question(3), self.modest).status, 201)

    def test_profiles_of_one_token(self):
        def profile(name):
            layers = [{"name": name, "forward_seconds": 1e-3, "backward_seconds": 2e-3, "tensors": [{"name": name, "bytes": 4096}]}]
            return {"format": "commtune/profile/1", "model": name, "batch": 1, "data_type": "float32", "layers": layers,
                    "origin": {"how": "derived", "device": "", "source": "a test", "note": ""}}
        for name in ("a", "b", "a"):
            self.assertEqual(self.post("/v1/profiles", profile(name), self.greedy).status, 201)
        self.refused("/v1/profiles", profile("c"), self.greedy, "--max-profiles-per-token")
        self.assertEqual(self.post("/v1/profiles", profile("c"), self.modest).status, 201)

    def test_runs_of_all_who_have_no_token_and_room_that_pruning_makes(self):
        for _ in range(2):
            self.assertEqual(self.post("/v1/runs", self.RUN).status, 201)
        self.refused("/v1/runs", self.RUN, None, "--max-runs-per-token")
        self.refused("/v1/runs", self.RUN, "ct_start_" + "0" * 64, "--max-runs-per-token")
        self.assertEqual(self.post("/v1/runs", self.RUN, self.modest).status, 201)
        subprocess.run([os.environ["COMMTUNE_E2E_TUNE"], "store", "prune", "--keep", "1", "--db", str(self.database)],
                       check=True, capture_output=True)
        self.assertEqual(self.post("/v1/runs", self.RUN).status, 201)

    def test_jobs_that_would_have_to_wait(self):
        self.refused("/v1/clusters/lab/probes", {"budget_seconds": 1}, self.greedy, "--max-waiting-jobs-per-token")
        self.assertEqual(self.server.ask("GET", "/v1/jobs").json()["rows"], [])

    def test_a_refusal_is_not_kept_under_its_key(self):
        headers = {"Idempotency-Key": "again", "Authorization": f"Bearer {self.modest}"}
        self.problem(self.server.ask("POST", "/v1/clusters/lab/probes", {}, headers), 429)
        self.problem(self.server.ask("POST", "/v1/clusters/lab/probes", {}, headers), 429)


class HostileQuestions(ServiceTest):
    """Who asks for what computes for ever: a thousand times as long as a millisecond, here."""

    flags = ("--plan-time", "1ms")

    def test_a_plan_that_takes_too_long_is_incomplete_or_refused_and_never_given_again(self):
        layers = [{"name": f"w{i}", "forward_seconds": 1e-5, "backward_seconds": 2e-5, "update_seconds": 0, "macs_per_sample": 0,
                   "tensors": [{"name": f"w{i}", "bytes": 4096 * (1 + i % 7)}]} for i in range(3000)]
        profile = {"format": "commtune/profile/1", "model": "endless", "batch": 1, "data_type": "float32", "layers": layers,
                   "origin": {"how": "derived", "device": "", "source": "a test", "note": ""}}
        for _ in range(2):
            answer = self.server.ask("POST", "/v1/plans", {"model": profile, "cluster": "lab"})
            if answer.status == 503:
                self.assertEqual(self.problem(answer, 503)["code"], "timeout")
                self.assertEqual(answer.headers["Retry-After"], "1")
                continue
            self.fits({"$ref": "#/components/schemas/PlanReply"}, answer.json())
            self.assertEqual((answer.json()["complete"], answer.json()["cached"]), (False, False))


class StartToken(ServiceTest):
    """What `tune serve` prints at its start."""

    def test_it_may_all_and_is_kept_for_its_user_only_until_the_end(self):
        kept = Path(self.folder.name) / "commtune" / "token"
        self.assertEqual(kept.read_text(encoding="ascii").strip(), self.server.token)
        self.assertEqual(kept.stat().st_mode & 0o777, 0o600)
        self.assertEqual(kept.parent.stat().st_mode & 0o777, 0o700)
        for method, path, status in (("GET", "/v1/tokens", 200), ("POST", "/v1/clusters/lab/probes", 202)):
            self.assertEqual(self.server.ask(method, path, {} if method == "POST" else None, token=self.server.token).status, status)
        secret = self.server.token.rsplit("_", 1)[1].encode()
        for file in Path(self.folder.name).glob("store.db*"):
            self.assertNotIn(secret, file.read_bytes())
        said = self.server.stop()
        self.assertNotIn(secret.decode(), said)
        self.assertFalse(kept.exists())
        type(self).server = Server(self.database)

    def test_the_address_of_the_dashboard_has_it_in_its_fragment(self):
        if self.server.dashboard is None:
            self.skipTest("this program was built without the dashboard")
        self.assertEqual(self.server.dashboard, f"{self.server.url}/#token={self.server.token}")

    def test_an_earlier_one_is_as_good_as_none(self):
        old = "ct_start_" + "0" * 64
        self.assertEqual(self.server.ask("GET", "/v1/plans", token=old).status, 200)
        self.assertEqual(self.server.ask("GET", "/v1/tokens", token=old).status, 401)

    def test_there_is_none_where_none_is_wanted(self):
        without = Server(self.database, "--no-start-token", environment={"XDG_RUNTIME_DIR": self.folder.name + "/none"})
        self.addCleanup(without.close)
        self.assertEqual(without.ask("GET", "/v1/plans").status, 200)
        self.assertFalse((Path(self.folder.name) / "none").exists())

    def test_a_service_starts_also_where_the_token_cannot_be_kept(self):
        (Path(self.folder.name) / "file").write_text("no folder", encoding="ascii")
        elsewhere = Server(self.database, environment={"XDG_RUNTIME_DIR": self.folder.name + "/file"})
        self.assertEqual(elsewhere.ask("GET", "/v1/tokens", token=elsewhere.token).status, 200)
        self.assertIn("token_not_kept", elsewhere.stop())


class HostileNeighbour(ServiceTest):
    """Another user of the same login node, on whose loopback address the service is as well."""

    def refused(self, method, path, body=None, token=None):
        before = self.server.ask("GET", "/v1/jobs?limit=1000").json()["rows"]
        self.problem(self.server.ask(method, path, body, token=token), 401)
        self.assertEqual(self.server.ask("GET", "/v1/jobs?limit=1000").json()["rows"], before)

    def test_no_route_that_acts_answers_without_a_token(self):
        acting = [(method, path, parameters) for method, path, operation, parameters in operations(self.document) if operation["x-scope"] == "operate"]
        self.assertGreater(len(acting), 5)
        for method, path, parameters in acting:
            with self.subTest(f"{method} {path}"):
                self.refused(method, example_path(self.document, path, parameters))

    def test_a_probe_is_not_started(self):
        self.refused("POST", "/v1/clusters/lab/probes", {"budget_seconds": 1})

    def test_a_token_is_not_made(self):
        self.refused("POST", "/v1/tokens", {"name": "mine", "scopes": ["operate"]})

    def test_a_guessed_token_of_the_start_does_not_act(self):
        for guess in ("ct_start_", "ct_start_" + "0" * 64, self.server.token[:-1], self.server.token + "0"):
            self.refused("POST", "/v1/clusters/lab/probes", {}, token=guess)

    def test_he_may_look_and_plan(self):
        self.assertEqual(self.server.ask("GET", "/v1/plans").status, 200)
        self.assertIn(self.server.ask("POST", "/v1/plans", {"model": "resnet50", "cluster": "lab"}).status, (200, 201))


class UnixSocketTest(unittest.TestCase):
    """`--listen unix:PATH`, in a folder that everybody can enter."""

    def serve(self, *flags):
        folder = tempfile.TemporaryDirectory(prefix="commtune-unix-")
        self.addCleanup(folder.cleanup)
        os.chmod(folder.name, 0o755)
        self.path = Path(folder.name) / "socket"
        server = Server(made_store(Path(folder.name) / "store.db"), *flags, listen=f"unix:{self.path}")
        self.addCleanup(server.close)
        return server

    def status_of_another_user(self):
        asked = ("import http.client, socket, sys; c = http.client.HTTPConnection('localhost'); c.sock = socket.socket(socket.AF_UNIX); "
                 "c.sock.connect(sys.argv[1]); c.request('GET', '/v1/plans'); print(c.getresponse().status)")
        return subprocess.run(["/usr/bin/python3", "-c", asked, str(self.path)], capture_output=True, text=True, check=False,
                              timeout=PATIENCE_SECONDS, user=65534, group=65534, extra_groups=[], cwd="/").stdout.strip()


class UnixSocket(UnixSocketTest):
    def test_it_is_answered_as_the_loopback_address(self):
        server = self.serve()
        self.assertEqual(server.url, f"unix:{self.path}")
        self.assertEqual(self.path.stat().st_mode & 0o777, 0o600)
        self.assertEqual(server.ask("GET", "/v1/plans").status, 200)
        self.assertEqual(server.ask("POST", "/v1/clusters/lab/probes", {}).status, 401)
        self.assertEqual(server.ask("POST", "/v1/clusters/lab/probes", {}, token=server.token).status, 202)
        self.assertEqual(server.ask("GET", "/v1/plans", headers={"Host": "evil.example"}).status, 403)
        server.stop()
        self.assertFalse(self.path.exists())

    def test_flags_of_a_socket_without_one_are_refused(self):
        done = subprocess.run([os.environ["COMMTUNE_E2E_TUNE"], "serve", "--db", ":memory:", "--socket-mode", "0660"],
                              capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("only with --listen unix:PATH", done.stderr)


@unittest.skipUnless(os.geteuid() == 0, "needs root, to act as another user")
class HostileUser(UnixSocketTest):
    def test_a_user_who_is_not_allowed_is_refused_also_where_the_mode_lets_him_in(self):
        self.serve("--socket-mode", "0666")
        self.assertEqual(self.status_of_another_user(), "403")

    def test_a_user_whom_the_mode_keeps_out_does_not_connect(self):
        self.serve("--allow-user", "nobody")
        self.assertEqual(self.status_of_another_user(), "")

    def test_a_user_who_is_allowed_may_look_but_not_act(self):
        server = self.serve("--socket-mode", "0666", "--allow-user", "nobody")
        self.assertEqual(self.status_of_another_user(), "200")
        self.assertEqual(server.ask("GET", "/v1/jobs").json()["rows"], [])


class Rate(ServiceTest):
    flags = ("--require-token", "--rate", "0.01")

    @classmethod
    def prepare(cls):
        cls.token = made_token(cls.database, "--scope", "read")[1]

    def test_a_token_that_asks_too_often_waits(self):
        first, second = (self.server.ask("GET", "/v1/version", token=self.token) for _ in range(2))
        self.assertEqual(first.status, 200)
        self.problem(second, 429)
        self.assertTrue(0 < int(second.headers["Retry-After"]) <= 100, second.headers)


class RawTest(ServiceTest):
    """Bytes as they are, over a socket."""

    def raw(self, text):
        with socket.create_connection(self.server.address.split(":"), timeout=PATIENCE_SECONDS) as client:
            client.sendall(text if isinstance(text, bytes) else text.encode())
            received = b""
            while True:
                piece = client.recv(65536)
                if not piece:
                    return received
                received += piece

    def status(self, text):
        answer = self.raw(text)
        return int(answer.split()[1]) if answer.startswith(b"HTTP/1.1 ") else 0


class HostileHost(RawTest):
    """A page of another site lets its name point here (DNS rebinding): no such name is answered without a token."""

    def asked_as(self, host, path="/v1/plans"):
        return self.status(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")

    def test_names_of_this_machine_are_answered(self):
        for host in ("127.0.0.1", "127.0.0.1:8080", "LOCALHOST", "localhost.", "localhost:1", "[::1]", "[::1]:80", "127.8.9.10"):
            self.assertEqual(self.asked_as(host), 200, host)

    def test_a_name_that_begins_with_127_is_refused(self):
        self.assertEqual(self.asked_as("127.evil.example"), 403)

    def test_a_name_that_begins_with_the_whole_address_is_refused(self):
        self.assertEqual(self.asked_as("127.0.0.1.evil.example:80"), 403)

    def test_a_name_that_begins_with_localhost_is_refused(self):
        self.assertEqual(self.asked_as("localhost.evil.example"), 403)

    def test_a_short_form_of_the_address_is_refused(self):
        self.assertEqual(self.asked_as("127.1"), 403)

    def test_the_address_written_as_version_6_is_refused(self):
        self.assertEqual(self.asked_as("[::ffff:127.0.0.1]"), 403)

    def test_a_malformed_name_is_refused(self):
        self.assertEqual(self.asked_as("127.0.0.1:80@evil.example"), 403)

    def test_the_dashboards_page_is_refused_too(self):
        self.assertEqual(self.asked_as("127.evil.example", "/"), 403)


class HostileHead(RawTest):
    """Bytes in which a proxy in front could read another request than we do (request smuggling): refused, whole connections."""

    HOST = "Host: 127.0.0.1\r\n"
    BODY = "Content-Type: application/json\r\n"
    SECOND = "GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"

    def refused(self, first, status=400):
        """The request and one that is hidden behind it get one answer, after which the connection ends."""
        received = self.raw(first + self.SECOND)
        statuses = [int(line[9:12]) for line in received.split(b"\r\n") if line.startswith(b"HTTP/1.1 ")]
        self.assertEqual(statuses, [status], received[:400])
        self.assertIn(b"\r\nConnection: close\r\n", received)
        self.assertEqual(self.server.ask("GET", "/livez").status, 200)

    def post(self, lines, body="{}"):
        return f"POST /v1/plans HTTP/1.1\r\n{self.HOST}{self.BODY}{lines}\r\n{body}"

    def test_two_lengths(self):
        self.refused(self.post("Content-Length: 2\r\nContent-Length: 100\r\n"))

    def test_the_same_length_twice(self):
        self.refused(self.post("Content-Length: 2\r\nContent-Length: 2\r\n"))

    def test_two_lengths_in_one_line(self):
        self.refused(self.post("Content-Length: 2, 2\r\n"))

    def test_a_length_with_chunked(self):
        self.refused(self.post("Content-Length: 100\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"))

    def test_chunked_with_a_length(self):
        self.refused(self.post("Transfer-Encoding: chunked\r\nContent-Length: 2\r\n", "2\r\n{}\r\n0\r\n\r\n"))

    def test_chunked_in_another_spelling_with_a_length(self):
        self.refused(self.post("Transfer-Encoding: xchunked\r\nContent-Length: 2\r\n"))

    def test_chunks_are_not_read(self):
        self.refused(self.post("Transfer-Encoding: chunked\r\n", "0\r\n\r\n"), 411)

    def test_a_signed_length(self):
        self.refused(self.post("Content-Length: +2\r\n"))

    def test_a_bare_line_feed_after_a_header(self):
        self.refused(f"GET /livez HTTP/1.1\r\n{self.HOST}X: 1\nContent-Length: 100\r\n\r\n")

    def test_a_head_of_bare_line_feeds(self):
        self.refused("GET /livez HTTP/1.1\nHost: 127.0.0.1\n\n")

    def test_a_bare_carriage_return(self):
        self.refused(f"GET /livez HTTP/1.1\r\n{self.HOST}X: 1\rContent-Length: 100\r\n\r\n")

    def test_a_folded_line(self):
        self.refused(self.post("X: 1\r\n Content-Length: 100\r\nContent-Length: 2\r\n"))

    def test_a_space_before_the_colon(self):
        self.refused(self.post("Content-Length : 100\r\nContent-Length: 2\r\n"))

    def test_a_space_before_the_colon_of_a_coding(self):
        self.refused(self.post("Transfer-Encoding : chunked\r\nContent-Length: 2\r\n"))

    def test_a_nul_in_a_value(self):
        self.refused(f"GET /livez HTTP/1.1\r\n{self.HOST}X: a\0b\r\n\r\n")

    def test_a_nul_in_the_path(self):
        self.refused(f"GET /livez\0x HTTP/1.1\r\n{self.HOST}\r\n")

    def test_two_hosts(self):
        self.refused(f"GET /v1/plans HTTP/1.1\r\n{self.HOST}Host: evil.example\r\n\r\n")

    def test_no_host(self):
        self.refused("GET /v1/plans HTTP/1.1\r\n\r\n")

    def test_a_body_that_was_refused_is_no_request(self):
        hidden = self.SECOND
        self.refused(f"POST /v1/plans HTTP/1.1\r\n{self.HOST}Content-Type: text/plain\r\nContent-Length: {len(hidden)}\r\n\r\n{hidden}", 415)

    def test_a_body_of_a_get_is_no_request(self):
        hidden = self.SECOND
        received = self.raw(f"GET /readyz HTTP/1.1\r\n{self.HOST}{self.BODY}Content-Length: {len(hidden)}\r\n\r\n{hidden}")
        self.assertEqual(received.count(b"HTTP/1.1 "), 1, received[:400])


class Clients(RawTest):
    flags = ("--max-body", "64K", "--max-connections", "200", "--compute-time", "30s")

    def wait_for_live(self, status):
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (got := self.status("GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")) != status:
            self.assertLess(time.monotonic(), deadline, f"/livez still answers {got}")
            time.sleep(0.05)

    @staticmethod
    def one_is_told(clients, status, seconds=2):
        """Whether one of them has or gets such an answer; takes out those that were answered or closed."""
        deadline = time.monotonic() + seconds
        while clients and (left := deadline - time.monotonic()) > 0:
            poll = select.poll()
            by_number = {client.fileno(): client for client in clients}
            for number in by_number:
                poll.register(number, select.POLLIN)
            for number, _ in poll.poll(left * 1000):
                client = by_number[number]
                clients.remove(client)
                with client, contextlib.suppress(ConnectionError):
                    if client.recv(64).startswith(f"HTTP/1.1 {status} ".encode()):
                        return True
        return False

    def alive(self):
        self.assertEqual(self.server.ask("GET", "/livez").status, 200)

    def test_limits_have_their_answers(self):
        head = "Host: 127.0.0.1\r\nConnection: close\r\n"
        json_head = head + "Content-Type: application/json\r\n"
        cases = {
            "body": (f"POST /v1/plans HTTP/1.1\r\n{json_head}Content-Length: 70000\r\n\r\n", 413),
            "length": (f"POST /v1/plans HTTP/1.1\r\n{json_head}Content-Length: -1\r\n\r\n", 400),
            "two lengths": (f"POST /v1/plans HTTP/1.1\r\n{json_head}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{{}}", 400),
            "chunks": (f"POST /v1/plans HTTP/1.1\r\n{json_head}Transfer-Encoding: chunked\r\n\r\n2\r\n{{}}\r\n0\r\n\r\n", 411),
            "coding": (f"POST /v1/plans HTTP/1.1\r\n{json_head}Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{{}}", 415),
            "form": (f"POST /v1/plans HTTP/1.1\r\n{head}Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n{{}}", 415),
            "path": (f"GET /{'x' * 9000} HTTP/1.1\r\n{head}\r\n", 414),
            "headers": (f"GET / HTTP/1.1\r\n{head}X: {'y' * 20000}\r\n\r\n", 431),
            "host": ("GET /v1/plans HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", 403),
            "origin": ("GET /v1/plans HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://evil.example\r\nConnection: close\r\n\r\n", 403),
            "method": (f"BREW /v1/plans HTTP/1.1\r\n{head}\r\n", 405),
            "no http": ("hello\r\n\r\n", 400),
            "nesting": (f"POST /v1/plans HTTP/1.1\r\n{json_head}Content-Length: 2000\r\n\r\n{'[' * 1000}{']' * 1000}", 400),
        }
        for name, (text, status) in cases.items():
            with self.subTest(name):
                self.assertEqual(self.status(text), status)
        self.alive()

    def test_answers_carry_what_keeps_browsers_careful(self):
        headers = self.server.ask("GET", "/v1/plans").headers
        self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
        self.assertEqual(headers["X-Frame-Options"], "DENY")
        self.assertIn("Content-Security-Policy", headers)
        self.assertNotIn("Access-Control-Allow-Origin", headers)

    def test_a_connection_goes_on_after_a_refusal(self):
        connection = http.client.HTTPConnection(self.server.address, timeout=PATIENCE_SECONDS)
        for path, status in (("/none", 404), ("/livez", 200), ("/v1/plans?limit=x", 400), ("/livez", 200)):
            connection.request("GET", path)
            reply = connection.getresponse()
            reply.read()
            self.assertEqual(reply.status, status)
        connection.close()

    def test_too_many_connections_are_told_so_and_idle_ones_make_room(self):
        clients, deadline = [], time.monotonic() + PATIENCE_SECONDS
        try:
            # Those that say nothing are given up after a second where it is crowded: enough have to come in that time.
            while not self.one_is_told(clients, 503):
                self.assertLess(time.monotonic(), deadline, "nobody was told that there are too many")
                clients += [socket.create_connection(self.server.address.split(":")) for _ in range(260)]
            self.wait_for_live(200)
        finally:
            for client in clients:
                client.close()
        self.wait_for_live(200)

    def test_mutated_requests_are_answered_without_a_defect(self):
        self.assertGreater(mutations.throw(self.server.address, self.server.token, 1000), 30, "most mutations are small, some still mean something")
        self.alive()


class Tls(ServiceTest):
    @classmethod
    def prepare(cls):
        cls.certificate, key = Path(cls.folder.name) / "cert.pem", Path(cls.folder.name) / "key.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1",
                        "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(cls.certificate)],
                       check=True, capture_output=True)
        cls.flags = ("--tls-cert", str(cls.certificate), "--tls-key", str(key))

    def test_answers_are_encrypted_and_plain_text_is_not_answered(self):
        self.assertTrue(self.server.url.startswith("https://"))
        connection = http.client.HTTPSConnection(self.server.address, timeout=PATIENCE_SECONDS, context=ssl.create_default_context(cafile=self.certificate))
        for _ in range(3):
            connection.request("POST", "/v1/plans", json.dumps({"model": "resnet50", "cluster": "lab"}), {"Content-Type": "application/json"})
            reply = connection.getresponse()
            self.assertEqual(json.loads(reply.read())["status"], "planned")
        self.assertIn("max-age", reply.getheader("Strict-Transport-Security"))
        connection.close()
        with socket.create_connection(self.server.address.split(":"), timeout=PATIENCE_SECONDS) as plain:
            plain.sendall(b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            try:
                self.assertNotIn(b"200 OK", plain.recv(4096))
            except ConnectionError:
                pass

    def test_a_key_of_another_certificate_is_refused(self):
        done = subprocess.run([os.environ["COMMTUNE_E2E_TUNE"], "serve", "--db", str(self.database), "--listen", "127.0.0.1:0",
                               "--tls-cert", str(self.certificate), "--tls-key", str(self.database)], capture_output=True, text=True, timeout=PATIENCE_SECONDS)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("--tls-key", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)  # the reason of a skip is seen
