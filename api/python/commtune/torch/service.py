"""A service of commtune's, as commtune-slurm asks it."""

from __future__ import annotations

import json
import os
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

from commtune.errors import CommtuneError

_LONGEST_ANSWER = 256 << 20


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """Refuses: the token is for the service that was named, and for no other."""
        return


def ask(url: str, question: dict[str, Any] | None, seconds: float) -> dict[str, Any]:
    """What it answers to a POST of the question, or to a GET where there is none: no proxy, no redirection."""
    _expect_private(url)
    request = urllib.request.Request(url, data=None if question is None else json.dumps(question).encode())
    request.add_header("Content-Type", "application/json")
    if (own := token()) is not None:
        request.add_header("Authorization", f"Bearer {own}")
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


def token() -> str | None:
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
