"""What disturbs a measurement on emulated clusters from outside: processor time that a hypervisor gave to other machines
while this one wanted it, and packets that the emulated switch delivered later than its links would have. What was timed
meanwhile is about those too."""

import dataclasses
from pathlib import Path

STAT = Path("/proc/stat")
_USER, _IDLE, _IOWAIT, _STEAL = 0, 3, 4, 7  # fields of proc_stat(5) after "cpu"
STOLEN_LIMIT = 0.05  # of the wanted time
LATE_LIMIT = 0.05  # of the deliveries; 0.3 to 1 % are usual (README of tests/cluster)
TRIES = 3


@dataclasses.dataclass(frozen=True)
class Disturbance:
    stolen: float = 0.0  # of the wanted processor time
    late: float = 0.0  # deliveries more than 50 us after their time, of all

    @property
    def amount(self):
        """Over the limit that it is closest to, or furthest beyond."""
        return max(self.stolen / STOLEN_LIMIT, self.late / LATE_LIMIT)

    @property
    def punctual(self):
        """Whether the emulated links did what they say."""
        return self.late <= LATE_LIMIT


def ticks(text):
    """Ticks that all cores worked, and that they wanted to and could not, of the text of /proc/stat."""
    words = [int(word) for word in text.splitlines()[0].split()[1:]]
    working = sum(words[_USER:_STEAL]) - words[_IDLE] - words[_IOWAIT]
    return working, words[_STEAL]


def deliveries(status):
    """All that a switch made, and those more than 50 us late, of its `control status`; None: there is no switch."""
    if status is None:
        return 0, 0
    lateness = status["lateness"]
    return lateness["frames"], round(lateness["frames"] * lateness["over_50us_ratio"])


class Watch:
    """Tells what disturbed a stretch of time. status: of the switch, called for its `control status`."""

    def __init__(self, status=lambda: None, stat=STAT.read_text):
        self._status, self._stat = status, stat

    def now(self):
        return ticks(self._stat()), deliveries(self._status())

    @staticmethod
    def between(before, after):
        (worked_before, stolen_before), (all_before, late_before) = before
        (worked, stolen), (all_now, late) = after
        wanted = worked - worked_before + stolen - stolen_before
        delivered = all_now - all_before
        return Disturbance(
            (stolen - stolen_before) / wanted if wanted > 0 else 0.0,
            (late - late_before) / delivered if delivered > 0 else 0.0,
        )

    def calmly(self, measure):
        """What measure() returned and what disturbed it; measures again while that exceeds a limit, and gives the calmest
        of all tries."""
        calmest = None
        for _ in range(TRIES):
            before = self.now()
            result = measure()
            disturbance = self.between(before, self.now())
            if calmest is None or disturbance.amount < calmest[1].amount:
                calmest = result, disturbance
            if disturbance.amount <= 1:
                break
        return calmest
