"""Numbers that a text decides."""

import random


def log_between(low, high, share):
    """The number that so large a share of the logarithmic way from low to high leads to."""
    return low * (high / low) ** share


class Dice:
    """What a text decides: the same in every version of Python, as only Random.random() of a text is used."""

    def __init__(self, text):
        self._random = random.Random(text).random

    def between(self, low, high):
        """A whole number, both ends included."""
        return low + int(self._random() * (high - low + 1))

    def log_between(self, low, high):
        return log_between(low, high, self._random())

    def share(self):
        return self._random()

    def shuffled(self, items):
        items = list(items)
        for last in range(len(items) - 1, 0, -1):
            other = self.between(0, last)
            items[last], items[other] = items[other], items[last]
        return items
