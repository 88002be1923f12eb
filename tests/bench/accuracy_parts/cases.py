"""The matrix: which model, scaled how, on which cluster."""

import dataclasses

from race_parts import emulated, jobs

from . import models

GOODPUT = 0.94  # of a rate, that TCP's payload gets in full packets
_BYTES_PER_SECOND = {"Mbit": 1e6 / 8, "Gbit": 1e9 / 8}


def _bytes_per_second(rate):
    return float(rate[:-4]) * _BYTES_PER_SECOND[rate[-4:]]


def _rate_of(odd_host, rate):
    """Of the settings of tests/cluster/up --host: 3:500Mbit or 3:rate=500Mbit,delay=1ms; the others' rate if they have none."""
    keys = dict(part.rpartition("=")[::2] for part in odd_host.partition(":")[2].split(","))
    return keys.get("", keys.get("rate", rate))


@dataclasses.dataclass(frozen=True)
class Network:
    """Flags of tests/cluster/up; without hosts: so many ranks on this machine, their links as they are."""

    hosts: int
    rate: str = ""
    delay: str = ""
    odd_host: str = ""
    slots: int = 1

    @property
    def local(self):
        return self.hosts == 0

    @property
    def emulated(self):
        """Whether its links do what they say: they are emulated, and the emulation carries all of them at once."""
        return not self.local and sum(self._rates) <= emulated.CARRIED

    @property
    def _rates(self):
        """Of the hosts' links, in bytes a second on the wire."""
        each = _bytes_per_second(self.rate)
        odd = [_bytes_per_second(_rate_of(self.odd_host, self.rate))] if self.odd_host else []
        return [each] * (self.hosts - len(odd)) + odd

    @property
    def ranks(self):
        return self.hosts * self.slots if self.hosts else self.slots

    @property
    def name(self):
        if self.local:
            return f"{self.slots} ranks here"
        slots = f" x{self.slots} ranks" if self.slots > 1 else ""
        odd = f" but {self.odd_host}" if self.odd_host else ""
        return f"{self.hosts}x{self.rate}/{self.delay}{odd}{slots}"

    @property
    def bytes_per_second(self):
        """Payload of a ring's slowest link; 0 where nobody knows."""
        return 0.0 if self.local else GOODPUT * min(self._rates)

    @property
    def ring_share(self):
        """Of all gradients' bytes, what a ring sends over each link."""
        return 2 * (self.ranks - 1) / self.ranks


@dataclasses.dataclass(frozen=True)
class Case:
    """A model (of models.py) with its tensors divided by `divisor` and layer times that add up to `compute` seconds."""

    model: str
    network: Network
    divisor: float
    compute: float
    quick: bool = False

    @property
    def name(self):
        return f"{self.model}/{self.divisor:g} {self.compute:g}s on {self.network.name}"

    def profile(self):
        return jobs.scaled(models.load(self.model), self.divisor, self.compute)

    @property
    def ratio(self):
        """A ring's time for all bytes over compute; 0 where nobody knows the links."""
        if not self.network.bytes_per_second:
            return 0.0
        sent = self.network.ring_share * jobs.gradient_bytes(self.profile())
        return sent / self.network.bytes_per_second / self.compute


GIGABIT = Network(4, "1Gbit", "200us")
SLOW = Network(3, "300Mbit", "100us")
PAIR = Network(2, "1Gbit", "50us")
FAST_PAIR = Network(2, "2Gbit", "100us")
QUICK = Network(4, "1250Mbit", "50us")
FAST = Network(4, "2Gbit", "50us")
FAR = Network(4, "200Mbit", "500us")
EIGHT = Network(8, "200Mbit", "200us")
WIDE = Network(8, "300Mbit", "2ms")
UNEVEN = Network(4, "1Gbit", "200us", odd_host="3:500Mbit")
DOUBLE = Network(2, "1Gbit", "100us", slots=2)
HERE = Network(0, slots=4)

# Each model, number of hosts, rate and delay of the matrix at least twice, and communication (a ring's, at the links'
# rate) over compute from a quarter to four; --list prints it.
CASES = (
    Case("resnet50", GIGABIT, 10, 0.126433, quick=True),
    Case("resnet50", SLOW, 20, 0.202292, quick=True),
    Case("bert_large", GIGABIT, 115, 0.2),
    Case("vgg16", GIGABIT, 71, 0.1),
    Case("small1000", GIGABIT, 1.65, 0.2),
    Case("bert_base", SLOW, 42, 0.2),
    Case("vgg16", SLOW, 104, 0.2),
    Case("small1000", SLOW, 5, 0.2),
    Case("bert_base", PAIR, 37, 0.2),
    Case("small1000", PAIR, 2.8, 0.1),
    Case("vgg16", FAST_PAIR, 47, 0.2),
    Case("bert_large", FAST_PAIR, 7.2, 0.2),
    Case("resnet50", QUICK, 5.3, 0.1),
    Case("resnet50", FAST, 3.3, 0.1),
    Case("bert_base", FAR, 140, 0.2),
    Case("vgg16", FAR, 88, 0.1),
    Case("resnet50", EIGHT, 76, 0.2),
    Case("bert_base", EIGHT, 80, 0.2),
    Case("bert_large", WIDE, 333, 0.2),
    Case("vgg16", WIDE, 137, 0.2),
    Case("resnet50", UNEVEN, 13, 0.2),
    Case("bert_base", UNEVEN, 56, 0.2),
    Case("resnet50", DOUBLE, 6.5, 0.2),
    Case("vgg16", DOUBLE, 35, 0.2),
    Case("resnet50", HERE, 10, 0.3),
)
