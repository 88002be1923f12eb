#!/usr/bin/python3
"""What Slurm's helpers take from a service that means harm, to whom they send a token, and how long they wait."""

import http.server
import json
import os
import stat
import subprocess
import tempfile
import threading
import time
import unittest
from pathlib import Path

PROGRAMS = Path(os.environ["COMMTUNE_E2E_TUNE"]).parent
PATIENCE_SECONDS = 240
SECRET = "ct_1_0123456789abcdef"
# All of these name code, a file, a program or a host, or are settings of the helpers themselves.
HARMFUL = ["LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "PATH", "BASH_ENV", "ENV", "IFS", "HOME", "SHELL", "PYTHONPATH", "PYTHONSTARTUP", "PERL5LIB",
           "OMPI_MCA_plm_rsh_agent", "OMPI_MCA_mca_base_component_path", "PMIX_MCA_mca_base_component_path", "NCCL_NET_PLUGIN", "NCCL_TUNER_PLUGIN",
           "NCCL_TOPO_FILE", "SLURM_CONF", "SLURM_EXPORT_ENV", "SBATCH_EXPORT", "COMMTUNE_SBATCH", "COMMTUNE_TUNE", "COMMTUNE_URL",
           "COMMTUNE_TOKEN_FILE", "COMMTUNE_RANK_PROGRAM", "COMMTUNE_MPIRUN", "COMMTUNE_CONFIG", "COMMTUNE_PLAN\nexport LD_PRELOAD", "commtune_plan", ""]
GOOD = {"COMMTUNE_PLAN": "7", "COMMTUNE_PLAN_DIGEST": "0123abcd", "HOROVOD_CYCLE_TIME": "2.5"}


def answer(environment=None, **more):
    return {"status": "planned", "id": 7, "title": "ring", "road": "all-to-all ring", "iteration": {"seconds": 0.1, "low_seconds": None, "high_seconds": None},
            "environment": dict(GOOD) if environment is None else environment, **more}


class Fake:
    """A service that answers what it is told to, and keeps what it was asked."""

    def __init__(self, reply):
        """reply(handler): writes the whole answer."""
        self.asked = []
        fake = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do(self):
                fake.asked.append((self.command, self.path, dict(self.headers)))
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                try:
                    reply(self)
                except OSError:
                    pass  # the other side waits no longer

            do_GET = do_POST = do

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def tokens(self):
        return [headers["Authorization"] for _, _, headers in self.asked if "Authorization" in headers]

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


def says(document, status=200, headers=()):
    def reply(handler):
        text = document if isinstance(document, bytes) else json.dumps(document).encode()
        handler.send_response(status)
        for name, value in headers:
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(text)))
        handler.end_headers()
        handler.wfile.write(text)
    return reply


class HelperTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="commtune-helpers-")
        self.addCleanup(folder.cleanup)
        self.home = Path(folder.name)

    def fake(self, reply):
        made = Fake(reply)
        self.addCleanup(made.stop)
        return made

    def variables(self, url, **more):
        return {"PATH": os.environ["PATH"], "HOME": str(self.home), "COMMTUNE_MODEL": "resnet50", "COMMTUNE_CLUSTER": "lab", "COMMTUNE_URL": url,
                "COMMTUNE_SECONDS": str(PATIENCE_SECONDS), **more}

    def prolog(self, url, **more):
        done = subprocess.run([PROGRAMS / "task_prolog"], env=self.variables(url, **more), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=PATIENCE_SECONDS, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.split("\n")[:-1]

    def sbatch(self, url, *arguments, **more):
        """The variables and arguments that sbatch was started with, and what was said."""
        program = self.home / "sbatch"
        program.write_text('#!/bin/sh\nenv -0 > "$OUT/environment"\nprintf "%s\\n" "$@" > "$OUT/arguments"\n', encoding="utf-8")
        program.chmod(0o755)
        done = subprocess.run([PROGRAMS / "commtune-slurm", "sbatch", *arguments],
                              env={"OUT": str(self.home), "COMMTUNE_SBATCH": str(program), **self.variables(url, **more)}, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        environment = dict(item.split("=", 1) for item in (self.home / "environment").read_text(encoding="utf-8").split("\0")[:-1])
        return environment, (self.home / "arguments").read_text(encoding="utf-8").splitlines(), done.stderr

    def write_token(self, path=".config/commtune/token", mode=0o600, text=SECRET):
        place = self.home / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text + "\n", encoding="ascii")
        place.chmod(mode)
        return str(place)

    def refused(self, lines, *words):
        """The job starts, with one line that says why without a plan."""
        self.assertEqual(len(lines), 1, lines)
        self.assertTrue(lines[0].startswith("print commtune: "), lines)
        for word in (*words, "the job starts without a plan"):
            self.assertIn(word, lines[0])


class Helpers(HelperTest):
    def test_the_plan_of_an_answer_reaches_the_job(self):
        url = self.fake(says(answer())).url
        self.assertEqual(self.prolog(url), [*(f"export {name}={value}" for name, value in sorted(GOOD.items())),
                                            "print commtune: plan 7: ring (all-to-all ring), 0.1 s a step expected"])
        environment, arguments, _ = self.sbatch(url, "job.sh")
        self.assertEqual({name: environment[name] for name in GOOD}, GOOD)
        self.assertEqual(arguments, ["--comment=commtune plan 7: ring (all-to-all ring), 0.1 s a step expected", "job.sh"])

    def test_the_users_token_is_found_and_sent(self):
        fake = self.fake(says(answer()))
        self.write_token()
        self.prolog(fake.url)
        self.assertEqual(fake.tokens(), [f"Bearer {SECRET}"])

    def test_the_token_of_the_users_own_service_comes_second(self):
        for variables in ({"XDG_RUNTIME_DIR": str(self.home / "run")}, {"XDG_STATE_HOME": str(self.home / "run")}):
            fake = self.fake(says(answer()))
            self.write_token("run/commtune/token")
            self.prolog(fake.url, **variables)
            self.assertEqual(fake.tokens(), [f"Bearer {SECRET}"])
        fake = self.fake(says(answer()))
        self.write_token(".local/state/commtune/token", text="ct_2_second")
        self.prolog(fake.url)
        self.write_token(text="ct_3_first")
        self.prolog(fake.url)
        self.assertEqual(fake.tokens(), ["Bearer ct_2_second", "Bearer ct_3_first"])

    @unittest.skipUnless(os.geteuid() == 0, "needs root: the token file of a whole site is root's")
    def test_a_token_for_the_whole_site_asks_for_plans(self):
        fake = self.fake(lambda handler: says(answer() if handler.command == "POST" else {"detail": "no"}, 200 if handler.command == "POST" else 403)(handler))
        lines = self.prolog(fake.url, COMMTUNE_TOKEN_FILE=self.write_token("site", 0o644))
        self.assertIn("export COMMTUNE_PLAN=7", lines)
        self.assertEqual([path for _, path, _ in fake.asked], ["/v1/tokens?limit=1", "/v1/plans"])

    def test_settings_are_checked(self):
        self.refused(self.prolog("http://127.0.0.1:1", COMMTUNE_SECONDS="soon"), "COMMTUNE_SECONDS=soon: must be a number of seconds")
        self.refused(self.prolog("127.0.0.1:1"), "COMMTUNE_URL=127.0.0.1:1: must be http://HOST:PORT")
        self.refused(self.prolog("http://127.0.0.1:1", COMMTUNE_TOKEN_FILE="/nowhere"), "/nowhere: cannot be read")


def add_variable_cases(cls):
    """A case a name and helper."""
    for i, name in enumerate(HARMFUL):
        def prolog(self, name=name):
            lines = self.prolog(self.fake(says(answer({**GOOD, name: "/tmp/evil"}))).url)
            self.assertEqual([line for line in lines if line.startswith("export ")], [f"export {key}={value}" for key, value in sorted(GOOD.items())])
            self.assertIn("not taken: ", lines[-1])

        def sbatch(self, name=name):
            # sbatch itself is started all the same: the settings were read before.
            environment, _, said = self.sbatch(self.fake(says(answer({**GOOD, name: "/tmp/evil"}))).url)
            self.assertNotIn("/tmp/evil", environment.values())
            self.assertEqual(environment["COMMTUNE_PLAN"], "7")
            self.assertIn("not taken: ", said)

        word = "".join(c if c.isalnum() else "_" for c in name) or "empty"
        setattr(cls, f"test_prolog_takes_no_{word}_{i}", prolog)
        setattr(cls, f"test_sbatch_takes_no_{word}_{i}", sbatch)
    return cls


@add_variable_cases
class HostileVariables(HelperTest):
    pass


class HostileAnswer(HelperTest):
    def test_line_breaks_in_a_value_make_no_command(self):
        lines = self.prolog(self.fake(says(answer({"COMMTUNE_PLAN": "7\nexport LD_PRELOAD=/tmp/evil"}))).url)
        self.assertFalse([line for line in lines if line.startswith("export ")], lines)

    def test_line_breaks_in_a_title_make_no_command(self):
        for broken in ("a\nexport LD_PRELOAD=/tmp/evil", "a\r\nexport LD_PRELOAD=/tmp/evil", "a\u2028export LD_PRELOAD=/tmp/evil"):
            lines = self.prolog(self.fake(says(answer(title=broken))).url)
            self.assertEqual([line for line in lines if "LD_PRELOAD" in line], [lines[-1]])
            self.assertTrue(lines[-1].startswith("print "))

    def test_line_breaks_in_a_reason_make_no_command(self):
        self.refused(self.prolog(self.fake(says({"status": "unknown", "reason": "a\nexport LD_PRELOAD=/tmp/evil"})).url))

    def test_line_breaks_in_a_problem_make_no_command(self):
        self.refused(self.prolog(self.fake(says({"detail": "a\nexport LD_PRELOAD=/tmp/evil"}, 400)).url))

    def test_a_value_that_is_no_text_is_not_taken(self):
        lines = self.prolog(self.fake(says(answer({"COMMTUNE_PLAN": {"a": 1}, "NCCL_ALGO": ["x"], "HOROVOD_CYCLE_TIME": 5}))).url)
        self.assertEqual(len(lines), 1, lines)

    def jobs_start(self, reply, *words, **variables):
        self.refused(self.prolog(self.fake(reply).url, **variables), *words)
        environment, arguments, said = self.sbatch(self.fake(reply).url, "job.sh", **variables)
        self.assertNotIn("COMMTUNE_PLAN", environment)
        self.assertEqual(arguments, ["job.sh"])
        self.assertIn("the job is submitted without a plan", said)

    def test_no_object(self):
        self.jobs_start(says([]))

    def test_no_json(self):
        self.jobs_start(says(b"<html>"))

    def test_nothing_of_a_plan(self):
        self.jobs_start(says({"status": "planned"}))

    def test_nested_without_end(self):
        self.jobs_start(says(b"[" * 1_000_000))

    def test_a_problem_nested_without_end(self):
        self.jobs_start(says(b"[" * 1_000_000, 500))

    def test_no_http(self):
        self.jobs_start(lambda handler: handler.wfile.write(b"SSH-2.0-OpenSSH\r\n"))

    def test_a_header_without_end(self):
        self.jobs_start(lambda handler: handler.wfile.write(b"HTTP/1.1 200 " + b"a" * 1_000_000))

    def test_longer_than_anybody_needs(self):
        def reply(handler):
            handler.send_response(200)
            handler.end_headers()
            for _ in range(64):
                handler.wfile.write(b" " * (1 << 20))
        self.jobs_start(reply, "longer than")

    def test_a_byte_now_and_then(self):
        def reply(handler):
            handler.send_response(200)
            handler.end_headers()
            for _ in range(PATIENCE_SECONDS):
                handler.wfile.write(b" ")
                handler.wfile.flush()
                time.sleep(1)
        self.jobs_start(reply, "within 3 s", COMMTUNE_SECONDS="3")

    def test_arguments_that_nobody_understands_reach_sbatch(self):
        self.assertEqual(self.sbatch(self.fake(says(answer())).url, "job.sh", "-n")[1], ["job.sh", "-n"])


class HostileReader(HelperTest):
    """Who would like to have the token."""

    def test_it_is_on_no_command_line(self):
        seen = []

        def reply(handler):
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    seen.append(path.read_bytes())
                except OSError:
                    pass  # has ended
            says(answer())(handler)
        fake = self.fake(reply)
        self.write_token()
        self.prolog(fake.url)
        self.sbatch(fake.url)
        self.assertEqual(fake.tokens(), [f"Bearer {SECRET}"] * 2)
        self.assertTrue(any(b"task_prolog" in line for line in seen), "the helper itself was seen")
        self.assertFalse([line for line in seen if SECRET.encode() in line])

    def test_a_redirection_is_not_followed(self):
        thief = self.fake(says(answer()))
        for status in (301, 302, 303, 307, 308):
            fake = self.fake(says({}, status, [("Location", f"{thief.url}/v1/plans")]))
            self.write_token()
            self.refused(self.prolog(fake.url))
        self.assertEqual(thief.asked, [])

    def test_a_proxy_of_the_environment_is_not_asked(self):
        thief, fake = self.fake(says(answer())), self.fake(says(answer()))
        self.write_token()
        self.prolog(fake.url, http_proxy=thief.url, https_proxy=thief.url, all_proxy=thief.url)
        self.assertEqual((thief.asked, len(fake.tokens())), ([], 1))

    def unreadable(self, path, mode, **variables):
        fake = self.fake(says(answer()))
        self.refused(self.prolog(fake.url, **variables), path, "chmod 600")
        self.assertEqual(fake.asked, [])

    def test_a_file_that_the_group_can_read_is_refused(self):
        self.unreadable(self.write_token(mode=0o640), 0o640)

    def test_a_file_that_everybody_can_read_is_refused(self):
        self.unreadable(self.write_token(mode=0o644), 0o644)

    def test_a_file_that_everybody_can_write_is_refused(self):
        path = self.write_token("site", 0o666)
        self.unreadable(path, 0o666, COMMTUNE_TOKEN_FILE=path)

    def test_a_token_of_a_service_that_others_can_read_is_refused(self):
        self.unreadable(self.write_token(".local/state/commtune/token", 0o644), 0o644)

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to act as two users")
    def test_a_file_of_another_user_is_refused(self):
        path = self.write_token("other")
        os.chown(path, 65534, 65534)
        self.unreadable(path, 0o600, COMMTUNE_TOKEN_FILE=path)

    def test_a_pipe_is_refused_and_not_waited_for(self):
        (self.home / ".config/commtune").mkdir(parents=True)
        os.mkfifo(self.home / ".config/commtune/token", 0o600)
        self.assertTrue(stat.S_ISFIFO(os.stat(self.home / ".config/commtune/token").st_mode))
        self.unreadable(".config/commtune/token", 0o600)

    def test_a_line_break_in_it_makes_no_header(self):
        fake = self.fake(says(answer()))
        self.write_token(text=SECRET + "\r\nX-Evil: 1")
        self.refused(self.prolog(fake.url), "must hold a token and nothing else")

    @unittest.skipUnless(os.geteuid() == 0, "needs root: the token file of a whole site is root's")
    def test_a_token_for_the_whole_site_that_may_operate_is_refused(self):
        fake = self.fake(says(answer(rows=[])))
        self.refused(self.prolog(fake.url, COMMTUNE_TOKEN_FILE=self.write_token("site", 0o644)), "it may do more than ask for plans")
        self.assertEqual([path for _, path, _ in fake.asked], ["/v1/tokens?limit=1"])


def add_address_cases(cls):
    for i, host in enumerate(["127.evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "127.1", "0x7f000001", "2130706433", "[::ffff:127.0.0.1]",
                              "0.0.0.0", "10.0.0.1", "128.0.0.1"]):
        def plain(self, host=host):
            self.write_token()
            self.refused(self.prolog(f"http://{host}:1"), "must be https:// for another host", "COMMTUNE_PLAIN_HTTP=yes allows it")
        setattr(cls, f"test_no_plain_http_{i}", plain)
    for i, url in enumerate(["http://127.0.0.1@evil.example", "http://evil.example\\@127.0.0.1", "http://127.0.0.1:1/../", "file:///etc/passwd", "ftp://127.0.0.1",
                             "http://127.0.0.1:1\r\nX-Evil: 1", "http://evil.example#@127.0.0.1"]):
        def odd(self, url=url):
            self.write_token()
            self.refused(self.prolog(url), "must be http://HOST:PORT or https://HOST:PORT")
        setattr(cls, f"test_no_odd_address_{i}", odd)
    return cls


@add_address_cases
class HostileAddress(HelperTest):
    def test_another_host_does_not_get_the_token_of_this_ones_service(self):
        # Every address of this machine but the loopback's is another host's as far as anybody knows.
        self.write_token(".local/state/commtune/token", 0o644)  # a fault, if it were read
        self.refused(self.prolog("https://192.0.2.1:1", COMMTUNE_SECONDS="0.5"), "does not answer")

    def test_plain_http_is_a_setting(self):
        lines = self.prolog("http://192.0.2.1:1", COMMTUNE_PLAIN_HTTP="yes", COMMTUNE_SECONDS="0.5")
        self.refused(lines, "does not answer")
        self.refused(self.prolog("http://192.0.2.1:1", COMMTUNE_PLAIN_HTTP="no"), "must be https://")


if __name__ == "__main__":
    unittest.main(verbosity=2)  # the reason of a skip is seen
