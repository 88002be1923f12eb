"""libcommtune as ctypes sees it; the declarations follow commtune.h."""

import ctypes
import os
from ctypes import POINTER, c_char_p, c_double, c_int, c_size_t, c_ubyte, c_uint64, c_void_p
from pathlib import Path

AllGather = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_size_t, c_void_p)


class JoinOptions(ctypes.Structure):
    """commtune_join_options."""

    _fields_ = (
        ("rank", c_int),
        ("ranks", c_int),
        ("workers", c_int),
        ("all_gather", AllGather),
        ("context", c_void_p),
        ("transport", c_char_p),
        ("subnet", c_char_p),
        ("pace_bytes_per_second", c_double),
        ("timeout_seconds", c_double),
        ("chunk_bytes", c_uint64),
        ("result", c_int),
        ("announced_plans", c_int),
        ("own_barrier", c_int),
    )


class Tensor(ctypes.Structure):
    """commtune_tensor."""

    _fields_ = (("name", c_char_p), ("bytes", c_uint64))


class Buckets(ctypes.Structure):
    """commtune_bucket_options."""

    _fields_ = (("first_bytes", c_uint64), ("bytes", c_uint64), ("servers", c_int), ("per_layer", c_int))


class Counts(ctypes.Structure):
    """commtune_statistics."""

    _fields_ = (
        ("iterations", c_uint64),
        ("messages", c_uint64),
        ("gradient_bytes", c_uint64),
        ("waited_seconds", c_double),
        ("copied_seconds", c_double),
    )


class Probe(ctypes.Structure):
    """commtune_probe_options."""

    _fields_ = (("cluster", c_char_p), ("budget_seconds", c_double), ("traffic_bytes", c_uint64), ("profile", c_char_p))


class Moments(ctypes.Structure):
    """commtune_message_times."""

    _fields_ = (("queued", c_double), ("started", c_double), ("reduced", c_double), ("distributed", c_double))


def _path() -> str:
    """The library: COMMTUNE_LIBRARY, beside this file (where a wheel has it), or wherever the loader looks."""
    if named := os.environ.get("COMMTUNE_LIBRARY"):
        return named
    beside = Path(__file__).with_name("libcommtune.so")
    return str(beside) if beside.exists() else "libcommtune.so.0"


# Calls that may wait let other threads of Python run; `quick` is for those that never do, and costs half as much.
_LIBRARY = _path()
waiting = ctypes.CDLL(_LIBRARY)
quick = ctypes.PyDLL(_LIBRARY)

_SESSION = c_void_p
_SIGNATURES: dict[str, tuple[object, tuple[object, ...]]] = {
    "commtune_version": (c_char_p, ()),
    "commtune_code_name": (c_char_p, (c_int,)),
    "commtune_last_message": (c_char_p, ()),
    "commtune_join": (c_int, (POINTER(JoinOptions), POINTER(_SESSION))),
    "commtune_layout": (c_int, (_SESSION, c_int, c_size_t, POINTER(Tensor), POINTER(c_void_p))),
    "commtune_layout_on_gpu": (c_int, (_SESSION, c_int, c_size_t, POINTER(Tensor), c_int, POINTER(c_void_p))),
    "commtune_layout_digest": (c_char_p, (_SESSION,)),
    "commtune_plan_digest": (c_char_p, (_SESSION,)),
    "commtune_bucket_plan": (c_int, (_SESSION, POINTER(Buckets), POINTER(c_void_p))),
    "commtune_free": (None, (c_void_p,)),
    "commtune_adopt": (c_int, (_SESSION, c_char_p)),
    "commtune_announce": (c_int, (_SESSION, c_char_p, POINTER(c_uint64))),
    "commtune_refusal": (c_char_p, (_SESSION,)),
    "commtune_begin": (c_int, (_SESSION,)),
    "commtune_ready": (c_int, (_SESSION, c_size_t)),
    "commtune_ready_after": (c_int, (_SESSION, c_size_t, c_void_p)),
    "commtune_is_back": (c_int, (_SESSION, c_size_t, POINTER(c_int))),
    "commtune_are_back": (c_int, (_SESSION, c_size_t, POINTER(c_ubyte))),
    "commtune_wait": (c_int, (_SESSION, c_size_t)),
    "commtune_wait_all": (c_int, (_SESSION,)),
    "commtune_get_statistics": (c_int, (_SESSION, POINTER(Counts))),
    "commtune_get_message_times": (c_int, (_SESSION, c_size_t, POINTER(Moments), POINTER(c_size_t))),
    "commtune_serve": (c_int, (_SESSION,)),
    "commtune_leave": (c_int, (_SESSION,)),
    "commtune_look_for_lost": (c_int, (_SESSION, c_double)),
    "commtune_abort": (None, (_SESSION, c_char_p)),
    "commtune_destroy": (None, (_SESSION,)),
    "commtune_probe": (c_int, (POINTER(JoinOptions), POINTER(Probe), POINTER(c_void_p))),
    "commtune_plan": (c_int, (c_char_p, c_char_p, c_int, c_int, POINTER(c_void_p), POINTER(c_double))),
}

for _name, (_result, _arguments) in _SIGNATURES.items():
    for _library in (waiting, quick):
        _function = getattr(_library, _name)
        _function.restype = _result
        _function.argtypes = _arguments
