#!/usr/bin/python3
"""The installed service measures and runs on another host: as the package's user, within the limits of its unit, by ssh.

The other host is a network namespace with Debian's sshd, a name and a home of its own. All of it lives in namespaces:
this machine's users and files stay as they are. Skipped, with the reason, where that cannot be made.
"""

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("COMMTUNE_E2E_BUILD", "build")).resolve()
HERE, THERE = "10.77.0.1", "10.77.0.2"
HOME = Path("/var/lib/commtune")
UNIT = Path("/usr/lib/systemd/system/commtune.service")
SERVICE = f"http://{HERE}:8080"
PATIENCE_SECONDS = 240
PROGRAMS = ("sshd", "ssh-keygen", "useradd", "unshare", "nsenter", "ip", "setpriv", "mpirun", "systemd-analyze", "deb-systemd-helper", "cmake")
WITHIN = os.environ.get("COMMTUNE_IN_NAMESPACES")
os.environ["PATH"] += ":/usr/sbin:/sbin"


def said(*command, **more):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS, stdin=subprocess.DEVNULL, **more)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}: {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    return done.stdout


def missing():
    """Why this cannot be tried here, or nothing."""
    if os.geteuid() != 0:
        return "needs root, to make namespaces and to be several users"
    absent = [name for name in PROGRAMS if not shutil.which(name)]
    if absent:
        return f"not installed: {' '.join(absent)}"
    tried = subprocess.run(["unshare", "--mount", "--net", "--pid", "--fork", "sh", "-c",
                            "mount -t tmpfs none /mnt && mkdir /mnt/a /mnt/b && mount -t overlay none -o lowerdir=/mnt/a:/mnt/b /mnt/a && ip link add type veth"],
                           capture_output=True, text=True, check=False)
    return "" if tried.returncode == 0 else f"namespaces with mounts and links cannot be made here: {tried.stderr.strip()}"


# ---- the two hosts ----

def install(folder):
    """The package's files over /usr, and what its installation does; in copies of what that changes."""
    shutil.copytree("/etc", folder / "etc", symlinks=True)
    said("mount", "--bind", folder / "etc", "/etc")
    for place in ("/var/lib", "/run"):
        said("mount", "-t", "tmpfs", "none", place)
    Path("/run/sshd").mkdir()
    said("cmake", "--install", BUILD, "--prefix", folder / "usr")
    said("mount", "-t", "overlay", "none", "-o", f"lowerdir={folder / 'usr'}:/usr", "/usr")
    with open("/etc/hosts", "a", encoding="utf-8") as hosts:
        hosts.write(f"\n{HERE} n1\n{THERE} n2\n")
    said("sh", ROOT / "api/packaging/postinst", "configure", "")


def make_network():
    said("hostname", "n1")
    said("ip", "link", "set", "lo", "up")
    holder = subprocess.Popen(["unshare", "--net", "--mount", "--uts", "sleep", "1000000"])
    wait_for(lambda: os.readlink(f"/proc/{holder.pid}/ns/net") != os.readlink("/proc/self/ns/net"))
    said("ip", "link", "add", "to-n2", "type", "veth", "peer", "name", "to-n1", "netns", str(holder.pid))
    said("ip", "address", "add", f"{HERE}/24", "dev", "to-n2")
    said("ip", "link", "set", "to-n2", "up")
    enter = ["nsenter", f"--net=/proc/{holder.pid}/ns/net", f"--mount=/proc/{holder.pid}/ns/mnt", f"--uts=/proc/{holder.pid}/ns/uts"]
    said(*enter, "sh", "-c", f"hostname n2; ip link set lo up; ip address add {THERE}/24 dev to-n1; ip link set to-n1 up")
    return enter, holder


def make_other_host(folder, enter):
    """Installed there too, with a home of its own; takes the service's key as the unit says. sshd, which PAM does not help."""
    said(*enter, "mount", "-t", "tmpfs", "none", HOME)
    said(*enter, "sh", ROOT / "api/packaging/postinst", "configure", "")
    key = (HOME / ".ssh/id_ed25519.pub").read_text(encoding="ascii").strip()
    said(*enter, "runuser", "-u", "commtune", "--", "sh", "-c", f"umask 077; echo 'restrict,from=\"{HERE}\" {key}' > {HOME}/.ssh/authorized_keys")
    said("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / "host_key")
    (folder / "sshd_config").write_text(f"ListenAddress {THERE}\nHostKey {folder}/host_key\nPidFile none\nUsePAM no\nPasswordAuthentication no\n", encoding="utf-8")
    sshd = subprocess.Popen([*enter, shutil.which("sshd"), "-D", "-E", folder / "sshd.log", "-f", folder / "sshd_config"])
    wait_for(lambda: subprocess.run(["ssh-keyscan", "n2"], capture_output=True, check=False).stdout)
    said("runuser", "-u", "commtune", "--", "ssh", "-o", "StrictHostKeyChecking=accept-new", "n2", "true")
    return sshd


def end(process):
    process.terminate()
    process.wait(PATIENCE_SECONDS)


def wait_for(holds):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError("waited in vain")
        time.sleep(0.1)


SANDBOX = ["unshare", "--mount", "--propagation", "private", sys.executable, str(ROOT / "tests/e2e/unit_sandbox.py")]
# What the unit forbids, tried from inside; prints what was possible all the same.
ESCAPES = """
import ctypes, mmap, os, socket
def tried(name, work):
    try:
        work()
        print(name)
    except OSError:
        pass
tried("write /etc", lambda: open("/etc/evil", "w"))
tried("write /usr", lambda: open("/usr/evil", "w"))
tried("read /root", lambda: os.listdir("/root"))
tried("read /home", lambda: os.listdir("/home"))
tried("raw socket", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))
tried("code in memory", lambda: mmap.mmap(-1, 4096, prot=mmap.PROT_WRITE | mmap.PROT_EXEC))
tried("root", lambda: os.setuid(0))
def unshare():
    if ctypes.CDLL(None).unshare(0x10000000) != 0:
        raise OSError
tried("namespace", unshare)
tried("write home", lambda: open("/var/lib/commtune/mine", "w"))
"""


class ServiceUser(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Path(os.environ["COMMTUNE_IN_NAMESPACES"])
        install(cls.folder)
        enter, holder = make_network()
        cls.addClassCleanup(end, holder)
        cls.addClassCleanup(end, make_other_host(cls.folder, enter))

    def as_user(self, *command):
        return said("runuser", "-u", "commtune", "--", "env", "-i", f"HOME={HOME}", f"PATH={os.environ['PATH']}", *command, cwd="/")

    def ask(self, method, path, body=None):
        request = urllib.request.Request(SERVICE + path, method=method, data=None if body is None else json.dumps(body).encode(),
                                         headers={"Content-Type": "application/json", "Authorization": f"Bearer {self.token}"})
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as reply:
                return json.load(reply)
        except urllib.error.HTTPError as error:
            self.fail(f"{method} {path}: {error.code} {error.read().decode()}")

    def job(self, path, body):
        """A job of the service, when it has ended well."""
        number = self.ask("POST", path, body)["id"]
        wait_for(lambda: self.ask("GET", f"/v1/jobs/{number}")["state"] not in ("queued", "running"))
        job = self.ask("GET", f"/v1/jobs/{number}")
        log = [row["text"] for row in self.ask("GET", f"/v1/jobs/{number}/log")["rows"]]
        self.assertEqual(job["state"], "complete", f"{job}\n" + "\n".join(log))
        return job

    def start_service(self):
        self.token = self.as_user("tune", "token", "make", "test", "--scope", "operate", "--db", f"{HOME}/commtune.db").strip()
        Path("/etc/commtune").mkdir(exist_ok=True)
        # Plain HTTP to a host of this test only.
        Path("/etc/commtune/service.conf").write_text(f'COMMTUNE_SERVE_FLAGS="--listen {HERE}:8080 {self.plain_http()}"\n', encoding="utf-8")
        log = open(self.folder / "service.log", "wb")
        self.addCleanup(log.close)
        server = subprocess.Popen([*SANDBOX, str(UNIT)],
                                  stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.addCleanup(end, server)

        def listens():
            self.assertIsNone(server.poll(), (self.folder / "service.log").read_text(errors="replace")[-3000:])
            try:
                with urllib.request.urlopen(f"{SERVICE}/readyz", timeout=5) as reply:
                    return reply.read() == b"ok\n"
            except OSError:
                return False
        wait_for(listens)

    @staticmethod
    def plain_http():
        """The flag that allows tokens over it, where there is one."""
        help_text = said("tune", "serve", "--help")
        return next((word for word in help_text.split() if word.startswith("--") and "plain" in word), "")

    def test_the_user_has_a_home_and_a_key_and_no_password(self):
        entry = said("getent", "passwd", "commtune").strip().split(":")
        self.assertEqual((entry[5], entry[6]), (str(HOME), "/bin/sh"))
        self.assertEqual(said("getent", "shadow", "commtune").split(":")[1], "*")
        for path, mode in ((HOME, 0o700), (HOME / ".ssh/id_ed25519", 0o600)):
            found = path.stat()
            self.assertEqual((found.st_uid, stat.S_IMODE(found.st_mode)), (int(entry[2]), mode), path)

    def test_a_second_installation_keeps_the_key(self):
        before = (HOME / ".ssh/id_ed25519").read_bytes()
        said("sh", ROOT / "api/packaging/postinst", "configure", "0.1.0")
        self.assertEqual((HOME / ".ssh/id_ed25519").read_bytes(), before)

    def test_what_the_service_stored_before_it_had_a_user_is_kept(self):
        """As DynamicUser leaves it: in a folder of root's, behind a link."""
        found = said("unshare", "--mount", "sh", "-ec", f"""
            mount -t tmpfs none /var/lib
            mkdir -p /var/lib/private/commtune
            echo > /var/lib/private/commtune/commtune.db
            ln -s private/commtune {HOME}
            sh {ROOT}/api/packaging/postinst configure 0.1.0 >/dev/null
            stat -c '%U %F' {HOME} {HOME}/commtune.db""")
        self.assertEqual(found.splitlines(), ["commtune directory", "commtune regular file"])

    def test_the_limits_of_the_unit_are_in_force_here(self):
        script, unit = HOME / "escapes.py", self.folder / "escapes.service"
        script.write_text(ESCAPES, encoding="utf-8")
        text = UNIT.read_text(encoding="utf-8").splitlines()
        unit.write_text("\n".join(f"ExecStart=/usr/bin/python3 {script}" if line.startswith("ExecStart=") else line for line in text), encoding="utf-8")
        self.assertEqual(said(*SANDBOX, unit), "write home\n")

    def test_the_service_probes_and_runs_on_the_other_host(self):
        database = ["--db", f"{HOME}/commtune.db"]
        few = ["-e", "64K", "-f", "64", "-n", "2", "--max-iterations", "2"]
        self.as_user("tune", "probe", "-H", "n1:1,n2:1", "--cluster", "two", "--budget", "5s", *few, *database)
        self.start_service()
        self.job("/v1/clusters/two/probes", {"budget_seconds": 5, "last_bytes": 65536})
        plan = self.ask("POST", "/v1/plans", {"model": "resnet50", "cluster": "two", "overrides": {}})
        self.assertEqual(plan["status"], "planned", plan)
        done = self.job(f"/v1/plans/{plan['id']}/runs", {"iterations": 2, "warmup": 1})
        run = self.ask("GET", f"/v1/runs/{done['result']['runs'][0]['run']}")
        self.assertIn("n2", json.dumps(run))


def main():
    why = missing()
    if why:
        print(f"skipped: {why}")
        return 77
    with tempfile.TemporaryDirectory(prefix="commtune-unit-") as name:
        Path(name).chmod(0o755)
        # Ended with all that it has started when it ends, however that is.
        return subprocess.run(["unshare", "--mount", "--net", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, __file__, *sys.argv[1:]],
                              env={**os.environ, "COMMTUNE_IN_NAMESPACES": name}, check=False).returncode


if __name__ == "__main__":
    if WITHIN:
        unittest.main()
    sys.exit(main())
