"""Small networks of the kinds that people train, and what trains them."""

import torch
from torch import nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

BATCH = 8


class Block(nn.Module):
    """Two convolutions with a way around them."""

    def __init__(self, channels):
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.first_norm = nn.BatchNorm2d(channels)
        self.second = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.second_norm = nn.BatchNorm2d(channels)

    def forward(self, images):
        made = functional.relu(self.first_norm(self.first(images)))
        return functional.relu(images + self.second_norm(self.second(made)))


class ResidualNetwork(nn.Module):
    """Tells which of an image's colours are bright."""

    rate = 0.01  # larger ones let what rounding makes grow, by ours and by DDP alike

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.blocks = nn.Sequential(Block(8), Block(8))
        self.head = nn.Linear(8, 10)

    def forward(self, images):
        return self.head(self.blocks(self.stem(images)).mean(dim=(2, 3)))

    @staticmethod
    def batch(generator):
        images = torch.randn(BATCH, 3, 8, 8, generator=generator)
        return images, (images.mean(dim=(2, 3)) > 0).long() @ torch.tensor([1, 2, 4])


class Transformer(nn.Module):
    """Predicts tokens; the last layer's weight is the embedding's."""

    rate = 0.05

    def __init__(self, tokens=50, width=16):
        super().__init__()
        self.embedding = nn.Embedding(tokens, width)
        layer = nn.TransformerEncoderLayer(width, 2, 32, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, tokens)
        self.head.weight = self.embedding.weight

    def forward(self, tokens):
        return self.head(self.layers(self.embedding(tokens))).flatten(0, 1)

    @staticmethod
    def batch(generator):
        tokens = torch.randint(50, (BATCH, 6), generator=generator)
        return tokens, tokens.roll(1, dims=1).flatten()


KINDS = {kind.__name__: kind for kind in (ResidualNetwork, Transformer)}


def make(kind, rank=0):
    """The model and its optimizer; parameters differ by rank, as those of a script that sets no seed."""
    torch.manual_seed(100 + rank)
    model = kind()
    return model, torch.optim.SGD(model.parameters(), lr=getattr(kind, "rate", 0.05), momentum=0.9, weight_decay=1e-4)


def batches(kind, rank, steps, seed=1):
    """This rank's share of the data."""
    generator = torch.Generator().manual_seed(1000 * seed + rank)
    return [kind.batch(generator) for _ in range(steps)]


def step(model, optimizer, inputs, labels):
    """One of an ordinary script."""
    optimizer.zero_grad()
    loss = functional.cross_entropy(model(inputs), labels)
    loss.backward()
    optimizer.step()
    return loss.item()


def train_by_ddp(kind, rank, steps, **options):
    """Losses and parameters of DistributedDataParallel's."""
    model, optimizer = make(kind, rank)
    wrapped = DistributedDataParallel(model, **options)
    losses = [step(wrapped, optimizer, *batch) for batch in batches(kind, rank, steps)]
    return losses, numbers(model)


def numbers(model):
    """All that a model has learnt, as one list."""
    state = model.state_dict().values()
    return torch.cat([value.detach().reshape(-1).float() for value in state]).tolist()


def assert_same(ours, theirs, tolerance=2e-4):
    """Losses and parameters within what another order of sums makes."""
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(torch.tensor(mine), torch.tensor(other), rtol=tolerance, atol=tolerance)
