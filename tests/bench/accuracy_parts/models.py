"""Models by their names: shipped profiles, those of them whose gradients somebody timed, and made-up ones."""

from race_parts import jobs

from .dice import Dice

SHIPPED = ("resnet50", "bert_base", "bert_large", "vgg16")
MEASURED = {"resnet50": "resnet50_v100", "resnet101": "resnet101", "vgg16": "vgg16_v100", "bert": "bert_qa", "gpt2": "gpt2"}
ELEMENT = 4  # bytes


def layer_of(name, tensors, backward, forward):
    """A layer of a profile. tensors: (name, elements)"""
    return {
        "name": name,
        "forward_seconds": forward,
        "backward_seconds": backward,
        "update_seconds": 0,
        "tensors": [{"name": f"{name}.{tensor}", "bytes": ELEMENT * elements} for tensor, elements in tensors],
    }


def profile_of(name, origin, layers):
    return {"format": "commtune/profile/1", "model": name, "batch": 1, "data_type": "float32", "origin": origin, "layers": layers}


def few_large(dice):
    """Three to eight layers of one tensor each, of 2 to 16 million elements."""
    return [[int(dice.log_between(2e6, 16e6))] for _ in range(dice.between(3, 8))]


def many_small(dice):
    """A hundred to three hundred layers of one to four tensors, each of 256 to 16 thousand elements."""
    return [[int(dice.log_between(256, 16e3)) for _ in range(dice.between(1, 4))] for _ in range(dice.between(100, 300))]


def huge_first(dice):
    """A tensor of half to four fifths of all elements, then twelve to forty layers of a weight and its bias."""
    weights = [int(dice.log_between(2e4, 2e6)) for _ in range(dice.between(12, 40))]
    share = 0.5 + 0.3 * dice.share()
    return [[int(sum(weights) * share / (1 - share))], *([weight, int(weight**0.5)] for weight in weights)]


def huge_last(dice):
    return huge_first(dice)[::-1]


# The numbers of elements of each layer's tensors, by the kind of a made-up model.
MADE_UP = {"few-large": few_large, "many-small": many_small, "huge-first": huge_first, "huge-last": huge_last}


def made_up(name, kind, seed):
    """A model whose tensors and times are drawn: backward times within a factor of ten, forward ones 0.3 to 0.7 of them."""
    dice = Dice(f"{kind}/{seed}")
    layers = []
    for index, sizes in enumerate(MADE_UP[kind](dice)):
        backward = dice.log_between(1e-3, 1e-2)
        tensors = [(f"tensor{number}", elements) for number, elements in enumerate(sizes)]
        layers.append(layer_of(f"layer{index}", tensors, backward, backward * (0.3 + 0.4 * dice.share())))
    origin = {"how": "derived", "device": "", "source": "made up", "note": f"{kind}, drawn with the seed {seed}"}
    return profile_of(name, origin, layers)


def load(name):
    """A profile by a name: of a shipped one (or small1000), measured-NAME, or KIND-SEED of a made-up one."""
    kind, _, rest = name.partition("-")
    if kind == "measured":
        return jobs.load(MEASURED[rest])
    kind, _, seed = name.rpartition("-")
    return made_up(name, kind, seed) if kind in MADE_UP else jobs.load(name)
