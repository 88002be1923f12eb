"""What is trained where: models whose compute sleeps, for which communication is a stated multiple of compute, and real ones."""

import dataclasses

from race_parts import bound, jobs
from race_parts.jobs import Network

# Slow, so that two processors have time for four ranks and for a switch that they emulate, as hosts with cards of their own have.
FOUR = Network("4x200Mb 200us", 4, "200Mbit", "200us")
TWO = Network("2x500Mb 200us", 2, "500Mbit", "200us")
ONE = Network("1 host", 1, "500Mbit", "200us")


@dataclasses.dataclass(frozen=True)
class Cell:
    """A model with every tensor divided by `divisor`, whose layers take so long that communication (all bytes at the links' best
    rate) over compute is `ratio`."""

    model: str
    network: Network
    divisor: float
    ratio: float

    @property
    def name(self):
        return f"{self.model}/{self.divisor:g} x{self.ratio:g} {self.network.name}"

    def profile(self, ports):
        """Of format "commtune/profile/1", with the tensors' names as the ranks' model has them (networks.py)."""
        whole = jobs.scaled(jobs.load(self.model), self.divisor, 1)
        compute = bound.seconds_per_byte(ports) * jobs.gradient_bytes(whole) / self.ratio
        profile = jobs.scaled(jobs.load(self.model), self.divisor, compute)
        for number, layer in enumerate(profile["layers"]):
            for part, tensor in enumerate(layer["tensors"]):
                tensor["name"] = f"layers.{number}.tensor{part}"
        return profile


@dataclasses.dataclass(frozen=True)
class RealCell:
    """A model of networks.py that the processor computes, on one thread."""

    model: str
    network: Network

    @property
    def name(self):
        return f"{self.model} (real compute) {self.network.name}"


# About 10 MB each, so that processors that four ranks share have time for copies, sums and updates.
MODELS = (("resnet50", 10), ("bert_base", 44), ("vgg16", 55))
RATIOS = (0.5, 1, 2)

CELLS = [Cell(model, FOUR, divisor, ratio) for model, divisor in MODELS for ratio in RATIOS]
REAL = [RealCell("residual", TWO), RealCell("transformer", TWO)]
ALONE = RealCell("residual", ONE)
ALL = [*CELLS, *REAL, ALONE]

QUICK = [CELLS[1]]
