"""How ranks that torch.distributed started find each other, and start from the same parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist

from commtune.errors import CommtuneError
from commtune.session import AllGather, Session, TensorType

Group = Any  # torch.distributed.ProcessGroup; None: all ranks

_TYPES: dict[torch.dtype, TensorType] = {
    torch.float32: "float32",
    torch.float16: "float16",
    torch.bfloat16: "bfloat16",
}


def type_of(dtype: torch.dtype) -> TensorType | None:
    """As the library names it; None: it cannot add such numbers."""
    return _TYPES.get(dtype)


def all_gather_in(group: Group) -> AllGather:
    """Every rank's record, by the group's own all-gather."""

    def all_gather(own: bytes) -> Sequence[bytes]:
        everyone: list[Any] = [None] * dist.get_world_size(group)
        dist.all_gather_object(everyone, own, group=group)
        return everyone

    return all_gather


def join(group: Group, timeout: float, **options: Any) -> Session:
    """Joins the ranks of a process group; their addresses travel by the group's own all-gather."""
    if not dist.is_available() or not dist.is_initialized():
        raise CommtuneError(
            "torch.distributed is not initialized: call torch.distributed.init_process_group() first, as for "
            "DistributedDataParallel"
        )
    rank, ranks = dist.get_rank(group), dist.get_world_size(group)
    return Session(rank, ranks, all_gather_in(group), timeout=timeout, announced_plans=True, **options)


def first_rank(group: Group) -> int:
    """The global rank of a group's rank 0."""
    return dist.get_global_rank(group, 0) if group is not None else 0


def share_tensors(tensors: Sequence[torch.Tensor], group: Group) -> None:
    """Overwrites tensors with rank 0's; those of one type travel together."""
    by_type: dict[torch.dtype, list[torch.Tensor]] = {}
    for tensor in tensors:
        by_type.setdefault(tensor.dtype, []).append(tensor.detach())
    for same in by_type.values():
        flat = torch.cat([tensor.reshape(-1) for tensor in same])
        dist.broadcast(flat, src=first_rank(group), group=group)
        place = 0
        for tensor in same:
            tensor.copy_(flat[place : place + tensor.numel()].view(tensor.shape))
            place += tensor.numel()
