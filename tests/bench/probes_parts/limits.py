"""What a probe must not do: send more than it was allowed, take longer, or disturb another probe."""

import json
import subprocess
import time

FLAGS = ["--hosts", "4", "--rate", "1Gbit", "--delay", "200us"]
ALLOWED_BYTES = 64 << 20
GOODPUT = 1448 / 1538  # payload in what Ethernet counts
BUDGET, BUDGET_SLACK = 3.0, 0.3


def check_traffic(machine, report):
    """By the switch's own count, which has acknowledgements, commands and reports in it as well."""
    with machine.cluster(FLAGS):
        found, _, _ = machine.probe(4, "--traffic", str(ALLOWED_BYTES), "--budget", "20s")
        ports = json.loads(machine.script("control", "status"))["ports"]
    sent = max(port["sent_bytes"] for port in ports) * GOODPUT
    word = report.expect(
        sent <= ALLOWED_BYTES and found["traffic_bytes"] <= ALLOWED_BYTES,
        f"sent {sent / 1e6:.1f} MB of {ALLOWED_BYTES / 1e6:.1f} MB allowed",
    )
    print(
        f"\ntraffic: {ALLOWED_BYTES / 1e6:.1f} MB a rank allowed, {found['traffic_bytes'] / 1e6:.1f} MB counted by the probe, "
        f"{sent / 1e6:.1f} MB by the switch for the busiest host  {word}"
    )


def check_budget(machine, report):
    with machine.cluster(FLAGS):
        found, _, seconds = machine.probe(4, "--budget", f"{BUDGET}s")
    elapsed = found["elapsed_seconds"]
    word = report.expect(elapsed <= BUDGET + BUDGET_SLACK, f"budget of {BUDGET} s: took {elapsed:.2f} s")
    print(f"time: {BUDGET:.1f} s allowed, {elapsed:.2f} s taken, {seconds:.1f} s with the start of the ranks  {word}")


def check_two(machine, report):
    with machine.cluster(FLAGS):
        first = machine.start(4, machine.folder / "first.json", "--budget", "6s")
        time.sleep(2)
        second = machine.start(4, machine.folder / "second.json", "--budget", "6s")
        start = time.monotonic()
        _, message = second.communicate(timeout=30)
        seconds = time.monotonic() - start
        line = next((line for line in message.splitlines() if "another probe" in line), message.strip()[:120])
        try:
            first.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            first.kill()
    good = second.returncode != 0 and "another probe is running on host" in line and first.returncode == 0
    word = report.expect(good, f"a second probe at the same time: {line}")
    print(f"a second probe at the same time: refused after {seconds:.1f} s  {word}: {line.strip()[:120]}")


def check(machine, report):
    check_traffic(machine, report)
    check_budget(machine, report)
    check_two(machine, report)
