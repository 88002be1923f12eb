"""Hosts that die, hang or are cut off in the middle of a probe."""

import os
import signal
import subprocess
import time

FAULT_TIMEOUT, FAULT_AFTER, FAULT_LIMIT = 3.0, 3.0, 15.0


def fault_dies(machine, host):
    for pid in machine.ranks_on(host):
        os.kill(pid, signal.SIGKILL)


def fault_hangs(machine, host):
    for pid in machine.ranks_on(host):
        os.kill(pid, signal.SIGSTOP)


def fault_is_cut(machine, host):
    machine.script("control", "cut", host["name"].removeprefix("h"))


FAULTS = {"dies": fault_dies, "hangs": fault_hangs, "is cut off": fault_is_cut}


def run_fault(machine, name, inject, report):
    """The third host fails in the middle: one message that names it, all ranks gone in time, samples kept."""
    with machine.cluster(["--hosts", "4", "--rate", "500Mbit", "--delay", "200us"]) as truth:
        host = truth["hosts"][2]
        out = machine.folder / f"fault-{name.split()[-1]}.json"
        running = machine.start(4, out, "--budget", "30s", "--timeout", f"{FAULT_TIMEOUT}s")
        time.sleep(FAULT_AFTER)
        inject(machine, host)
        start = time.monotonic()
        while any(map(machine.ranks_on, truth["hosts"])) and time.monotonic() - start < FAULT_LIMIT:
            time.sleep(0.2)
        seconds = time.monotonic() - start
        ended = "the command with them"
        try:
            _, message = running.communicate(timeout=max(FAULT_LIMIT - seconds, 0.1))
        except subprocess.TimeoutExpired:
            ended = "mpirun waits for the host"
            running.kill()
            _, message = running.communicate()
        samples = sum(1 for line in out.read_text().splitlines() if '"sample"' in line)
        left = [pid for one in truth["hosts"] for pid in machine.ranks_on(one)]
        named = host["name"] in message
        good = running.returncode not in (0, None) and seconds < FAULT_LIMIT and samples > 0 and named and not left
        word = report.expect(good, f"host {name}: {seconds:.1f} s, {samples} samples, named {named}, left {left}")
        line = next((line for line in message.splitlines() if host["name"] in line), message.strip()[:120])
        print(
            f"host {name:10} ranks gone after {seconds:4.1f} s ({ended}), {samples:4} samples kept, {len(left)} ranks left  "
            f"{word}: {line.strip()[:110]}"
        )
