"""What a training measured and planned by itself, kept for the next one of the same model on the same hosts."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

#: Seconds after which hosts and networks are no longer taken to be as they were: 30 days, as for fits.
OLDEST = 30 * 24 * 3600.0


class KeptPlan:
    """A folder of the user's cache: ``cluster.json``, ``profile.json``, ``plan.json`` and ``result.json``."""

    def __init__(self, layout: str, hosts: Sequence[str], barrier: str) -> None:
        """``hosts``: every rank's, in rank order."""
        digest = hashlib.sha256("\n".join(hosts).encode()).hexdigest()[:12]
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        self.folder = cache / "commtune" / "auto" / f"{layout}-{len(hosts)}-{digest}-{barrier}"

    def plan(self) -> dict[str, Any] | None:
        """The one that an earlier training kept; ``None`` where it took it back, or it is older than 30 days."""
        result = self._read("result") or {}
        return None if result.get("state") == "taken back" else self._read("plan")

    @property
    def is_known(self) -> bool:
        """Whether an earlier training has tried its plan to the end."""
        return self._read("result") is not None

    def write(self, name: str, document: dict[str, Any]) -> None:
        """As a whole or not at all; a cache that cannot be written is none."""
        text = json.dumps(document)
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            # A new file that no link leads away from, for its owner alone: _read() takes no other, whatever the umask is.
            descriptor, partial = tempfile.mkstemp(prefix=f".{name}-", dir=self.folder)
            try:
                with open(descriptor, "w", encoding="utf-8") as file:
                    file.write(text)
                os.replace(partial, self.folder / f"{name}.json")
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(partial)
                raise

    def _read(self, name: str) -> dict[str, Any] | None:
        """Only what the user's own account alone can have written."""
        path = self.folder / f"{name}.json"
        try:
            for place in (self.folder, path):
                found = place.stat()
                if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o022:
                    return None
            if time.time() - path.stat().st_mtime > OLDEST:
                return None
            document = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return document if isinstance(document, dict) else None
