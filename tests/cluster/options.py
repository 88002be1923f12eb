"""What `up` and `with` can be told about a cluster."""

import dataclasses

from units import UsageError, parse_bytes, parse_port_keys, parse_rate, parse_time

MAX_HOSTS = 250


@dataclasses.dataclass
class ClusterOptions:
    """What `up` and `with` take."""

    hosts: int = 4
    rate: str = "1Gbit"
    delay: str = "200us"
    buffer: str = "1M"
    host: list = dataclasses.field(default_factory=list)
    groups: str = ""
    trunk: str = ""
    trunk_delay: str = "0"
    trunk_buffer: str = "1M"
    slots: int = 1
    mtu: int = 1500
    congestion: str = "cubic"
    sysctl: list = dataclasses.field(default_factory=list)
    spin: str = "20us"
    may_halt: bool = False
    switch: str = ""
    name: str = "default"

    def group_sizes(self):
        if not self.groups:
            return [self.hosts]
        try:
            sizes = [int(size) for size in self.groups.split(",")]
        except ValueError:
            raise UsageError(f"groups = '{self.groups}': expected host counts, such as 4,4") from None
        if min(sizes) < 1:
            raise UsageError(f"groups = '{self.groups}': each group needs a host")
        return sizes

    def host_count(self):
        count = sum(self.group_sizes())
        if not 1 <= count <= MAX_HOSTS:
            raise UsageError(f"hosts = {count}: must be between 1 and {MAX_HOSTS}")
        return count

    def ports(self):
        """Settings of each host's port in base units, in the order of the hosts."""
        rate = parse_rate(self.rate)
        common = {"up": rate, "down": rate, "delay": parse_time(self.delay), "buffer": parse_bytes(self.buffer)}
        ports = [dict(common) for _ in range(self.host_count())]
        for text in self.host:
            number, separator, keys = text.partition(":")
            if not separator or not number.isdigit() or not 1 <= int(number) <= len(ports):
                raise UsageError(f"host = '{text}': expected N:RATE or N:KEY=VALUE,... with N up to {len(ports)}")
            ports[int(number) - 1].update(parse_port_keys(keys))
        return ports

    def check(self):
        """Raises UsageError if something is wrong with these options."""
        self.switch_flags("", str)
        self.sysctls()
        if self.slots < 1:
            raise UsageError(f"slots = {self.slots}: must be at least 1")
        if not 576 <= self.mtu <= 9000:
            raise UsageError(f"mtu = {self.mtu}: must be between 576 and 9000")

    def switch_flags(self, control, netns):
        """The command line of the switch after its name; netns(number) is the path of a host's namespace."""
        sizes = self.group_sizes()
        if len(sizes) > 1 and not self.trunk:
            raise UsageError("--groups needs --trunk RATE")
        trunk = parse_rate(self.trunk or self.rate)
        flags = ["--control", str(control), "--spin", str(parse_time(self.spin))]
        flags += ["--may-halt"] if self.may_halt else []
        for _ in sizes:
            delay, buffer = parse_time(self.trunk_delay), parse_bytes(self.trunk_buffer)
            flags += ["--trunk", f"rate={trunk},delay={delay},buffer={buffer}"]
        group_of = [group for group, size in enumerate(sizes) for _ in range(size)]
        for number, (group, port) in enumerate(zip(group_of, self.ports()), start=1):
            keys = ",".join(f"{key}={value}" for key, value in port.items())
            flags += ["--port", f"netns={netns(number)},group={group},{keys}"]
        return flags

    def sysctls(self):
        """Settings of each namespace; a later one wins."""
        pairs = {
            "net.ipv6.conf.all.disable_ipv6": "1",
            "net.ipv6.conf.default.disable_ipv6": "1",
            "net.ipv4.tcp_slow_start_after_idle": "0",
            "net.ipv4.tcp_no_metrics_save": "1",
        }
        for text in self.sysctl:
            key, separator, value = text.partition("=")
            if not separator:
                raise UsageError(f"sysctl = '{text}': expected KEY=VALUE")
            pairs[key] = value
        return pairs


def add_cluster_flags(parser):
    defaults = ClusterOptions()
    parser.add_argument("--hosts", type=int, default=defaults.hosts, metavar="N", help="hosts h1..hN (default %(default)s)")
    parser.add_argument("--rate", default=defaults.rate, help="of each host's link, per direction, on the wire (default %(default)s)")
    parser.add_argument("--delay", default=defaults.delay, help="one way, host to host (default %(default)s)")
    parser.add_argument("--buffer", default=defaults.buffer, metavar="BYTES", help="before each host's downlink (default %(default)s)")
    parser.add_argument("--host", action="append", default=[], metavar="N:KEYS", help="other settings for host N: 3:200Mbit or 3:up=200Mbit,down=1Gbit,delay=500us,buffer=64K")
    parser.add_argument("--groups", default="", metavar="N,N", help="groups of hosts with a trunk between them (in the place of --hosts)")
    parser.add_argument("--trunk", default="", metavar="RATE", help="of each group's trunk, per direction, shared by its hosts")
    parser.add_argument("--trunk-delay", default=defaults.trunk_delay, metavar="TIME", help="one way, between groups (default %(default)s)")
    parser.add_argument("--trunk-buffer", default=defaults.trunk_buffer, metavar="BYTES", help="before each trunk (default %(default)s)")
    parser.add_argument("--slots", type=int, default=defaults.slots, metavar="K", help="ranks per host in the hostfile (default %(default)s)")
    parser.add_argument("--mtu", type=int, default=defaults.mtu, help="(default %(default)s)")
    parser.add_argument("--congestion", default=defaults.congestion, help="TCP congestion control (default %(default)s)")
    parser.add_argument("--sysctl", action="append", default=[], metavar="KEY=VALUE", help="set in each host")
    parser.add_argument("--spin", default=defaults.spin, metavar="TIME", help="the switch waits awake for the last stretch before a deadline (default %(default)s)")
    parser.add_argument("--may-halt", action="store_true", help="idle processors may halt (default: they poll, as on machines tuned for latency)")
    parser.add_argument("--switch", default="", metavar="PATH", help="the commtune-switch program (default: COMMTUNE_SWITCH, then build*/tests/cluster)")
    add_name_flag(parser)


def add_name_flag(parser):
    parser.add_argument("--name", default="default", help="of the cluster; several may be up (default %(default)s)")


def cluster_options(arguments):
    fields = {field.name for field in dataclasses.fields(ClusterOptions)}
    return ClusterOptions(**{key: value for key, value in vars(arguments).items() if key in fields})
