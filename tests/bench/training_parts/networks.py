"""What the ranks train. Needs PyTorch.

Sleeping networks compute as an accelerator does that leaves the processor idle: forward passes are queued, each layer's
gradients exist at an absolute time. What is learnt is real: each layer adds the product of its parameters and of numbers of its
own to what it is given, so the network is a linear model of all parameters, with gradients by autograd and updates by the
optimizer.
"""

import json

import torch
from torch import nn
from torch.nn import functional

SEED = 1


class LayerStep(torch.autograd.Function):
    """One layer's pass, at its time."""

    @staticmethod
    def forward(ctx, layer, hidden, *parameters):
        # The processor runs ahead of what is queued, except where it had to wait for gradients.
        layer.line.resume()
        layer.line.skip(layer.forward_ns)
        ctx.layer = layer
        return hidden + sum(torch.dot(known, parameter) for known, parameter in zip(layer.known, parameters))

    @staticmethod
    def backward(ctx, gradient):
        layer = ctx.layer
        layer.line.spend(layer.backward_ns)
        return (None, gradient, *(gradient * known for known in layer.known))


class SleepingLayer(nn.Module):
    """A layer of a profile: its times and parameters.

    numbers  what all layers take their own from, in turn"""

    def __init__(self, description, line, numbers, first):
        super().__init__()
        self.line = line
        self.forward_ns = round(description["forward_seconds"] * 1e9)
        self.backward_ns = round(description["backward_seconds"] * 1e9)
        self.known = []
        for part, tensor in enumerate(description["tensors"]):
            count = tensor["bytes"] // 4
            self.register_parameter(f"tensor{part}", nn.Parameter(torch.zeros(count)))
            self.known.append(numbers[first : first + count])
            first += count

    def forward(self, hidden):
        return LayerStep.apply(self, hidden, *self._parameters.values())


class SleepingNetwork(nn.Module):
    """A profile's layers one behind the other."""

    rate = 0.02

    def __init__(self, profile, line, rank):
        super().__init__()
        self.line = line
        count = sum(tensor["bytes"] // 4 for layer in profile["layers"] for tensor in layer["tensors"])
        generator = torch.Generator().manual_seed(1000 + rank)
        numbers = torch.randn(count, generator=generator) / count**0.5
        layers, first = [], 0
        for description in profile["layers"]:
            layers.append(SleepingLayer(description, line, numbers, first))
            first += sum(tensor["bytes"] // 4 for tensor in description["tensors"])
        self.layers = nn.ModuleList(layers)

    def forward(self, hidden):
        for layer in self.layers:
            hidden = layer(hidden)
        return hidden

    @staticmethod
    def batch(generator):
        return torch.zeros(1), torch.randn(1, generator=generator)

    @staticmethod
    def loss(output, label):
        return (output - label).square().sum()


class Block(nn.Module):
    """Two convolutions with a way around them."""

    def __init__(self, channels):
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.first_norm = nn.GroupNorm(8, channels)
        self.second = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.second_norm = nn.GroupNorm(8, channels)

    def forward(self, images):
        made = functional.relu(self.first_norm(self.first(images)))
        return functional.relu(images + self.second_norm(self.second(made)))


class ResidualNetwork(nn.Module):
    """Three stages of two blocks: 2.8 million parameters."""

    rate = 0.01

    def __init__(self):
        super().__init__()
        stages, before = [], 3
        for channels in (64, 128, 192):
            stages += [nn.Conv2d(before, channels, 3, padding=1, stride=2), Block(channels), Block(channels)]
            before = channels
        self.stages = nn.Sequential(*stages)
        self.head = nn.Linear(before, 10)

    def forward(self, images):
        return self.head(self.stages(images).mean(dim=(2, 3)))

    @staticmethod
    def batch(generator):
        images = torch.randn(8, 3, 32, 32, generator=generator)
        return images, (images.mean(dim=(2, 3)) > 0).long() @ torch.tensor([1, 2, 4])

    loss = staticmethod(functional.cross_entropy)


class Transformer(nn.Module):
    """Two layers of width 256 over 4,096 tokens, whose matrix is used at both ends: 2.6 million parameters."""

    rate = 0.05

    def __init__(self, tokens=4096, width=256):
        super().__init__()
        self.embedding = nn.Embedding(tokens, width)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, tokens)
        self.head.weight = self.embedding.weight

    def forward(self, tokens):
        return self.head(self.layers(self.embedding(tokens))).flatten(0, 1)

    @staticmethod
    def batch(generator):
        tokens = torch.randint(4096, (4, 32), generator=generator)
        return tokens, tokens.roll(1, dims=1).flatten()

    loss = staticmethod(functional.cross_entropy)


REAL = {"residual": ResidualNetwork, "transformer": Transformer}


def make(model, line, rank):
    """The network and its optimizer, with the same parameters on all ranks.

    model  a name of REAL, or a profile's file"""
    torch.manual_seed(SEED)
    if model in REAL:
        network = REAL[model]()
    else:
        with open(model, encoding="utf-8") as file:
            network = SleepingNetwork(json.load(file), line, rank)
    return network, torch.optim.SGD(network.parameters(), lr=network.rate, momentum=0.9)


# For `tune profile --pytorch`: a model, inputs of a batch, and what is minimised.


def _question(kind):
    network = kind()
    inputs, labels = kind.batch(torch.Generator().manual_seed(SEED))
    return network, (inputs,), lambda output: kind.loss(output, labels)


def residual(batch=8):
    """`batch` is the model's own."""
    return _question(ResidualNetwork)


def transformer(batch=4):
    """`batch` is the model's own."""
    return _question(Transformer)
