"""The race's cases: which model, scaled how, on which cluster."""

import dataclasses
import json
from pathlib import Path

PROFILES = Path(__file__).resolve().parents[3] / "perfmodel" / "profiles"


@dataclasses.dataclass(frozen=True)
class Network:
    """An emulated cluster: one worker a host, all on one switch."""

    name: str
    hosts: int
    rate: str  # of every host's link, each direction, on the wire
    delay: str  # one way, host to host
    odd_host: str = ""  # "4:300Mbit": one host's link is different


@dataclasses.dataclass(frozen=True)
class Case:
    """A model with every tensor divided by `divisor` and all layer times scaled so that they add up to `compute`."""

    model: str
    network: Network
    divisor: float
    compute: float  # seconds

    @property
    def name(self):
        return f"{self.model}/{self.divisor:g} {self.compute:g}s {self.network.name}"


NEAR = Network("4x1Gb 100us", 4, "1Gbit", "100us")
FAR = Network("4x1Gb 400us", 4, "1Gbit", "400us")
WIDE = Network("8x500Mb 100us", 8, "500Mbit", "100us")
UNEVEN = Network("4x1Gb one 300Mb", 4, "1Gbit", "100us", "4:300Mbit")

# Communication (all bytes at the links' best rate) over compute: 0.5, 1, 1.5 and 2, each once in every row and column.
CASES = [
    Case("resnet50", NEAR, 4.3, 0.3),
    Case("bert_base", NEAR, 37, 0.3),
    Case("vgg16", NEAR, 11.8, 0.3),
    Case("small1000", NEAR, 0.93, 0.3),
    Case("resnet50", FAR, 8.7, 0.3),
    Case("bert_base", FAR, 18.7, 0.3),
    Case("vgg16", FAR, 15.7, 0.3),
    Case("small1000", FAR, 0.7, 0.3),
    Case("resnet50", WIDE, 6.8, 0.3),
    Case("bert_base", WIDE, 22, 0.3),
    Case("vgg16", WIDE, 110, 0.3),
    Case("small1000", WIDE, 3.2, 0.3),
    Case("resnet50", UNEVEN, 4.8, 0.3),
    Case("bert_base", UNEVEN, 27.5, 0.3),
    Case("vgg16", UNEVEN, 52, 0.3),
    Case("small1000", UNEVEN, 6.2, 0.3),
]

QUICK = [CASES[0], CASES[5]]


def small_tensors(count=1000, size=32768, tensors_per_layer=4):
    """A model of small tensors alone: every layer the same, backward twice as long as forward."""
    layers = [
        {
            "name": f"layer{index}",
            "forward_seconds": 1 / 3,
            "backward_seconds": 2 / 3,
            "update_seconds": 0,
            "tensors": [{"name": f"layer{index}.{part}", "bytes": size} for part in range(tensors_per_layer)],
        }
        for index in range(count // tensors_per_layer)
    ]
    return {
        "format": "commtune/profile/1",
        "model": "small1000",
        "batch": 1,
        "data_type": "float32",
        "origin": {"how": "derived", "device": "", "source": "made up", "note": f"{count} tensors of {size} bytes"},
        "layers": layers,
    }


def load(model):
    """A profile of format "commtune/profile/1" by its name."""
    if model == "small1000":
        return small_tensors()
    with open(PROFILES / f"{model}.json", encoding="utf-8") as file:
        return json.load(file)


def scaled(profile, divisor, compute):
    """The same model with smaller tensors (whole elements of 4 bytes, at least one) and layer times that add up to `compute`."""
    times = ("forward_seconds", "backward_seconds", "update_seconds")
    total = sum(layer.get(key, 0) for layer in profile["layers"] for key in times)
    factor = compute / total
    layers = []
    for layer in profile["layers"]:
        tensors = [
            {"name": tensor["name"], "bytes": max(1, round(tensor["bytes"] / divisor / 4)) * 4} for tensor in layer["tensors"]
        ]
        layers.append({**layer, **{key: layer.get(key, 0) * factor for key in times}, "tensors": tensors})
    note = f"{profile['origin'].get('note', '')} Tensors divided by {divisor:g}, times multiplied by {factor:.6g}.".strip()
    return {**profile, "origin": {**profile["origin"], "note": note}, "layers": layers}


def gradient_bytes(profile):
    return sum(tensor["bytes"] for layer in profile["layers"] for tensor in layer["tensors"])


def tensor_count(profile):
    return sum(len(layer["tensors"]) for layer in profile["layers"])
