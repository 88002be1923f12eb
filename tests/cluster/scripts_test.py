#!/usr/bin/env python3
"""Tests of up, down, exec, with, truth and control: real clusters, brought up and taken down.

usage: scripts_test.py SWITCH [unittest arguments]. Exits with 77 where clusters cannot be emulated. Times are only
held against what is physically impossible and against generous factors: other work may run beside.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
import emulation
import units

HERE = Path(__file__).resolve().parent
NAME = f"test{os.getpid()}"
MEGABYTES = 4

SINK = """
import socket
with socket.create_server(("", 5000)) as server:
    print("listening", flush=True)
    connection, _ = server.accept()
    left = int(connection.recv(16, socket.MSG_WAITALL))
    while left:
        left -= len(connection.recv(min(left, 1 << 20)))
    connection.sendall(b".")
"""

SOURCE = """
import socket, sys, time
size = int(sys.argv[2])
data = bytes(size)
with socket.create_connection((sys.argv[1], 5000)) as connection:
    start = time.monotonic()
    connection.sendall(b"%16d" % size + data)
    connection.recv(1)
    print(time.monotonic() - start)
"""


def script(name, *arguments, **options):
    return subprocess.run([HERE / name, *arguments], capture_output=True, text=True, timeout=600, check=False, **options)


def up(*arguments, name=NAME):
    return script("up", "--name", name, *arguments)


def down(name=NAME):
    return script("down", "--name", name)


def on_host(number, *command):
    return script("exec", "--name", NAME, "--host", str(number), "--", *command)


def reaches(source, target):
    return on_host(source, "ping", "-c", "1", "-W", "3", target).returncode == 0


def traces(name=NAME):
    """Whatever of a cluster still exists."""
    found = [str(path) for path in Path("/run/netns").glob(f"commtune-{name}-*")]
    found += [str(path) for path in Path("/etc/netns").glob(f"commtune-{name}-*")]
    found += [str(path) for path in (emulation.state_dir(name),) if path.exists()]
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if f"commtune-{name}-".encode() in (entry / "cmdline").read_bytes():
                    found.append(entry.name)
            except OSError:
                continue
    return found


def wait_until(condition, seconds=120):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    return condition()


def root_interfaces():
    return subprocess.run(["ip", "-brief", "link"], capture_output=True, text=True, check=True).stdout


class Base(unittest.TestCase):
    def setUp(self):
        self.interfaces = root_interfaces()
        self.addCleanup(self.assert_clean)

    def assert_clean(self):
        down()
        self.assertEqual(traces(), [])
        self.assertEqual(root_interfaces(), self.interfaces)

    def assert_done(self, result):
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def transfer_seconds(self, source, target):
        """Time until the last byte of a transfer has arrived and one byte has come back."""
        line = emulation.host_command(NAME, target, [sys.executable, "-c", SINK])
        with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as sink:
            self.assertEqual(sink.stdout.readline(), "listening\n")
            size = str(MEGABYTES * 10**6)
            done = on_host(source, sys.executable, "-c", SOURCE, f"h{target}", size)
            sink.kill()
        return float(self.assert_done(done))

    def truth(self, source, target):
        pairs = json.loads(self.assert_done(script("truth", "--name", NAME)))["pairs"]
        return next(pair for pair in pairs if pair["from"] == f"h{source}" and pair["to"] == f"h{target}")

    def assert_transfer_takes_its_time(self, source, target):
        pair = self.truth(source, target)
        ideal = MEGABYTES * 1e6 / pair["goodput_bytes_per_second"] + 2 * pair["delay_seconds"]
        for _ in range(30):  # other work may hold up a transfer, but not the fastest of many
            measured = self.transfer_seconds(source, target)
            self.assertGreater(measured, 0.99 * ideal, "faster than the link")
            if measured < 3 * ideal:
                return
        self.fail(f"{measured} s, at most {ideal} s on such a link")


class Network(Base):
    def test_hosts_have_names_and_reach_each_other(self):
        self.assert_done(up("--hosts", "3"))
        self.assertEqual(self.assert_done(on_host(2, "hostname")), "h2\n")
        for source, target in ((1, "h2"), (2, "h3"), (3, "10.77.0.1")):
            self.assertTrue(reaches(source, target), f"h{source} -> {target}")

    def test_transfers_take_what_truth_says(self):
        self.assert_done(up("--hosts", "3", "--rate", "200Mbit", "--delay", "1ms", "--host", "3:up=50Mbit"))
        self.assert_transfer_takes_its_time(1, 2)
        self.assert_transfer_takes_its_time(3, 1)
        self.assertEqual(self.truth(3, 1)["wire_bytes_per_second"], 6_250_000)
        self.assertEqual(self.truth(1, 3)["wire_bytes_per_second"], 25_000_000)

    def test_trunk_between_groups(self):
        self.assert_done(up("--groups", "2,1", "--trunk", "100Mbit", "--trunk-delay", "2ms"))
        self.assertEqual(self.truth(1, 2)["wire_bytes_per_second"], 125_000_000)
        self.assertEqual(self.truth(1, 3)["wire_bytes_per_second"], 12_500_000)
        self.assertAlmostEqual(self.truth(1, 3)["delay_seconds"], 2.2e-3)
        self.assert_transfer_takes_its_time(1, 3)

    def test_data_survives_losses(self):
        """A buffer of 20 packets: TCP loses single packets of trains and must repair them."""
        self.assert_done(up("--hosts", "2", "--host", "2:down=100Mbit,buffer=30000"))
        self.transfer_seconds(1, 2)
        status = json.loads(self.assert_done(script("control", "--name", NAME, "status")))
        self.assertGreater(status["ports"][1]["dropped_packets"], 0)

    def test_links_change_while_up(self):
        self.assert_done(up("--hosts", "2", "--rate", "500Mbit"))
        self.assert_done(script("control", "--name", NAME, "set", "2", "rate=100Mbit", "delay=2ms"))
        self.assertEqual(self.truth(1, 2)["wire_bytes_per_second"], 12_500_000)
        self.assertAlmostEqual(self.truth(1, 2)["delay_seconds"], 1.1e-3)
        self.assert_transfer_takes_its_time(1, 2)
        self.assert_transfer_takes_its_time(2, 1)

    def test_cut_and_restore(self):
        self.assert_done(up("--hosts", "3"))
        self.assert_done(script("control", "--name", NAME, "cut", "3"))
        self.assertFalse(reaches(1, "h3"))
        self.assertFalse(reaches(3, "h1"))
        self.assertTrue(reaches(1, "h2"))
        self.assert_done(script("control", "--name", NAME, "restore", "3"))
        self.assertTrue(reaches(1, "h3"))

    @unittest.skipUnless(shutil.which("mpirun"), "mpirun is not installed (Debian: openmpi-bin)")
    def test_open_mpi_reaches_every_host(self):
        out = self.assert_done(script("with", "--name", NAME, "--hosts", "3", "--slots", "2", "--", "mpirun", "-np", "6", "hostname"))
        self.assertEqual(sorted(out.split()), ["h1", "h1", "h2", "h2", "h3", "h3"])


class Life(Base):
    @unittest.skipUnless(os.access("/dev/cpu_dma_latency", os.W_OK), "/dev/cpu_dma_latency cannot be written here")
    def test_processors_halt_only_where_they_may(self):
        for flags, awake in ((), True), (("--may-halt",), False):
            self.assertEqual(up("--hosts", "1", *flags).returncode, 0)
            switch = (emulation.state_dir(NAME) / "switch.pid").read_text().strip()
            files = {os.readlink(path) for path in Path(f"/proc/{switch}/fd").iterdir()}
            self.assertEqual("/dev/cpu_dma_latency" in files, awake)
            down()

    def test_a_name_is_up_once(self):
        self.assert_done(up("--hosts", "2"))
        again = up("--hosts", "2")
        self.assertEqual(again.returncode, 1)
        self.assertIn("is up already", again.stderr)
        self.assertTrue(reaches(1, "h2"))

    def test_two_names_at_once(self):
        other = NAME + "b"
        self.addCleanup(down, other)
        self.assert_done(up("--hosts", "2"))
        self.assert_done(up("--hosts", "2", name=other))
        self.assert_done(down(other))
        self.assertEqual(traces(other), [])
        self.assertTrue(reaches(1, "h2"))

    def test_bad_requests_leave_nothing(self):
        for arguments, reason in (
            (["--rate", "1Gbps"], "unknown unit 'Gbps'"),
            (["--hosts", "0"], "hosts = 0"),
            (["--host", "9:1Gbit"], "with N up to 4"),
            (["--host", "2:speed=1Gbit"], "must be rate="),
            (["--groups", "2,2"], "--trunk"),
            (["--slots", "0"], "slots = 0"),
            (["--mtu", "100"], "mtu = 100"),
            (["--switch", "/nowhere"], "no such program"),
            (["--sysctl", "net.ipv4.no_such_key=1"], "no_such_key"),
        ):
            with self.subTest(arguments=arguments):
                result = up(*arguments)
                self.assertNotEqual(result.returncode, 0)
                self.assertIn(reason, result.stderr)
                self.assertNotIn("Traceback", result.stderr)
                self.assertEqual(traces(), [])

    def test_unknown_host_or_cluster(self):
        missing = script("exec", "--name", NAME, "--", "true")
        self.assertIn("no cluster", missing.stderr)
        self.assert_done(up("--hosts", "2"))
        self.assertIn("has 2 hosts", on_host(3, "true").stderr)
        rsh = subprocess.run([emulation.state_dir(NAME) / "rsh", "h9", "true"], capture_output=True, text=True, check=False)
        self.assertEqual(rsh.returncode, 255)
        self.assertIn("h9: no such host", rsh.stderr)

    def test_down_ends_processes_and_survives_a_dead_switch(self):
        self.assert_done(up("--hosts", "2"))
        with subprocess.Popen(emulation.host_command(NAME, 2, ["sleep", "1000"])) as sleeper:
            os.kill(emulation.switch_pid(NAME), signal.SIGKILL)
            self.assert_done(down())
            self.assertNotEqual(sleeper.wait(timeout=120), 0)
        self.assert_done(down())  # nothing to do is no error

    def test_with_passes_the_status_on(self):
        for command, status in (("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137)):
            result = script("with", "--name", NAME, "--hosts", "2", "--", "sh", "-c", command)
            self.assertEqual(result.returncode, status, result.stderr)
            self.assertEqual(traces(), [])

    def test_with_cleans_up_when_it_is_ended(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL):
            with self.subTest(signal=number.name):
                line = [HERE / "with", "--name", NAME, "--hosts", "2", "--", "sh", "-c", "echo here; exec sleep 1000"]
                with subprocess.Popen(line, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
                    self.assertEqual(process.stdout.readline(), "here\n")
                    if number == signal.SIGINT:
                        os.killpg(process.pid, number)  # as a terminal does
                    else:
                        process.send_signal(number)
                    process.wait(timeout=120)
                self.assertTrue(wait_until(lambda: not traces()), traces())


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    os.environ["COMMTUNE_SWITCH"] = sys.argv.pop(1)
    try:
        emulation.require_support()
    except units.UnsupportedError as error:
        print(f"skipped: {error}")
        sys.exit(units.EXIT_UNSUPPORTED)
    unittest.main(verbosity=2)


main()
