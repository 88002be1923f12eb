"""Quantities as people write them -> base units, and the errors that end a script."""

import re

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_UNSUPPORTED = 77  # what test runners take for "skipped"


class ClusterError(Exception):
    """Ends a script with one line on stderr."""

    status = EXIT_FAILED


class UsageError(ClusterError):
    status = EXIT_USAGE


class UnsupportedError(ClusterError):
    """This machine cannot emulate clusters at all."""

    status = EXIT_UNSUPPORTED


_BITS = {"bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9, "b/s": 1, "kb/s": 10**3, "mb/s": 10**6, "gb/s": 10**9}
_BYTES = {"B/s": 1, "kB/s": 10**3, "KB/s": 10**3, "MB/s": 10**6, "GB/s": 10**9}
_TIMES = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
_SIZES = {"": 1, "B": 1, "K": 1 << 10, "KiB": 1 << 10, "M": 1 << 20, "MiB": 1 << 20, "G": 1 << 30, "GiB": 1 << 30}
_SLOWEST_RATE = 1000  # bytes per second


def _split(what, text, example):
    match = re.fullmatch(r"(\d+\.?\d*|\.\d+)\s*([A-Za-z/]*)", text)
    if not match:
        raise UsageError(f"{what} = '{text}': expected a number with a unit, such as {example}")
    return float(match[1]), match[2]


def _lookup(what, text, units, unit, example):
    for known in (unit, unit.lower()):
        if known in units:
            return units[known]
    raise UsageError(f"{what} = '{text}': unknown unit '{unit}'; expected something like {example}")


def parse_rate(text):
    """'1Gbit', '200Mbit', '1Gb/s' (bits) or '125MB/s' (bytes) -> bytes per second on the wire."""
    number, unit = _split("rate", text, "1Gbit")
    if unit in _BYTES:
        value = number * _BYTES[unit]
    else:
        value = number * _lookup("rate", text, _BITS, unit, "1Gbit") / 8
    if value < _SLOWEST_RATE:
        raise UsageError(f"rate = '{text}': must be at least 8kbit")
    return int(value)


def parse_time(text):
    """'200us', '1.5ms' -> nanoseconds. '0' needs no unit."""
    if text == "0":
        return 0
    number, unit = _split("time", text, "200us")
    return int(number * _lookup("time", text, _TIMES, unit, "200us"))


def parse_bytes(text):
    """'64K', '1MiB', '100000' -> bytes."""
    number, unit = _split("buffer", text, "512K")
    return int(number * _lookup("buffer", text, _SIZES, unit, "512K"))


def parse_port_keys(text):
    """'200Mbit' or 'up=200Mbit,down=1Gbit,delay=500us,buffer=64K' -> {key: base units}; rate= sets up and down."""
    keys = {}
    for part in text.split(","):
        key, _, value = part.rpartition("=")
        if key in ("", "rate"):
            keys["up"] = keys["down"] = parse_rate(value)
        elif key in ("up", "down"):
            keys[key] = parse_rate(value)
        elif key == "delay":
            keys[key] = parse_time(value)
        elif key == "buffer":
            keys[key] = parse_bytes(value)
        else:
            raise UsageError(f"'{part}': must be rate=, up=, down=, delay= or buffer=")
    return keys
