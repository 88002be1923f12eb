"""A matrix that nobody can learn by heart: clusters and models drawn from a text.

Cases come in blocks of twelve, each a stratified sample, so that twelve already cover what may be drawn:

* shape (hosts x ranks a host): each of the eleven that up to 8 ranks allow, and one of them twice, shuffled.
* model: the four shipped ones, four of the five with measured gradient times, the four made-up kinds, shuffled.
* communication over compute, compute, the links' rate and their delay: of each, one number in every twelfth of the
  logarithmic range (a Latin hypercube: shuffled apart from each other). A rate's range ends where all hosts' links
  together are what the emulation carries.
* odd hosts: three clusters of at least three hosts have one: a slow link, a far one, one that is both.

A block depends on the seed and on its number alone, and a case on its block: not on how many cases are drawn."""

import dataclasses

from race_parts import emulated, jobs

from . import models
from .cases import Case, Network
from .dice import Dice, log_between

BLOCK = 12
RANKS = 8  # most of a cluster
SHAPES = tuple((hosts, slots) for hosts in range(2, RANKS + 1) for slots in (1, 2, 4) if hosts * slots <= RANKS)
RATIO = (0.25, 4)  # communication over compute
COMPUTE = (0.06, 0.3)  # seconds
RATE = (100, 2500)  # Mb/s
DELAY = (30, 2000)  # us, one way
SLOW = (0.2, 0.5)  # an odd host's rate over the others'
SLOWEST = 50  # Mb/s, of an odd host
FAR = (3, 10)  # its delay over the others'
FARTHEST = 4000  # us
ODD = ("slow", "far", "slow and far")
BYTES = (0.5e6, 192e6)  # of all gradients, by another compute as far as its range goes: scaled tensors have some elements left


@dataclasses.dataclass(frozen=True)
class Draw:
    """What decides a case. The shares are of the logarithmic way through a range."""

    shape: tuple
    model: str
    odd: str  # one of ODD, or nothing
    ratio: float
    compute: float
    rate: float
    delay: float


def strata(dice):
    """A number from each twelfth of [0, 1), shuffled."""
    return [(part + dice.share()) / BLOCK for part in dice.shuffled(range(BLOCK))]


def models_of(dice):
    made_up = [f"{kind}-{dice.between(0, 2**32 - 1):08x}" for kind in models.MADE_UP]
    measured = [f"measured-{name}" for name in dice.shuffled(models.MEASURED)]
    return dice.shuffled([*models.SHIPPED, *measured[: BLOCK - len(models.SHIPPED) - len(made_up)], *made_up])


def odds_of(dice, shapes):
    places = dice.shuffled(index for index, (hosts, _) in enumerate(shapes) if hosts > 2)
    odd_at = dict(zip(places, ODD))
    return [odd_at.get(index, "") for index in range(BLOCK)]


def block_of(seed, number):
    """Twelve draws."""
    dice = {what: Dice(f"{seed}/{number}/{what}") for what in ("shape", "model", "odd", "ratio", "compute", "rate", "delay")}
    once_more = SHAPES[dice["shape"].between(0, len(SHAPES) - 1)]
    shapes = dice["shape"].shuffled([*SHAPES, once_more])
    columns = [strata(dice[what]) for what in ("ratio", "compute", "rate", "delay")]
    return [Draw(*each) for each in zip(shapes, models_of(dice["model"]), odds_of(dice["odd"], shapes), *columns)]


def odd_host(draw, dice, rate, delay):
    """For tests/cluster/up --host, or nothing."""
    keys = []
    slow, far = dice.log_between(*SLOW), dice.log_between(*FAR)
    if "slow" in draw.odd:
        keys.append(f"rate={max(SLOWEST, int(rate * slow))}Mbit")
    if "far" in draw.odd:
        keys.append(f"delay={min(FARTHEST, round(delay * far))}us")
    return f"{dice.between(1, draw.shape[0])}:{','.join(keys)}" if keys else ""


def network_of(draw, dice):
    hosts, slots = draw.shape
    most = min(RATE[1], emulated.CARRIED * 8 / 1e6 / hosts)
    rate = int(log_between(RATE[0], most, draw.rate))
    delay = round(log_between(*DELAY, draw.delay))
    return Network(hosts, f"{rate}Mbit", f"{delay}us", odd_host(draw, dice, rate, delay), slots)


def divisor_for(profile, wanted):
    """What leaves so many bytes of gradients; tensors have whole elements, at least one, so it is approached."""
    divisor = jobs.gradient_bytes(profile) / wanted
    for _ in range(3):
        divisor *= jobs.gradient_bytes(jobs.scaled(profile, divisor, 1)) / wanted
    return float(f"{divisor:.4g}")


def case_of(draw, dice):
    network = network_of(draw, dice)
    bytes_per_second = log_between(*RATIO, draw.ratio) * network.bytes_per_second / network.ring_share  # of compute
    least, most = (size / bytes_per_second for size in BYTES)
    compute = round(min(max(log_between(*COMPUTE, draw.compute), least), most, COMPUTE[1]), 3)
    return Case(draw.model, network, divisor_for(models.load(draw.model), bytes_per_second * compute), compute)


def case(seed, number):
    draw = block_of(seed, number // BLOCK)[number % BLOCK]
    return case_of(draw, Dice(f"{seed}/{number}/odd host"))


def cases(seed, count):
    """So many cases; the same text gives the same ones."""
    return tuple(case(seed, number) for number in range(count))
