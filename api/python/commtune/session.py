"""One rank's part of a job, for any framework: a thin layer over ``commtune.h``."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from commtune import _library
from commtune.errors import BadCall, error_of

#: Every rank's record, all of one length, in rank order.
AllGather = Callable[[bytes], Sequence[bytes]]
TensorType = Literal["float32", "float16", "bfloat16"]

_TYPES: dict[str, int] = {"float32": 0, "float16": 1, "bfloat16": 2}
_RESULTS: dict[str, int] = {"mean": 0, "sum": 1}


@dataclass(frozen=True)
class BucketOptions:
    """A plan that needs no measurement: tensors in buckets, in the order in which the backward pass makes them."""

    first_bytes: int = 1 << 20  #: what the first bucket holds at least
    bytes: int = 25 << 20  #: and the others
    servers: int = 0  #: colocated parameter servers; 0: all-reduce by a ring
    per_layer: bool = False  #: each tensor can be waited for alone


@dataclass(frozen=True)
class JoinOptions:
    """How ranks connect; alike on all of them."""

    workers: int = 0  #: that train, the ranks behind them serve; 0: all
    transport: str = "tcp"  #: "tcp" or "verbs"
    subnet: str | None = None  #: addresses to use, such as "10.0.0.0/24"
    pace_bytes_per_second: float = 0.0  #: that a rank sends to other hosts at most; 0: what the plan says
    timeout: float = 60.0  #: seconds that a rank waits for any one message
    result: Literal["mean", "sum"] = "mean"  #: of every gradient
    announced_plans: bool = False  #: rank 0 may :meth:`Session.announce` plans
    own_barrier: bool = False  #: a gradient is back when it is, also under a plan that would have all waited for


@dataclass(frozen=True)
class Statistics:
    """What a session did so far."""

    iterations: int  #: that began, under all plans
    messages: int  #: an iteration of the plan in force
    gradient_bytes: int  #: of one rank, an iteration
    waited_seconds: float  #: that waits blocked, all threads and iterations together
    copied_seconds: float  #: that the library copied between gradients and its buffers, this plan


@dataclass(frozen=True)
class MessageTimes:
    """A message's way through the last iteration, in seconds since its begin."""

    queued: float
    started: float
    reduced: float
    distributed: float


def library_version() -> str:
    """Of libcommtune, such as "0.1.0"."""
    return _text(_library.quick.commtune_version())


def _text(value: bytes | None) -> str:
    return (value or b"").decode()


def expect(code: int) -> None:
    """Raises what the library said, unless the call succeeded."""
    if code != 0:
        raise error_of(_text(_library.quick.commtune_code_name(code)), _text(_library.quick.commtune_last_message()))


def plan_text(plan: str | os.PathLike[str] | dict[str, Any]) -> str:
    """A plan as the library takes it: a path or a name as it is, a dictionary as JSON."""
    return json.dumps(plan) if isinstance(plan, dict) else os.fspath(plan)


class Rendezvous:
    """An all-gather of Python's for the library, which keeps what it raised."""

    def __init__(self, all_gather: AllGather) -> None:
        self._failure: BaseException | None = None
        self._all_gather = all_gather
        self.callback = _library.AllGather(self._call)

    def _call(self, _context: int | None, own: int, count: int, everyone: int) -> int:
        try:
            records = self._all_gather(ctypes.string_at(own, count))
            ctypes.memmove(everyone, b"".join(records), count * len(records))
        except BaseException as error:  # it crosses C: raised again when that has returned
            self._failure = error
            return 1
        return 0

    @contextlib.contextmanager
    def raising(self) -> Iterator[None]:
        """What the all-gather raised takes the place of what the library says of it."""
        try:
            yield
        except Exception as error:
            if self._failure is not None:
                raise self._failure from error
            raise


def join_options(
    rank: int, ranks: int, all_gather: AllGather, options: JoinOptions
) -> tuple[Rendezvous, _library.JoinOptions]:
    """As the library takes them; both live as long as the call that they are for."""
    rendezvous = Rendezvous(all_gather)
    return rendezvous, _library.JoinOptions(
        rank=rank,
        ranks=ranks,
        workers=options.workers,
        all_gather=rendezvous.callback,
        transport=options.transport.encode(),
        subnet=options.subnet.encode() if options.subnet else None,
        pace_bytes_per_second=options.pace_bytes_per_second,
        timeout_seconds=options.timeout,
        result=_RESULTS[options.result],
        announced_plans=int(options.announced_plans),
        own_barrier=int(options.own_barrier),
    )


class Session:
    """See ``commtune.h`` for what each method promises; threads are as there.

    Usable in a ``with`` statement: the end of the block leaves, an exception aborts the other ranks with its text.
    """

    def __init__(
        self,
        rank: int,
        ranks: int,
        all_gather: AllGather,
        *,
        workers: int = 0,
        transport: str = "tcp",
        subnet: str | None = None,
        pace_bytes_per_second: float = 0.0,
        timeout: float = 60.0,
        result: Literal["mean", "sum"] = "mean",
        announced_plans: bool = False,
        own_barrier: bool = False,
    ) -> None:
        """Collective: connects the ranks.

        ``all_gather`` is called while this runs and never afterwards. ``announced_plans``, on all ranks alike: rank 0 may
        :meth:`announce` plans. ``own_barrier``: who waits has a barrier of its own, so a gradient is back when it is, also
        under a plan that would have all waited for.
        """
        named = JoinOptions(workers, transport, subnet, pace_bytes_per_second, timeout, result, announced_plans, own_barrier)
        rendezvous, options = join_options(rank, ranks, all_gather, named)
        self._handle = ctypes.c_void_p()
        self.rank, self.ranks = rank, ranks
        with rendezvous.raising():
            expect(_library.waiting.commtune_join(ctypes.byref(options), ctypes.byref(self._handle)))
        self._back: ctypes.Array[ctypes.c_ubyte] = (ctypes.c_ubyte * 0)()
        self._address: int = self._handle.value or 0  # as an argument it is quicker than an object
        self._ready = _library.quick.commtune_ready
        self._ready_after = _library.quick.commtune_ready_after
        self._wait = _library.waiting.commtune_wait

    def layout(
        self, kind: TensorType, tensors: Sequence[tuple[str, int]], memory: Sequence[int], *, gpu: int | None = None
    ) -> None:
        """Collective, once: what travels, in the order in which the forward pass uses it.

        ``tensors`` are names and sizes in bytes, ``memory`` addresses, which stay valid until :meth:`close`: of the GPU
        with that number, which is this thread's current one afterwards, or of the host.
        """
        if len(memory) != len(tensors):
            raise BadCall(f"memory: {len(memory)} addresses for {len(tensors)} tensors", "bad_call")
        self._back = (ctypes.c_ubyte * len(tensors))()
        rows = (_library.Tensor * len(tensors))(*[_library.Tensor(name.encode(), size) for name, size in tensors])
        addresses = (ctypes.c_void_p * len(memory))(*memory)
        given = (self._address, _TYPES[kind], len(tensors), rows)
        if gpu is None:
            expect(_library.waiting.commtune_layout(*given, addresses))
        else:
            expect(_library.waiting.commtune_layout_on_gpu(*given, gpu, addresses))

    @property
    def layout_digest(self) -> str:
        """Of what travels, as plans name it."""
        return _text(_library.quick.commtune_layout_digest(self._address))

    @property
    def plan_digest(self) -> str:
        """Of the plan in force; empty where none is."""
        return _text(_library.quick.commtune_plan_digest(self._address))

    def bucket_plan(self, options: BucketOptions | None = None) -> dict[str, Any]:
        """A plan that needs no measurement."""
        asked = options or BucketOptions()
        buckets = _library.Buckets(asked.first_bytes, asked.bytes, asked.servers, int(asked.per_layer))
        text = ctypes.c_void_p()
        expect(_library.quick.commtune_bucket_plan(self._address, ctypes.byref(buckets), ctypes.byref(text)))
        try:
            plan: dict[str, Any] = json.loads(ctypes.string_at(text.value or 0))
            return plan
        finally:
            _library.quick.commtune_free(text)

    def adopt(self, plan: str | os.PathLike[str] | dict[str, Any] | None) -> None:
        """Collective, between two iterations; ``None`` on any rank but 0: whatever rank 0 says."""
        text = None if plan is None else plan_text(plan).encode()
        expect(_library.waiting.commtune_adopt(self._address, text))

    def announce(self, plan: str | os.PathLike[str] | dict[str, Any]) -> int:
        """On rank 0 alone, between two steps: all ranks adopt the plan when the same step begins, a few from now.

        Returns which, counted from 1; the others call nothing for it. :attr:`refusal` says then whether they did.
        """
        first = ctypes.c_uint64()
        expect(_library.quick.commtune_announce(self._address, plan_text(plan).encode(), ctypes.byref(first)))
        return first.value

    @property
    def refusal(self) -> str:
        """Why the plan announced last, and due, was not adopted, on any rank; empty: it was."""
        return _text(_library.quick.commtune_refusal(self._address))

    def begin(self) -> None:
        """A training step begins."""
        expect(_library.waiting.commtune_begin(self._address))

    def ready(self, tensor: int) -> None:
        """A gradient exists; until it is back its memory is the library's."""
        if code := self._ready(self._address, tensor):
            expect(code)

    def ready_after(self, tensor: int, stream: int) -> None:
        """The same, on a GPU, once all that a stream (``cudaStream_t``) was given so far has ended; does not wait for it."""
        if code := self._ready_after(self._address, tensor, stream):
            expect(code)

    def is_back(self, tensor: int) -> bool:
        """Whether a gradient's memory has the result."""
        back = ctypes.c_int()
        expect(_library.quick.commtune_is_back(self._address, tensor, ctypes.byref(back)))
        return bool(back.value)

    def are_back(self) -> bytes:
        """Of each tensor 1 where :meth:`is_back` says so, else 0."""
        expect(_library.quick.commtune_are_back(self._address, len(self._back), self._back))
        return bytes(self._back)

    def wait(self, tensor: int) -> None:
        """Returns when a gradient's memory has the result."""
        if code := self._wait(self._address, tensor):
            expect(code)

    def wait_all(self) -> None:
        """Returns when all gradients' have."""
        expect(_library.waiting.commtune_wait_all(self._address))

    def statistics(self) -> Statistics:
        """After the last wait of an iteration."""
        counts = _library.Counts()
        expect(_library.quick.commtune_get_statistics(self._address, ctypes.byref(counts)))
        return Statistics(
            counts.iterations, counts.messages, counts.gradient_bytes, counts.waited_seconds, counts.copied_seconds
        )

    def message_times(self) -> list[MessageTimes]:
        """Of the last iteration, after its last wait."""
        count = ctypes.c_size_t()
        get = _library.quick.commtune_get_message_times
        expect(get(self._address, 0, None, ctypes.byref(count)))
        moments = (_library.Moments * count.value)()
        expect(get(self._address, count.value, moments, ctypes.byref(count)))
        return [MessageTimes(row.queued, row.started, row.reduced, row.distributed) for row in moments]

    def serve(self) -> None:
        """For a rank that does not train: serves until the workers leave."""
        expect(_library.waiting.commtune_serve(self._address))

    def leave(self) -> None:
        """Collective: ends the session."""
        expect(_library.waiting.commtune_leave(self._address))

    def look_for_lost(self, seconds: float) -> None:
        """Raises PeerLost naming a rank that is gone, if one can be seen to be within so long.

        For who has heard of it elsewhere, such as by an error of the framework's own collectives.
        """
        expect(_library.waiting.commtune_look_for_lost(self._address, seconds))

    def abort(self, why: str) -> None:
        """Ends the session of every rank, which are told why."""
        _library.waiting.commtune_abort(self._address, why.encode())

    def close(self) -> None:
        """Gives back everything, without a word to other ranks unless the session ended by an error."""
        if self._handle.value:
            _library.waiting.commtune_destroy(self._handle)
            self._handle = ctypes.c_void_p()
            self._address = 0

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            if error is None:
                self.leave()
            else:
                self.abort(f"{type(error).__name__}: {error}")
        finally:
            self.close()
