"""Hosts with soft-RoCE cards: those of a virtual machine (tests/rdma), in which the bench starts itself again."""

import contextlib
import os
import sys
from pathlib import Path

from .cases import Case, Network

RDMA = Path(__file__).resolve().parents[2] / "rdma"
INSIDE = Path("/run/guest/command")  # of a virtual machine
SECONDS = 3000  # for the machine and all in it
# Of a probe: a guest without hardware virtualisation is many times slower than a host, and operations scatter by a third. In
# a minute small sizes, which are cheap to repeat, took most of the time, and a plan's messages were priced by one look at 512 KiB.
LARGEST, BUDGET = "8M", "120s"
CHECK = "60s"  # in the usual five seconds each leading plan would run once or twice, while the guest's code is still translated


class RdmaNetwork(Network):
    """So many hosts of the guest, a rank each; nobody knows what their cards can do."""

    @property
    def emulated(self):
        return False

    @property
    def name(self):
        return f"{self.hosts} hosts with soft-RoCE"

    @property
    def bytes_per_second(self):
        return 0.0


def cases(hosts):
    """Iterations of more than 2 s, so that what else the guest does is small beside them."""
    return (Case("resnet50", RdmaNetwork(hosts), 2, 2.0),)


def again_in_a_machine(hosts, arguments):
    """The same command in a virtual machine with so many cards; its exit status. 77 where none can be had."""
    sys.path.insert(0, str(RDMA))
    import machine

    try:
        return machine.in_guest([sys.executable, *arguments], hosts, SECONDS, heard=lambda line: print(line, flush=True))
    except machine.Unavailable as error:
        print(f"accuracy: skipped: {error}")
        return 77
    except machine.MachineError as error:
        print(f"accuracy: {error}", file=sys.stderr)
        return 3


@contextlib.contextmanager
def cluster(network):
    sys.path.insert(0, str(RDMA / "guest"))
    import hosts

    yield Guest(hosts, network.hosts)


class Guest:
    """In the place of an emulated cluster; its hosts are made once."""

    def __init__(self, hosts, count):
        self.name = "guest"
        self.place = ["--hosts", str(hosts.make_hosts(count)), "--network", "verbs"]
        self.command_on = hosts.command_on
        os.environ.update(hosts.environment())

    @staticmethod
    def status():
        return None  # no switch
