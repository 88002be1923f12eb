"""The product as its users have it: the `tune` command, run in a home of its own."""

import json
import os
import signal
import sqlite3
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

PATIENCE_SECONDS = 600  # with what ends at once, except on a slow machine under load; spent only where something hangs

# A probe that measures few things, but the same ones however slow the machine is, for no budget ends it.
FEW = ("-e", "64K", "-f", "64", "-n", "2", "--max-iterations", "2", "--budget", f"{PATIENCE_SECONDS}s")


def program():
    """The tune program that is tested: COMMTUNE_E2E_TUNE, which ctest sets."""
    return os.environ["COMMTUNE_E2E_TUNE"]


class Product(unittest.TestCase):
    """Each test has an empty home and an empty database."""

    def setUp(self):
        self._folder = tempfile.TemporaryDirectory(prefix="commtune-e2e-")
        self.addCleanup(self._folder.cleanup)
        self.home = Path(self._folder.name)
        self.database = self.home / "store.db"
        self.environment = {name: text for name, text in os.environ.items() if not name.startswith("COMMTUNE_")}
        self.environment.update(HOME=str(self.home), COMMTUNE_DB=str(self.database))
        for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"):
            self.environment.pop(name, None)

    # ---- calling it ----

    def tune(self, *arguments, **variables):
        """A finished call. A probe waits for its turn: one at a time on a machine, and those that end take a moment."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            done = subprocess.run(
                [program(), *arguments],
                env={**self.environment, **variables},
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=PATIENCE_SECONDS,
                check=False,
            )
            if "another probe is running" not in done.stderr or time.monotonic() > deadline:
                return done
            time.sleep(0.5)

    def start(self, *arguments, **variables):
        """A call that goes on; killed at the end of the test if it still does."""
        process = subprocess.Popen(
            [program(), *arguments],
            env={**self.environment, **variables},
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(self._end, process)
        return process

    @staticmethod
    def _end(process):
        with process:  # closes its streams and waits for it
            if process.poll() is None:
                process.kill()

    def ok(self, *arguments, **variables):
        """Its standard output; the call must succeed."""
        done = self.tune(*arguments, **variables)
        self.assertEqual(done.returncode, 0, f"tune {' '.join(arguments)}\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def json(self, *arguments, **variables):
        return json.loads(self.ok(*arguments, "--json", **variables))

    def refused(self, status, *arguments, **variables):
        """Its message; the call must end with this status and say why in one message of its own."""
        done = self.tune(*arguments, **variables)
        self.assertEqual(done.returncode, status, f"tune {' '.join(arguments)}\n{done.stdout}\n{done.stderr}")
        return self.message(done.stderr)

    def message(self, stderr):
        messages = [line for line in stderr.splitlines() if line.startswith("tune: ")]
        self.assertEqual(len(messages), 1, f"expected one message:\n{stderr}")
        self.assertNotIn("internal error", messages[0])
        return messages[0]

    # ---- looking at what it stored ----

    def rows(self, query, *values):
        with sqlite3.connect(f"file:{self.database}?mode=ro", uri=True) as connection:
            return connection.execute(query, values).fetchall()

    def counts(self):
        """Rows of each table, to be compared before and after."""
        names = [name for (name,) in self.rows("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")]
        return {name: self.rows(f'SELECT count(*) FROM "{name}"')[0][0] for name in names}

    def assert_whole(self):
        self.assertEqual(self.rows("PRAGMA integrity_check"), [("ok",)])
        self.assertEqual(self.rows("PRAGMA foreign_key_check"), [])

    # ---- shortcuts ----

    def probe(self, *flags, ranks=2, **variables):
        """Some numbers about this machine."""
        return self.json("probe", "--local", str(ranks), *FEW, *flags, **variables)

    def made_cluster(self):
        """Made-up numbers about a cluster "lab" of four ranks on two hosts, the same each time, in place of a probe's."""
        subprocess.run([os.environ["COMMTUNE_MADE_STORE"], str(self.database)], check=True, timeout=PATIENCE_SECONDS)
        self.environment["COMMTUNE_CLUSTER"] = "lab"

    def plan(self, *flags):
        """A small job: ResNet-50 with a hundredth of its bytes and a fiftieth of its time."""
        return self.json("resnet50", "--scale-bytes", "0.01", "--scale-time", "0.02", *flags)

    def write(self, name, text):
        path = self.home / name
        path.write_text(text if isinstance(text, str) else json.dumps(text), encoding="utf-8")
        return path

    def wait_for(self, condition, process, seconds=PATIENCE_SECONDS):
        """Until the condition holds; the process must not end before."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if condition():
                return
            if process.poll() is not None:
                self.fail(f"ended early with {process.returncode}: {process.stderr.read()}")
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
        self.fail("waited in vain")

    def stored_samples(self):
        if not self.database.exists():
            return 0
        try:
            return self.rows("SELECT count(*) FROM samples")[0][0]
        except sqlite3.OperationalError:
            return 0  # the tables do not exist yet
