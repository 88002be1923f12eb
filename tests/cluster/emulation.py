"""Emulated clusters: every host a network namespace, all joined by commtune-switch.

What `up`, `down`, `exec`, `with`, `truth` and `control` share. README.md is the manual. Python 3.9 or later,
standard library only; needs iproute2 and util-linux, and root.
"""

import contextlib
import glob
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from units import ClusterError, UnsupportedError, UsageError

STATE_ROOT = Path("/run/commtune-cluster")
NETNS_ROOT = Path("/run/netns")
HOSTS_ROOT = Path("/etc/netns")
DEVICE = "eth0"
SUBNET = "10.77.0"

ETHERNET_HEADER_BYTES = 14
WIRE_OVERHEAD_BYTES = 24  # preamble, check sequence, gap: see packet_train.h
TCP_IP_HEADER_BYTES = 52  # IPv4 20, TCP 20, time stamps 12


# ---- names and places ----


def check_name(name):
    if not re.fullmatch(r"[A-Za-z0-9_]{1,32}", name):
        raise UsageError(f"name = '{name}': must be 1 to 32 letters, digits or underscores")
    return name


def host_name(number):
    return f"h{number}"


def address(number):
    return f"{SUBNET}.{number}"


def mac_address(number):
    return f"02:c7:00:00:{number >> 8:02x}:{number & 255:02x}"


def namespace(name, number):
    return f"commtune-{name}-{host_name(number)}"


def state_dir(name):
    return STATE_ROOT / name


def load_state(name):
    try:
        return json.loads((state_dir(name) / "state.json").read_text())
    except FileNotFoundError:
        raise ClusterError(f"no cluster '{name}' is up; start it with tests/cluster/up --name {name}") from None


@contextlib.contextmanager
def exclusive(name, seconds=30):
    """One process at a time brings a cluster up or down. The lock is a name in the abstract socket space: it leaves
    no file, and the kernel frees it if its holder is killed."""
    deadline = time.monotonic() + seconds
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as lock:
        while True:
            try:
                lock.bind(f"\0commtune-cluster-{name}")
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise ClusterError(f"another process is bringing cluster '{name}' up or down") from None
                time.sleep(0.02)
        yield


def find_switch(path):
    """The switch's program: as given, from COMMTUNE_SWITCH, or the newest in a build folder of this repository."""
    given = path or os.environ.get("COMMTUNE_SWITCH")
    if given:
        if not os.access(given, os.X_OK):
            raise UsageError(f"switch = '{given}': no such program")
        return os.path.abspath(given)
    root = Path(__file__).resolve().parents[2]
    found = glob.glob(str(root / "build*" / "tests" / "cluster" / "commtune-switch"))
    if not found:
        raise ClusterError(
            "commtune-switch is not built: cmake -S . -B build -G Ninja && ninja -C build commtune-switch\n"
            "(built elsewhere: pass --switch PATH or set COMMTUNE_SWITCH)"
        )
    return max(found, key=os.path.getmtime)


def require_support():
    if os.geteuid() != 0:
        raise UnsupportedError("emulated clusters need root (network namespaces and TAP devices)")
    if not os.path.exists("/dev/net/tun"):
        raise UnsupportedError("/dev/net/tun is missing: this kernel or container has no TAP devices")
    for program in ("ip", "tc", "unshare"):
        if not shutil.which(program):
            raise UnsupportedError(f"'{program}' is missing: apt-get install iproute2 util-linux")
    trial = ["unshare", "--net", "ip", "link", "set", "lo", "up"]
    capable = subprocess.run(trial, capture_output=True, text=True, check=False)
    if capable.returncode != 0:
        reason = capable.stderr.strip()
        raise UnsupportedError(f"no right to make network namespaces (CAP_SYS_ADMIN, CAP_NET_ADMIN): {reason}")


# ---- the running switch ----


def ask(name, request):
    """One request to the switch; its answer. Raises ClusterError if it refuses or is gone."""
    path = state_dir(name) / "control"
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(10)
            connection.connect(str(path))
            connection.sendall(request.encode() + b"\n")
            with connection.makefile() as replies:
                line = replies.readline()
    except OSError as error:
        raise ClusterError(f"the switch of cluster '{name}' does not answer on {path}: {error}") from None
    if not line:
        raise ClusterError(f"the switch of cluster '{name}' hung up")
    reply = json.loads(line)
    if "error" in reply:
        raise ClusterError(reply["error"])
    return reply


def change_port(name, number, keys):
    """Changes a host's link while the cluster runs; the switch's answer."""
    state = load_state(name)
    reply = ask(name, " ".join(["set", str(number), *(f"{key}={value}" for key, value in keys.items())]))
    if "up" in keys:
        set_card_queue(name, number, state["mtu"], keys["up"])
    return reply


def truth(name):
    """What the emulated network does now, exactly: the reference for probes and predictions."""
    state = load_state(name)
    status = ask(name, "status")
    ports, groups, mtu = status["ports"], status["groups"], state["mtu"]
    goodput_ratio = (mtu - TCP_IP_HEADER_BYTES) / (mtu + ETHERNET_HEADER_BYTES + WIRE_OVERHEAD_BYTES)
    hosts, pairs = [], []
    for port in ports:
        hosts.append(
            {
                "name": host_name(port["host"]),
                "address": address(port["host"]),
                "netns": str(NETNS_ROOT / namespace(name, port["host"])),
                "group": port["group"],
                "up_bytes_per_second": port["up_bytes_per_second"],
                "down_bytes_per_second": port["down_bytes_per_second"],
                "delay_seconds": port["delay_ns"] / 1e9,
                "buffer_bytes": port["buffer_bytes"],
                "cut": port["cut"],
            }
        )
    for source in ports:
        for target in ports:
            if source is target:
                continue
            rate = min(source["up_bytes_per_second"], target["down_bytes_per_second"])
            delay = (source["delay_ns"] + target["delay_ns"]) / 2e9
            if source["group"] != target["group"]:
                out = groups[source["group"]]
                rate = min(rate, out["trunk_bytes_per_second"], groups[target["group"]]["trunk_bytes_per_second"])
                delay += out["trunk_delay_ns"] / 1e9
            pairs.append(
                {
                    "from": host_name(source["host"]),
                    "to": host_name(target["host"]),
                    "wire_bytes_per_second": rate,
                    "goodput_bytes_per_second": rate * goodput_ratio,
                    "delay_seconds": delay,
                }
            )
    return {"name": name, "mtu": mtu, "goodput_ratio": goodput_ratio, "hosts": hosts, "groups": groups, "pairs": pairs}


# ---- up ----


def run_command(*command, text=None):
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ClusterError(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def start_switch(options, directory):
    """Starts the switch as a daemon; returns its process id once all devices exist."""
    log_path = directory / "switch.log"
    with open(log_path, "w", encoding="utf-8") as log:
        process = subprocess.Popen(
            [find_switch(options.switch), *options.switch_flags(directory / "control", lambda number: NETNS_ROOT / namespace(options.name, number))],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            cwd="/",
            start_new_session=True,
        )
    (directory / "switch.pid").write_text(f"{process.pid}\n")
    with process.stdout as ready:
        if ready.readline() != b"ready\n":
            process.wait()
            raise ClusterError(log_path.read_text().strip() or "the switch ended without a word")
    return process.pid


def set_card_queue(name, number, mtu, up_bytes_per_second):
    """Makes the host's own queue drain at the rate of its uplink.

    A TAP device takes whatever it is given, so a sender would never feel its card: TCP's limit on what one socket
    may queue below it (tcp_limit_output_bytes) would not work and windows would grow to the whole send buffer.
    The queueing discipline holds the packets as a card's queue does. It counts packets without what Ethernet adds
    to them. Bursts of two super-frames make up for its timer's being late; the exact pace is set by the switch.
    """
    packet = mtu + ETHERNET_HEADER_BYTES
    rate = up_bytes_per_second * packet // (packet + WIRE_OVERHEAD_BYTES)
    headers = TCP_IP_HEADER_BYTES + ETHERNET_HEADER_BYTES
    burst = 2 * (65536 * (mtu + headers) // mtu + packet)
    run_command(
        *("tc", "-netns", namespace(name, number), "qdisc", "replace", "dev", DEVICE, "root", "tbf"),
        *("rate", f"{rate}bps", "burst", str(burst), "limit", str(256 << 20)),
    )


def configure_host(options, number, count, port):
    """Addresses, neighbours and settings of one host."""
    name = namespace(options.name, number)
    settings = "".join(
        f"echo '{value}' > /proc/sys/{key.replace('.', '/')} || exit 1\n" for key, value in options.sysctls().items()
    )
    run_command("ip", "netns", "exec", name, "sh", "-c", settings)
    lines = [
        "link set lo up",
        f"addr add {address(number)}/24 dev {DEVICE}",
        f"link set {DEVICE} mtu {options.mtu} txqueuelen 4096 up",
        # By route: a namespace may not choose a restricted algorithm as its default, nor look at the root's list.
        f"route replace {SUBNET}.0/24 dev {DEVICE} src {address(number)} congctl {options.congestion}",
    ]
    for other in range(1, count + 1):
        if other != number:
            lines.append(f"neigh add {address(other)} lladdr {mac_address(other)} dev {DEVICE} nud permanent")
    run_command("ip", "-netns", name, "-batch", "-", text="\n".join(lines) + "\n")
    set_card_queue(options.name, number, options.mtu, port["up"])


def write_hosts_files(name, count):
    """/etc/hosts as each namespace sees it (`ip netns exec` mounts it there)."""
    text = "127.0.0.1 localhost\n" + "".join(f"{address(n)} {host_name(n)}\n" for n in range(1, count + 1))
    for number in range(1, count + 1):
        directory = HOSTS_ROOT / namespace(name, number)
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "hosts").write_text(text)


def write_remote_shell(name, count, directory):
    """The program that Open MPI calls in the place of ssh: HOST COMMAND..."""
    cases = "".join(f"  {host_name(n)}|{address(n)}) host={host_name(n)} ;;\n" for n in range(1, count + 1))
    path = directory / "rsh"
    path.write_text(
        "#!/bin/sh\n"
        "# HOST COMMAND...: runs a shell command on a host of the emulated cluster\n"
        'case "$1" in\n' + cases + f'  *) echo "$1: no such host in the emulated cluster {name}" >&2; exit 255 ;;\n'
        "esac\n"
        "shift\n"
        f'exec ip netns exec "commtune-{name}-$host" unshare --uts \\\n'
        '  sh -c "echo $host > /proc/sys/kernel/hostname; $*"\n'
    )
    path.chmod(0o755)


def build(options, directory):
    count = options.host_count()
    for number in range(1, count + 1):
        run_command("ip", "netns", "add", namespace(options.name, number))
    pid = start_switch(options, directory)
    for number, port in enumerate(options.ports(), start=1):
        configure_host(options, number, count, port)
    write_hosts_files(options.name, count)
    write_remote_shell(options.name, count, directory)
    hostfile = "".join(f"{host_name(n)} slots={options.slots}\n" for n in range(1, count + 1))
    (directory / "hostfile").write_text(hostfile)
    state = {"name": options.name, "hosts": count, "slots": options.slots, "mtu": options.mtu, "switch_pid": pid}
    (directory / "state.json").write_text(json.dumps(state) + "\n")


def up(options):
    """Brings a cluster up, wholly or not at all; returns its state directory."""
    require_support()
    check_name(options.name)
    find_switch(options.switch)
    options.check()
    directory = state_dir(options.name)
    with exclusive(options.name):
        if switch_pid(options.name):
            raise ClusterError(f"cluster '{options.name}' is up already; take it down or use another --name")
        remove(options.name)  # what a killed `up` may have left
        directory.mkdir(parents=True)
        try:
            build(options, directory)
        except BaseException:
            remove(options.name)
            raise
    return directory


# ---- down ----


def switch_pid(name):
    """Process id of the cluster's switch, if it runs."""
    try:
        pid = int((state_dir(name) / "switch.pid").read_text())
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError, ValueError):
        return None
    return pid if str(state_dir(name) / "control").encode() in arguments else None


def wait_gone(alive, seconds):
    deadline = time.monotonic() + seconds
    while alive() and time.monotonic() < deadline:
        time.sleep(0.01)
    return not alive()


def stop_switch(name):
    pid = switch_pid(name)
    if pid is None:
        return
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        with contextlib.suppress(ChildProcessError):
            wait_gone(lambda: os.waitpid(pid, os.WNOHANG) == (0, 0), 2)
        if wait_gone(lambda: switch_pid(name) is not None, 2):
            return


def ancestors():
    """This process and those that started it."""
    result, pid = set(), os.getpid()
    while pid > 1:
        result.add(pid)
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return result


def processes_in(names):
    """Processes that live in these namespaces, apart from this one and its ancestors."""
    inodes = set()
    for name in names:
        with contextlib.suppress(OSError):
            inodes.add(os.stat(NETNS_ROOT / name).st_ino)
    spared, found = ancestors(), []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) not in spared:
            with contextlib.suppress(OSError):
                if os.stat(f"/proc/{entry}/ns/net").st_ino in inodes:
                    found.append(int(entry))
    return found


def kill_processes(names):
    for number, seconds in ((signal.SIGTERM, 1), (signal.SIGKILL, 2)):
        for pid in processes_in(names):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        if wait_gone(lambda: processes_in(names), seconds):
            return


def namespaces_of(name):
    pattern = re.compile(rf"commtune-{name}-h\d+")
    return [entry.name for entry in NETNS_ROOT.glob(f"commtune-{name}-h*") if pattern.fullmatch(entry.name)]


def remove(name):
    names = namespaces_of(name)
    kill_processes(names)
    stop_switch(name)
    for each in names:
        run_command("ip", "netns", "delete", each)
    for directory in [*HOSTS_ROOT.glob(f"commtune-{name}-h*"), state_dir(name)]:
        shutil.rmtree(directory, ignore_errors=True)
    for directory in (HOSTS_ROOT, STATE_ROOT):
        with contextlib.suppress(OSError):
            directory.rmdir()  # if nobody else uses it


def down(name):
    """Ends what runs in the cluster and removes every trace of it; nothing to do is no error."""
    with exclusive(check_name(name)):
        remove(name)


# ---- exec ----


def environment(name):
    """Variables that make Open MPI reach the hosts; added to the caller's."""
    state = load_state(name)
    directory = state_dir(name)
    subnet = f"{SUBNET}.0/24"
    shared_memory = ",vader" if state["slots"] > 1 else ""
    return {
        **os.environ,
        "COMMTUNE_CLUSTER": name,
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_plm_rsh_agent": str(directory / "rsh"),
        "OMPI_MCA_plm_rsh_no_tree_spawn": "1",
        "OMPI_MCA_orte_default_hostfile": str(directory / "hostfile"),
        "OMPI_MCA_pml": "ob1",
        "OMPI_MCA_btl": "tcp,self" + shared_memory,
        "OMPI_MCA_btl_tcp_if_include": subnet,
        "OMPI_MCA_oob_tcp_if_include": subnet,
        # All hosts share this machine's cores: ranks must neither be bound (each host would bind its first rank
        # to core 0) nor spin at the others' expense.
        "OMPI_MCA_hwloc_base_binding_policy": "none",
        "OMPI_MCA_mpi_yield_when_idle": "1",
    }


def host_command(name, number, command):
    """The command line that runs `command` on a host under that host's name."""
    return [
        *("ip", "netns", "exec", namespace(name, number), "unshare", "--uts", "sh", "-c"),
        'echo "$1" > /proc/sys/kernel/hostname; shift; exec "$@"',
        *("sh", host_name(number), *command),
    ]


def exec_on(name, number, command):
    """Replaces this process by `command` on a host."""
    state = load_state(name)
    if not 1 <= number <= state["hosts"]:
        raise UsageError(f"host = {number}: cluster '{name}' has {state['hosts']} hosts")
    line = host_command(name, number, command)
    os.execvpe(line[0], line, environment(name))


# ---- what each script's main does ----


def raise_on_signals():
    """SIGTERM and SIGHUP end the script as Ctrl-C does: through its clean-up."""

    def interrupt(number, _frame):
        raise SystemExit(128 + number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)


def main(body):
    """Runs a script's body; errors become one line and an exit status."""
    raise_on_signals()
    try:
        sys.exit(body() or 0)
    except ClusterError as error:
        print(f"{Path(sys.argv[0]).name}: {error}", file=sys.stderr)
        sys.exit(error.status)
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
