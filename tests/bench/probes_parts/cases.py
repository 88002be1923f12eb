"""Emulated clusters whose links are known exactly."""

import shlex
from dataclasses import dataclass, field


@dataclass
class Case:
    name: str
    flags: list
    hosts: int
    slow: dict = field(default_factory=dict)  # host name: kind of verdict
    groups: int = 1
    quick: bool = False


CASES = [
    Case("2 hosts, 2 Gb/s, 50 us", ["--hosts", "2", "--rate", "2Gbit", "--delay", "50us"], 2),
    Case("4 hosts, 1 Gb/s, 200 us", ["--hosts", "4", "--rate", "1Gbit", "--delay", "200us"], 4, quick=True),
    Case("3 hosts, 100 Mb/s, 2 ms", ["--hosts", "3", "--rate", "100Mbit", "--delay", "2ms"], 3, quick=True),
    Case("8 hosts, 500 Mb/s, 500 us", ["--hosts", "8", "--rate", "500Mbit", "--delay", "500us"], 8),
    Case(
        "slow host, 4 hosts, 1 Gb/s, 100 us",
        ["--hosts", "4", "--rate", "1Gbit", "--delay", "100us", "--host", "3:200Mbit"],
        4,
        slow={"h3": "slow-host"},
        quick=True,
    ),
    Case(
        "asymmetric host, 4 hosts, 500 Mb/s, 200 us",
        ["--hosts", "4", "--rate", "500Mbit", "--delay", "200us", "--host", "2:up=100Mbit,down=500Mbit"],
        4,
        slow={"h2": "slow-send"},
    ),
    Case(
        "groups, 2 x 3 hosts, 1 Gb/s, trunk 300 Mb/s",
        ["--groups", "3,3", "--rate", "1Gbit", "--delay", "200us", "--trunk", "300Mbit"],
        6,
        groups=2,
    ),
]


def also(flags):
    """A uniform cluster by the flags of tests/cluster/up."""
    words = shlex.split(flags)
    hosts = int(words[words.index("--hosts") + 1])
    return Case(flags.replace("--", ""), words, hosts)
