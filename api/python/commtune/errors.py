"""What can go wrong, by what a caller may do about it."""


class CommtuneError(RuntimeError):
    """Ends the session, unless it is one of the two kinds below that say otherwise.

    ``code`` is the name that ``commtune.h`` has for it, such as ``"conflict"``.
    """

    def __init__(self, message: str, code: str = "bad_input") -> None:
        super().__init__(message)
        self.code = code


class PeerLost(CommtuneError):
    """A rank, host or link went away; the message names it."""


class Timeout(CommtuneError):
    """A rank did not answer in time."""


class PlanRefused(CommtuneError):
    """A plan was adopted on no rank; the one before is still in force."""


class BadCall(CommtuneError):
    """One call was wrong; the session goes on."""


_KINDS: dict[str, type[CommtuneError]] = {
    "peer_lost": PeerLost,
    "timeout": Timeout,
    "plan_refused": PlanRefused,
    "bad_call": BadCall,
}


def error_of(code: str, message: str) -> CommtuneError:
    """The exception for a code of the library."""
    return _KINDS.get(code, CommtuneError)(message, code)
