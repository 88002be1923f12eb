"""A running `tune serve` with a database of its own, and a client that checks answers against openapi.yaml."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import unittest
from pathlib import Path

import jsonschema
import yaml

ROOT = Path(__file__).resolve().parents[3]
PATIENCE_SECONDS = 240  # for what takes no time at all, except on a slow machine under load


def description():
    return yaml.safe_load((ROOT / "api" / "openapi.yaml").read_text(encoding="utf-8"))


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body
        self.type = headers.get("Content-Type", "").split(";")[0]

    def json(self):
        return json.loads(self.body)


class LocalConnection(http.client.HTTPConnection):
    """Over a Unix socket."""

    def __init__(self, path):
        super().__init__("localhost", timeout=PATIENCE_SECONDS)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Server:
    """`tune serve` on a free port. Stop it with stop() or kill(), or have close() do it when a test is cleaned up: each fails
    if the service had ended by itself, as a sanitizer ends it, or does not end as it should. Its `token` is the one of this
    start, which may all."""

    def __init__(self, database, *flags, environment=None, listen="127.0.0.1:0"):
        self.process = subprocess.Popen(
            [os.environ["COMMTUNE_E2E_TUNE"], "serve", "--listen", listen, "--db", str(database),
             *(() if "--compute-time" in flags else ("--compute-time", f"{PATIENCE_SECONDS}s")), *flags],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # The token of this start is kept beside the database, not where the user's own service keeps its.
            env={**os.environ, "XDG_RUNTIME_DIR": str(Path(database).parent), **(environment or {})},
        )
        line = self.process.stdout.readline()
        if not line.startswith("listening on "):
            raise RuntimeError(f"tune serve: {line}{self.process.stderr.read()}")
        self.url = line.split()[-1]
        self.address = self.url.split("//")[-1]
        self.stopped = False
        self.dashboard = None  # its address, where there is one
        self.token = self._start_token() if "--no-start-token" not in flags else None

    def _start_token(self):
        """In the dashboard's address, or on the line below where there is no dashboard."""
        for _ in range(2):
            line = self.process.stdout.readline()
            found = re.search("ct_start_[0-9a-f]{64}", line)
            if found:
                self.dashboard = line.split()[-1] if line.startswith("dashboard:") else None
                return found[0]
        raise RuntimeError("tune serve: printed no token of its start")

    def ask(self, method, path, body=None, headers=None, token=None):
        local = self.address.startswith("unix:")
        connection = LocalConnection(self.address.removeprefix("unix:")) if local else http.client.HTTPConnection(self.address, timeout=PATIENCE_SECONDS)
        try:
            headers = dict(headers or {})
            if token is not None:
                headers["Authorization"] = f"Bearer {token}"
            if body is not None and not isinstance(body, (bytes, str)):
                body = json.dumps(body)
            if body is not None:
                headers.setdefault("Content-Type", "application/json")
            connection.request(method, path, body, headers)
            reply = connection.getresponse()
            return Answer(reply.status, dict(reply.getheaders()), reply.read())
        finally:
            connection.close()

    def kill(self):
        return self._end(signal.SIGKILL, -signal.SIGKILL)

    def stop(self):
        return self._end(signal.SIGTERM, 0)

    def close(self):
        if not self.stopped:
            self.stop()

    def _end(self, how, status):
        """What it said on standard error."""
        self.stopped = True
        early = self.process.poll()
        self.process.send_signal(how)
        try:
            said = self.process.communicate(timeout=PATIENCE_SECONDS)[1]
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError(f"tune serve: {signal.Signals(how).name} did not end it\n{self.process.communicate()[1]}") from None
        if early is not None:
            raise AssertionError(f"tune serve ended by itself, exit status {early}\n{said}")
        if self.process.returncode != status:
            raise AssertionError(f"tune serve: exit status {self.process.returncode} after {signal.Signals(how).name}, must be {status}\n{said}")
        return said


def made_store(path, plans=0, runs=0):
    subprocess.run([os.environ["COMMTUNE_MADE_STORE"], str(path), str(plans), str(runs)], check=True)
    return path


class ServiceTest(unittest.TestCase):
    """A service on a made-up cluster for all tests of a class."""

    flags = ()

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="commtune-rest-")
        cls.addClassCleanup(cls.folder.cleanup)
        cls.database = made_store(Path(cls.folder.name) / "store.db")
        cls.prepare()
        cls.server = Server(cls.database, *cls.flags)
        cls.addClassCleanup(lambda: cls.server.close())  # the one that there is then: tests start others
        cls.document = description()
        cls.resolver = jsonschema.RefResolver("", cls.document)

    @classmethod
    def prepare(cls):
        """Before the service starts."""

    def fits(self, schema, value, what=""):
        errors = list(jsonschema.Draft202012Validator(schema, resolver=self.resolver).iter_errors(value))
        self.assertEqual([f"{what}: {list(e.absolute_path)}: {e.message[:300]}" for e in errors], [])

    def problem(self, answer, status):
        self.assertEqual(answer.status, status, answer.body[:500])
        self.assertEqual(answer.type, "application/problem+json")
        document = answer.json()
        self.fits({"$ref": "#/components/schemas/Problem"}, document)
        self.assertEqual(document["status"], status)
        return document


def operations(document):
    """(method, path, operation with the path's parameters)"""
    for path, item in document["paths"].items():
        for method in ("get", "post", "delete"):
            if method in item:
                yield method.upper(), path, item[method], item.get("parameters", []) + item[method].get("parameters", [])


def resolved(document, node):
    while "$ref" in node:
        target = document
        for part in node["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        node = target
    return node


def example_path(document, path, parameters):
    """The path with each parameter's example."""
    query = []
    for parameter in (resolved(document, each) for each in parameters):
        if parameter["in"] == "path":
            path = path.replace("{" + parameter["name"] + "}", str(parameter["example"]))
        elif parameter["in"] == "query" and "example" in parameter:
            query.append(f"{parameter['name']}={parameter['example']}".replace(" ", "%20"))
    return path + ("?" + "&".join(query) if query else "")
