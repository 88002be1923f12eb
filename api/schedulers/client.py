# ---- what both helpers know of the service; written into each of them when commtune is built ----

import http.client
import ipaddress
import json
import os
import re
import ssl
import stat
import threading
import urllib.error
import urllib.request

# Exact names (api/export/variables.txt). Whoever answers must not choose what runs in the job.
VARIABLES = frozenset("@COMMTUNE_VARIABLES@".split())
SETTINGS = "/etc/commtune/slurm.conf"
LONGEST_ANSWER = 32 << 20  # bytes


class NoAnswer(Exception):
    """Nobody answers, the answer is a refusal, or a setting is not as it must be; says why."""


class Settings:
    """COMMTUNE_* of the environment, else of SETTINGS. Read once, so that no answer can change them."""

    def __init__(self):
        self.values = {}
        try:
            with open(SETTINGS, encoding="utf-8", errors="replace") as file:
                lines = file.read().splitlines()
        except OSError:
            lines = []
        for line in lines:
            name, equals, value = line.strip().removeprefix("export ").partition("=")
            if equals and name.startswith("COMMTUNE_"):
                self.values[name] = value.strip("\"'")
        self.values.update((name, value) for name, value in os.environ.items() if name.startswith("COMMTUNE_"))

    def get(self, name, otherwise=None):
        return self.values.get(name) or otherwise

    def seconds(self):
        text = self.get("COMMTUNE_SECONDS", "2")
        if not re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,6})?", text) or float(text) <= 0:
            raise NoAnswer(f"COMMTUNE_SECONDS={one_line(text)}: must be a number of seconds above 0, such as 2 or 0.5")
        return float(text)


def one_line(text, most=300):
    """Text of others as one printable line: a line break would begin a new command of the prolog's."""
    return "".join(c if " " <= c <= "~" else "?" for c in str(text))[:most]


def is_loopback(host):
    if host.rstrip(".").lower() == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address in ipaddress.ip_network("127.0.0.0/8") if address.version == 4 else address == ipaddress.ip_address("::1")


class Address:
    """Where the service is."""

    def __init__(self, settings):
        self.url = settings.get("COMMTUNE_URL", "http://127.0.0.1:8080").rstrip("/")
        found = re.fullmatch(r"(https?)://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+)(:[0-9]{1,5})?", self.url)
        if not found:
            raise NoAnswer(f"COMMTUNE_URL={one_line(self.url)}: must be http://HOST:PORT or https://HOST:PORT")
        self.loopback = is_loopback(found[2].strip("[]"))
        if found[1] == "http" and not self.loopback and settings.get("COMMTUNE_PLAIN_HTTP") != "yes":
            raise NoAnswer(f"COMMTUNE_URL={self.url}: must be https:// for another host, where others could read the token and write the "
                           "answer; COMMTUNE_PLAIN_HTTP=yes allows it")


class Token:
    """The caller's token: a private file of this user, or a site-wide one, which everybody can read."""

    def __init__(self, settings, address):
        self.text, self.path, self.site_wide = None, None, False
        chosen = settings.get("COMMTUNE_TOKEN_FILE")
        if chosen:
            self.read(chosen, may_be_site_wide=True)
            return
        for path in self.usual_places(address):
            if os.path.lexists(path):
                self.read(path)
                return

    @staticmethod
    def usual_places(address):
        home = os.environ.get("HOME", "/")
        yield f"{home}/.config/commtune/token"
        # A `tune serve` of this user keeps the token of its start there. It is of no use to another host.
        if address.loopback:
            runtime = os.environ.get("XDG_RUNTIME_DIR")
            yield f"{runtime or os.environ.get('XDG_STATE_HOME') or home + '/.local/state'}/commtune/token"

    def read(self, path, may_be_site_wide=False):
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            raise NoAnswer(f"token {path}: cannot be read ({error.strerror})") from error
        with os.fdopen(descriptor, encoding="ascii", errors="replace") as file:
            found = os.fstat(descriptor)
            private = found.st_uid == os.geteuid() and found.st_mode & 0o077 == 0
            self.site_wide = not private and may_be_site_wide and found.st_uid == 0 and found.st_mode & 0o022 == 0
            if not stat.S_ISREG(found.st_mode) or not (private or self.site_wide):
                raise NoAnswer(f"token {path}: must be a file that is yours and that nobody else can read (chmod 600); it has mode "
                               f"{stat.S_IMODE(found.st_mode):o} and belongs to uid {found.st_uid}")
            text = file.read(4096).strip()
        if not re.fullmatch("[!-~]{1,512}", text):
            raise NoAnswer(f"token {path}: must hold a token and nothing else")
        self.text, self.path = text, path


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None  # the token is for the service that was named, and for no other


class Service:
    """Asks, with the settings and the token of one call of a helper. The longest answer may take COMMTUNE_SECONDS."""

    def __init__(self, settings):
        self.seconds = settings.seconds()
        self.address = Address(settings)
        self.token = Token(settings, self.address)
        try:
            context = ssl.create_default_context(cafile=settings.get("COMMTUNE_CA_FILE")) if self.address.url.startswith("https") else None
        except OSError as error:
            raise NoAnswer(f"COMMTUNE_CA_FILE={settings.get('COMMTUNE_CA_FILE')}: {error}") from error
        self.opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), NoRedirect(), urllib.request.HTTPSHandler(context=context))

    def ask(self, method, path, body=None):
        # In a thread that is left behind when time is up: a socket's own limit begins again with each byte, and looking
        # up a name has none.
        outcome = []
        thread = threading.Thread(target=lambda: outcome.append(self.try_to_ask(method, path, body)), daemon=True)
        thread.start()
        thread.join(self.seconds)
        if not outcome:
            raise NoAnswer(f"{self.address.url} does not answer within {self.seconds:g} s")
        if isinstance(outcome[0], NoAnswer):
            raise outcome[0]
        return outcome[0]

    def try_to_ask(self, method, path, body):
        """The answer, or the NoAnswer that says why there is none."""
        try:
            if self.token.site_wide:
                self.check_site_wide()
            return self.send(method, path, body)
        except NoAnswer as error:
            return error
        except urllib.error.HTTPError as error:
            return NoAnswer(self.reason(error))
        except (OSError, ValueError, RecursionError, http.client.HTTPException) as error:
            return NoAnswer(f"{self.address.url} does not answer ({one_line(error)})")

    def send(self, method, path, body=None):
        request = urllib.request.Request(self.address.url + path, method=method, data=None if body is None else json.dumps(body).encode(),
                                         headers={"Content-Type": "application/json"})
        if self.token.text:
            request.add_unredirected_header("Authorization", f"Bearer {self.token.text}")
        with self.opener.open(request, timeout=self.seconds) as reply:
            text = reply.read(LONGEST_ANSWER + 1)
        if len(text) > LONGEST_ANSWER:
            raise NoAnswer(f"{self.address.url}: the answer is longer than {LONGEST_ANSWER} bytes")
        answer = json.loads(text)
        if not isinstance(answer, dict):
            raise NoAnswer(f"{self.address.url}: the answer is no object")
        return answer

    def check_site_wide(self):
        """Everybody can read it, so it must not be able to do what only operators may, such as listing tokens."""
        try:
            self.send("GET", "/v1/tokens?limit=1")
        except urllib.error.HTTPError as error:
            if error.code in (401, 403):
                return
            raise
        raise NoAnswer(f"token {self.token.path}: everybody can read it, and it may do more than ask for plans; replace it by one made "
                       "with `tune token make NAME --scope plan`, and revoke this one")

    def reason(self, error):
        try:
            return one_line(json.loads(error.read(LONGEST_ANSWER)).get("detail") or error)
        except (OSError, ValueError, AttributeError, RecursionError, http.client.HTTPException):
            return f"{self.address.url}: {one_line(error)}"


def planned(answer):
    """(the variables for the job, a remark on the plan) of an answer to POST /v1/plans."""
    if answer.get("status") != "planned":
        raise NoAnswer(one_line(answer.get("reason") or answer.get("detail") or "no plan"))
    given = answer["environment"]
    taken = {name: value for name, value in sorted(given.items())
             if name in VARIABLES and isinstance(value, str) and re.fullmatch("[ -~]{0,256}", value)}
    iteration = answer["iteration"]
    remark = f"plan {answer['id']}: {answer['title']} ({answer['road']}), {iteration['seconds']:.4g} s a step expected"
    if iteration["low_seconds"] is not None:
        remark += f" ({iteration['low_seconds']:.4g} to {iteration['high_seconds']:.4g})"
    if len(taken) < len(given):
        left = sorted(set(given) - set(taken))
        remark += f"; not taken: {', '.join(left[:4])}{' and more' if len(left) > 4 else ''}, which no plan sets"
    return taken, one_line(remark)
