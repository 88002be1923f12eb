"""Gradients of distributed training travel by a plan that was made for the cluster and the model.

:mod:`commtune.torch` is for PyTorch. :class:`Session` is what it stands on: one rank's part of a job, for any other
framework.
"""

from commtune.errors import BadCall, CommtuneError, PeerLost, PlanRefused, Timeout
from commtune.session import BucketOptions, MessageTimes, Session, Statistics, library_version

__version__ = "0.1.0"

__all__ = [
    "BadCall",
    "BucketOptions",
    "CommtuneError",
    "MessageTimes",
    "PeerLost",
    "PlanRefused",
    "Session",
    "Statistics",
    "Timeout",
    "library_version",
]
