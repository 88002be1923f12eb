"""A service of commtune's, as commtune-slurm asks it."""

from __future__ import annotations

import json
import os
import re
import stat
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from commtune.errors import CommtuneError

_LONGEST_ANSWER = 256 << 20


@dataclass(frozen=True)
class Token:
    """Says to a service who asks."""

    text: str = field(repr=False)
    path: Path
    is_site_wide: bool  #: a file of root's that everybody can read


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """Refuses: the token is for the service that was named, and for no other."""
        return


def ask(url: str, question: dict[str, Any] | None, seconds: float) -> dict[str, Any]:
    """What it answers to a POST of the question, or to a GET where there is none: no proxy, no redirection."""
    _expect_private(url)
    own = token()
    if own is not None and own.is_site_wide:
        _expect_no_operator(own, url, seconds)
    return _send(url, question, seconds, own)


def _send(url: str, question: dict[str, Any] | None, seconds: float, own: Token | None) -> dict[str, Any]:
    request = urllib.request.Request(url, data=None if question is None else json.dumps(question).encode())
    request.add_header("Content-Type", "application/json")
    if own is not None:
        request.add_header("Authorization", f"Bearer {own.text}")
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


def _expect_no_operator(own: Token, url: str, seconds: float) -> None:
    """Everybody can read it, so it must not be able to do what only operators may, such as listing tokens."""
    parts = urllib.parse.urlsplit(url)
    service = parts.path.rpartition("/v1/")[0]
    tokens = urllib.parse.urlunsplit((parts.scheme, parts.netloc, f"{service}/v1/tokens", "limit=1", ""))
    try:
        _send(tokens, None, seconds, own)
    except urllib.error.HTTPError as error:
        if error.code in (401, 403):
            return
        raise
    raise CommtuneError(
        f"token {own.path}: everybody can read it, and it may do more than ask for plans; replace it by one made "
        "with `tune token make NAME --scope plan`, and revoke this one"
    )


def token() -> Token | None:
    """From COMMTUNE_TOKEN_FILE, or the user's own.

    A file that others can read or write is refused, but one of root's that COMMTUNE_TOKEN_FILE names may be readable.
    """
    named = os.environ.get("COMMTUNE_TOKEN_FILE")
    path = Path(named) if named else Path.home() / ".config" / "commtune" / "token"
    try:
        # A pipe is not waited for.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        if not named and isinstance(error, FileNotFoundError | NotADirectoryError):
            return None
        raise CommtuneError(f"token {path}: cannot be read ({error.strerror})") from error
    try:
        return _read(descriptor, path, may_be_site_wide=bool(named))
    except OSError as error:
        raise CommtuneError(f"token {path}: cannot be read ({error.strerror})") from error
    finally:
        os.close(descriptor)


# As api/schedulers/client.py reads it, which is part of programs that have no package: a change there is due here too.
def _read(descriptor: int, path: Path, *, may_be_site_wide: bool) -> Token:
    """Looks at the file that was opened: another one may lie at the path by now."""
    found = os.fstat(descriptor)
    is_private = found.st_uid == os.geteuid() and found.st_mode & 0o077 == 0
    is_site_wide = not is_private and may_be_site_wide and found.st_uid == 0 and found.st_mode & 0o022 == 0
    if not stat.S_ISREG(found.st_mode) or not (is_private or is_site_wide):
        raise CommtuneError(
            f"token {path}: must be a file that is yours and that nobody else can read (chmod 600); it has mode "
            f"{stat.S_IMODE(found.st_mode):o} and belongs to uid {found.st_uid}"
        )
    text = os.read(descriptor, 4096).decode("ascii", "replace").strip()
    if not re.fullmatch("[!-~]{1,512}", text):
        raise CommtuneError(f"token {path}: must hold a token and nothing else")
    return Token(text, path, is_site_wide)
