"""What one rank of a bench has beside PyTorch: a time line of compute, jobs as processes of their own, and what they used.

A rank is given commands on stdin, a line each that begins with the number of a job (0, 1, ...), and each job answers with one
line of JSON on stdout; `quit` ends them all.
"""

import ctypes
import os
import resource
import sys
import time

CLOCK_MONOTONIC = 1
TIMER_ABSTIME = 1
PR_SET_TIMERSLACK = 29
TIMER_SLACK_NS = 1000


class Timespec(ctypes.Structure):
    _fields_ = [("tv_sec", ctypes.c_long), ("tv_nsec", ctypes.c_long)]


class TimeLine:
    """When the compute side is where: late wake-ups do not add up, since each wait ends at an absolute time."""

    def __init__(self):
        libc = ctypes.CDLL(None)
        libc.prctl(PR_SET_TIMERSLACK, ctypes.c_ulong(TIMER_SLACK_NS), 0, 0, 0)
        self._nanosleep = libc.clock_nanosleep
        self._until = Timespec()
        self._until_pointer = ctypes.byref(self._until)
        self.at = time.monotonic_ns()

    def spend(self, nanoseconds):
        """A layer of that length: returns when it ends."""
        if nanoseconds == 0:
            return
        self.skip(nanoseconds)
        self._until.tv_sec, self._until.tv_nsec = divmod(self.at, 1_000_000_000)
        while self._nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, self._until_pointer, None) != 0:
            pass

    def skip(self, nanoseconds):
        """A layer of that length, whose end nobody waits for: the processor need not wake up for it."""
        self.at += nanoseconds

    def resume(self):
        """After waiting for something that no layer computes: the line goes on from now, unless it is ahead."""
        self.at = max(self.at, time.monotonic_ns())


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def peak_bytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def fork_job(work, inherited):
    """A job as a process of its own: (the stream for its commands, the stream of its answers).

    work       work(commands, answers), which answers each line of the first by one line of the second
    inherited  streams of other jobs, which end when this process lets go of them, not that one"""
    commands_in, commands_out = os.pipe()
    answers_in, answers_out = os.pipe()
    if os.fork() == 0:
        for stream in inherited:
            os.close(stream.fileno())
        os.close(commands_out)
        os.close(answers_in)
        status = 1
        try:
            work(os.fdopen(commands_in), os.fdopen(answers_out, "w"))
            status = 0
        except BaseException:  # pylint: disable=broad-except
            sys.excepthook(*sys.exc_info())
        finally:
            sys.stderr.flush()
            os._exit(status)  # what is above belongs to the parent
    os.close(commands_in)
    os.close(answers_out)
    return os.fdopen(commands_out, "w"), os.fdopen(answers_in)


def serve(works):
    """Has a job for each, numbered from 0. Hands each command on stdin to its job, and the answer to stdout."""
    jobs = []
    for work in works:
        jobs.append(fork_job(work, [stream for job in jobs for stream in job]))
    for line in sys.stdin:
        serial, _, command = line.strip().partition(" ")
        if serial == "quit":
            break
        commands, answers = jobs[int(serial)]
        print(command, file=commands, flush=True)
        reply = answers.readline()
        if not reply:
            raise SystemExit(1)  # it has said why
        print(reply, end="", flush=True)
    for commands, _ in jobs:
        commands.close()
    for _ in jobs:
        os.wait()
