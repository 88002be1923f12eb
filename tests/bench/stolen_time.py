"""Processor time that a hypervisor gave to other machines while this one wanted it: what was timed meanwhile is
about those other machines too."""

from pathlib import Path

STAT = Path("/proc/stat")
_USER, _IDLE, _IOWAIT, _STEAL = 0, 3, 4, 7  # fields of proc_stat(5) after "cpu"
LIMIT = 0.05  # of the wanted time
TRIES = 3


def read(text):
    """Ticks that all cores worked, and that they wanted to and could not, of the text of /proc/stat."""
    ticks = [int(word) for word in text.splitlines()[0].split()[1:]]
    working = sum(ticks[_USER : _STEAL]) - ticks[_IDLE] - ticks[_IOWAIT]
    return working, ticks[_STEAL]


def share(before, after):
    """Stolen of the wanted time between two texts of /proc/stat; 0 where nothing was wanted."""
    (worked_before, stolen_before), (worked, stolen) = read(before), read(after)
    wanted = worked - worked_before + stolen - stolen_before
    return (stolen - stolen_before) / wanted if wanted > 0 else 0.0


def calmly(measure, limit=LIMIT, tries=TRIES, stat=STAT.read_text):
    """What measure() returned and the share of time stolen during it; measures again while that exceeds the limit, and
    gives the calmest of all tries."""
    calmest = None
    for _ in range(tries):
        before = stat()
        result = measure()
        stolen = share(before, stat())
        if calmest is None or stolen < calmest[1]:
            calmest = result, stolen
        if stolen <= limit:
            break
    return calmest
