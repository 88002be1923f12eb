"""Mutated requests to a running `tune serve`: no answer may be a 5xx, none may be missing, the service lives on."""

import http.client
import json
import random
import socket
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "api" / "rest"))
from server import description, example_path, operations  # noqa: E402

SILENCE_SECONDS = 120  # after which a request counts as held up for ever; sanitizers on a loaded machine are slow
CHARACTERS = b'0123456789{}[]",:-eE.nulltrue/?&=%\\ \x00\x7f\xc3\xff'
# What these would start: event streams that do not end, and probes and runs of hosts that are made up.
LEFT_OUT = ("followEvents", "startProbe", "runPlan", "resumeJob")


class Broken(Exception):
    """What was wrong with an answer, and the request as it was sent."""

    def __init__(self, what, request):
        super().__init__(f"{what}: {request[:600]!r}")
        self.request = request


def seeds():
    """(method, path, body) of every route's examples."""
    document = description()
    found = []
    for method, path, operation, parameters in operations(document):
        if operation["operationId"] in LEFT_OUT:
            continue
        where = example_path(document, path, parameters).encode()
        content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
        bodies = [json.dumps(each["value"]).encode() for each in content.get("examples", {}).values()]
        found += [(method.encode(), where, body) for body in bodies or [b""]]
    return found


def mutated(text, chance, most=4):
    text = bytearray(text)
    for _ in range(chance.randrange(most)):
        at = chance.randrange(len(text) + 1)
        kind = chance.randrange(4)
        if kind == 0 and at < len(text):
            text[at] = chance.choice(CHARACTERS)
        elif kind == 1:
            del text[at:at + chance.randrange(1, 5)]
        elif kind == 2:
            text[at:at] = text[max(0, at - 8):at]
        else:
            text.insert(at, chance.choice(CHARACTERS))
    return bytes(text)


class Client:
    """Sends requests one after the other, on one connection for as long as the service keeps it."""

    def __init__(self, address, token):
        self.head = b"Host: 127.0.0.1\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n" % token.encode()
        host, port = address.rsplit(":", 1)
        self.address = (host.strip("[]"), int(port))
        self.connection = None

    def connect(self):
        return socket.create_connection(self.address, timeout=SILENCE_SECONDS)

    def close(self):
        if self.connection is not None:
            self.connection.close()
        self.connection = None

    def status(self, method, path, body):
        """A request that is framed as it should be, whatever it says."""
        request = (b"%s /%s HTTP/1.1\r\n%sContent-Length: %d\r\n\r\n%s"
                   % (method, bytes(c for c in path.lstrip(b"/") if 32 < c < 127), self.head, len(body), body))
        if self.connection is None:
            self.connection = self.connect()
        try:
            self.connection.sendall(request)
            with http.client.HTTPResponse(self.connection, method=method.decode()) as reply:
                reply.begin()
                if reply.getheader("Content-Type") != "text/event-stream":
                    reply.read()
                if reply.will_close or reply.getheader("Content-Type") == "text/event-stream":
                    self.close()
                return reply.status, request
        except (http.client.HTTPException, OSError) as error:
            raise Broken(f"no answer ({error!r})", request) from error

    def raw(self, request):
        """Whatever bytes: the statuses of all answers until the service hangs up; none is an answer too."""
        with self.connect() as connection:
            received = b""
            try:
                connection.sendall(request)
                connection.shutdown(socket.SHUT_WR)
                while piece := connection.recv(65536):
                    received += piece
            except TimeoutError as error:
                raise Broken("neither an answer nor an end", request) from error
            except OSError:
                pass  # hung up while there was more to read
        return [int(line[9:12]) for line in received.split(b"\r\n") if line.startswith(b"HTTP/1.1 ") and line[9:12].isdigit()]


def throw(address, token, count, seed=1):
    """Sends so many mutated requests and returns how many were answered by 2xx. Raises Broken at the first defect."""
    chance = random.Random(seed)
    start = seeds()
    bodies = [body for _, _, body in start if body]
    client, good = Client(address, token), 0
    for i in range(count):
        method, path, body = chance.choice(start)
        if body and chance.random() < 0.2:
            body = chance.choice(bodies)
        path, body = b"/" + mutated(path[1:], chance, 3), mutated(body, chance, 5) if body else b""
        if i % 16 == 0:
            request = b"%s %s HTTP/1.1\r\n%sContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (method, path, client.head, len(body), body)
            request = mutated(request, chance, 6)
            statuses = client.raw(request)
        else:
            status, request = client.status(method, path, body)
            statuses = [status]
        good += statuses[:1] < [300] and bool(statuses)
        if any(status >= 500 for status in statuses):
            raise Broken(f"answered {statuses}", request)
    client.close()
    return good
