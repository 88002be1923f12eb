"""In the guest: hosts as a user's are, for `tune`, `mpirun` and perftest.

A host (h1, h2, ...) is a network namespace of that name with a host name, one RDMA card (rxe0, rxe1, ...: it finds no other
to open) and eth0 (10.78.0.1, ...), which is on the same switch as the cards: over it ranks are started, and TCP runs. The
cards' own packets stay in the guest's first namespace, as soft-RoCE wants it.
"""

import os
import subprocess
from pathlib import Path

RUN = Path("/run/guest")
SUBNET = "10.78.0"
MTU = 4200

# As a host: NAME DEVICE COMMAND...: takes the name, and has one card's file, whatever host it was started from.
ENTER = """\
echo "$1" >/proc/sys/kernel/hostname
mount -t tmpfs cards /dev/infiniband
cp -a /run/guest/cards/$2 /dev/infiniband/
shift 2
exec "$@"
"""


def call(*command):
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)


def device_file(card):
    """Of the RDMA card of that name: "uverbs0"."""
    for entry in Path("/sys/class/infiniband_verbs").glob("uverbs*"):
        if (entry / "ibdev").read_text().strip() == card:
            return entry.name
    raise RuntimeError(f"{card} has no device file")


def make_host(number):
    name = f"h{number}"
    call("ip", "netns", "add", name)
    call("ip", "link", "add", "eth0", "mtu", str(MTU), "netns", name, "type", "veth", "peer", f"eth{number}", "mtu", str(MTU))
    call("ip", "link", "set", f"eth{number}", "master", "switch", "up")
    call("ip", "-netns", name, "link", "set", "lo", "up")
    call("ip", "-netns", name, "addr", "add", f"{SUBNET}.{number}/24", "dev", "eth0")
    call("ip", "-netns", name, "link", "set", "eth0", "up")


def command_on(number, command):
    """The command line that runs it on that host."""
    name = f"h{number}"
    enter = ["ip", "netns", "exec", name, "unshare", "--uts", "bash", str(RUN / "enter"), name, device_file(f"rxe{number - 1}")]
    return [*enter, *command]


def write_remote_shell(count):
    """The program that Open MPI calls in the place of ssh: HOST COMMAND..."""
    lines = ["#!/bin/bash", "host=$1; shift", "case $host in"]
    lines += [f'h{number}) exec {" ".join(command_on(number, ["sh", "-c"]))} "$*" ;;' for number in range(1, count + 1)]
    path = RUN / "rsh"
    path.write_text("\n".join([*lines, "esac", 'echo "$host: no such host" >&2', "exit 255", ""]))
    path.chmod(0o755)


def make_hosts(count):
    """returns  a hostfile of all of them, a rank each"""
    (RUN / "enter").write_text(ENTER)
    call("cp", "-a", "/dev/infiniband", str(RUN / "cards"))
    names = "".join(f"{SUBNET}.{number} h{number}\n" for number in range(1, count + 1))
    Path("/etc/hosts").write_text("127.0.0.1 localhost\n" + names)
    for number in range(1, count + 1):
        make_host(number)
    write_remote_shell(count)
    hostfile = RUN / "hostfile"
    hostfile.write_text("".join(f"h{number} slots=1\n" for number in range(1, count + 1)))
    return hostfile


def environment():
    """Makes Open MPI reach the hosts, whose ranks share few processors."""
    network = f"{SUBNET}.0/24"
    return {
        **os.environ,
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_plm_rsh_agent": str(RUN / "rsh"),
        "OMPI_MCA_plm_rsh_no_tree_spawn": "1",
        "OMPI_MCA_pml": "ob1",
        "OMPI_MCA_btl": "tcp,self",
        "OMPI_MCA_btl_tcp_if_include": network,
        "OMPI_MCA_oob_tcp_if_include": network,
        "OMPI_MCA_hwloc_base_binding_policy": "none",
        "OMPI_MCA_mpi_yield_when_idle": "1",
    }
