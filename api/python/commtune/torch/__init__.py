"""The plan inside PyTorch.

Two lines of an ordinary DistributedDataParallel script change::

    -  model = DistributedDataParallel(model)
    +  commtune.torch.wrap(model, optimizer)

after the optimizer was made. :func:`ddp_hook` is for those who keep DistributedDataParallel.
"""

from commtune.torch.ddp import DdpCommunication, ddp_hook
from commtune.torch.training import Training, wrap

__all__ = ["DdpCommunication", "Training", "ddp_hook", "wrap"]
