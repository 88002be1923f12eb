"""Where a plan comes from: the user, a service, the local database, or none of them."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import shutil
import subprocess
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

from commtune.errors import CommtuneError, PlanRefused
from commtune.session import BucketOptions, Session, plan_text

Source = str | os.PathLike[str] | dict[str, Any]

#: Seconds that "auto" asks for; steps meanwhile go by buckets.
PATIENCE = 1.0
_LONGEST_ANSWER = 256 << 20


class PlanSource:
    """The plan that a user asked for. Rank 0's counts; the others hear of it."""

    def __init__(self, asked: Source) -> None:
        self._asked = asked
        self._question: _Question | None = None
        self._settled = asked != "auto"
        #: In the place of buckets, where "auto" begins.
        self.start: dict[str, Any] | None = None
        #: Whoever was asked, or the user, has named a plan.
        self.has_answer = asked != "auto"

    def first(self, session: Session, buckets: BucketOptions) -> dict[str, Any] | str | None:
        """What this rank adopts before the first step."""
        if session.rank != 0:
            return None
        if self._asked == "auto":
            self._question = _Question(session.layout_digest, session.ranks)
            return self.start or session.bucket_plan(buckets)
        if self._asked == "buckets":
            return session.bucket_plan(buckets)
        if isinstance(self._asked, str) and self._asked.startswith(("http://", "https://")):
            plan: dict[str, Any] = _json_of(self._asked, None, 30.0)["plan"]
            return plan
        return plan_text(self._asked)

    def announce(self, session: Session) -> None:
        """On rank 0, if "auto" was answered meanwhile: all ranks adopt the answer a few steps later."""
        if self._settled or self._question is None:
            return
        self._settled, plan = self._question.answer()
        if plan is not None:
            with contextlib.suppress(PlanRefused):  # the one in force goes on
                session.announce(plan)
                self.has_answer = True

    def settle(self) -> None:
        """Somebody chose a plan by hand: no answer overrules it."""
        self._settled = self.has_answer = True


class _Question:
    """Asked in a thread of its own, so that no rank waits for the answer."""

    def __init__(self, layout: str, workers: int) -> None:
        self._layout, self._workers = layout, workers
        self._plan: dict[str, Any] | None = None
        self._until = time.monotonic() + PATIENCE
        self._thread = threading.Thread(target=self._ask, name="commtune-auto", daemon=True)
        self._thread.start()

    def answer(self) -> tuple[bool, dict[str, Any] | None]:
        """Whether nothing more will come, and the plan if there is one."""
        ended = not self._thread.is_alive() or time.monotonic() > self._until
        return ended, self._plan if ended else None

    def _ask(self) -> None:
        try:
            if url := os.environ.get("COMMTUNE_URL"):
                self._plan = self._of_service(url.rstrip("/"))
            elif shutil.which("tune") and os.environ.get("COMMTUNE_CLUSTER"):
                self._plan = self._of_database()
        except (
            OSError,
            ValueError,
            KeyError,
            TypeError,
            CommtuneError,
            subprocess.SubprocessError,
            http.client.HTTPException,
        ):
            self._plan = None  # whoever is down: the training goes on by buckets

    def _of_service(self, url: str) -> dict[str, Any]:
        question = {"model": self._layout, "cluster": os.environ.get("COMMTUNE_CLUSTER", ""), "workers": self._workers}
        answer = _json_of(f"{url}/v1/plans", question, PATIENCE)
        plan: dict[str, Any] = _json_of(f"{url}/v1/plans/{int(answer['id'])}", None, PATIENCE)["plan"]
        return plan

    def _of_database(self) -> dict[str, Any]:
        with tempfile.TemporaryDirectory(prefix="commtune-auto-") as folder:
            out = Path(folder) / "plan.json"
            command = ["tune", self._layout, "--workers", str(self._workers), "--out", str(out)]
            subprocess.run(command, check=True, timeout=PATIENCE, capture_output=True)
            plan: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
        return plan


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """Refuses: the token is for the service that was named, and for no other."""
        return


def _json_of(url: str, question: dict[str, Any] | None, seconds: float) -> dict[str, Any]:
    """What a service answers, as commtune-slurm asks it: no proxy, no redirection."""
    _expect_private(url)
    request = urllib.request.Request(url, data=None if question is None else json.dumps(question).encode())
    request.add_header("Content-Type", "application/json")
    if token := _token():
        request.add_header("Authorization", f"Bearer {token}")
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect())
    with opener.open(request, timeout=seconds) as answer:
        document: dict[str, Any] = json.loads(answer.read(_LONGEST_ANSWER))
    return document


def _expect_private(url: str) -> None:
    """Others on the way could read the token and write the plan."""
    parts = urllib.parse.urlsplit(url)
    here = parts.hostname in ("localhost", "127.0.0.1", "::1")
    if parts.scheme != "https" and not here and os.environ.get("COMMTUNE_PLAIN_HTTP") != "yes":
        raise CommtuneError(f"{url}: must be https:// for another host; COMMTUNE_PLAIN_HTTP=yes allows it")


def _token() -> str | None:
    """From COMMTUNE_TOKEN_FILE, or the user's own; a file that others can read or write is refused."""
    named = os.environ.get("COMMTUNE_TOKEN_FILE")
    path = Path(named) if named else Path.home() / ".config" / "commtune" / "token"
    if not named and not path.exists():
        return None
    try:
        found = path.stat()
        text = path.read_text(encoding="ascii").strip()
    except (OSError, ValueError) as error:
        raise CommtuneError(f"token {path}: cannot be read ({error})") from error
    site_wide = named is not None and found.st_uid == 0 and found.st_mode & 0o022 == 0
    if not site_wide and (found.st_uid != os.geteuid() or found.st_mode & 0o077):
        raise CommtuneError(f"token {path}: must be a file that is yours and that nobody else can read (chmod 600)")
    return text
