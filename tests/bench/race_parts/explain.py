"""Where our time above the bound goes: a table whose lines add up to the gap.

Each line is the difference between two iterations that differ in one respect, from the bound to what was measured:

  bound                  the least that a lossless schedule needs at the links' rates, whatever its road
  + road                 the same for the plan's own road (its bytes through the busiest link)
  + plan                 the plan's messages in its order, each taking its bytes at the links' true rate and nothing else
  + copies               to and from fusion buffers, while a message holds the wire
  + contention           rank 0's threads could run and had no core
  + stage cost           the same order, but each message keeps the wire as long as it was measured to do: what is left
  + idle wire            the measured ends: what passed between a message that could go and its start
  + waking up            rank 0's measured iteration: layers that ended late, threads that woke late, the update's calls
  + stragglers           the slowest rank's iteration in the place of rank 0's

Copies and contention are what rank 0 counted per iteration, at most what there is to explain: some of either may have been
hidden behind the wire's work. Other times are rank 0's medians over the timed iterations. The wire is one machine: where messages overlap, each is charged
with what it adds to the end of the one before.
"""

import statistics

from . import bound as bounds_of
from .results import aligned, milliseconds


def road_seconds_per_byte(road, ports):
    """The busiest link's time per gradient byte on this road, latency aside."""
    workers = len(ports)
    if workers < 2:
        return 0.0
    rates = [min(port.up, port.down) for port in ports]
    if road["kind"] == "all-to-all":
        if road["algorithm"] in ("ring", "halving-doubling", "hierarchical"):
            return 2 * (workers - 1) / workers / min(rates)
        # In trees and the library's own algorithm links carry different shares: what they cost is "stage cost".
        return bounds_of.seconds_per_byte(ports)
    servers = road["servers"]
    if road["placement"] == "dedicated":
        return 1 / min(rates)
    # A worker sends its gradients to the servers elsewhere; a server's host also sends the sums to N - 1 workers.
    from_first = rates[road.get("first", 0):] + rates[:road.get("first", 0)]
    plain = [1 / rate for rate in from_first[servers:]]
    serving = [((servers - 1) + (workers - 1)) / servers / rate for rate in from_first[:servers]]
    return max(plain + serving)


class Steps:
    """A plan as a list of services on one wire: (message, share of its bytes, whether the first of the message)."""

    def __init__(self, plan, profile):
        layer_of = [index for index, layer in enumerate(profile["layers"]) for _ in layer["tensors"]]
        self.layers = [sorted({layer_of[piece["tensor"]] for piece in message["pieces"]}) for message in plan["messages"]]
        self.sizes = [sum(piece["length_bytes"] for piece in message["pieces"]) for message in plan["messages"]]
        ready, self.tail, _ = bounds_of.layer_times(profile)
        late = plan["release"] == "backward"
        self.release = [ready[0] if late else ready[layers[0]] for layers in self.layers]
        self.profile = profile
        self.full = plan["barrier"] == "full"
        self.priority = plan["priority"] if plan["order"] == "priority" else None
        self.sequence = [step["message"] for step in plan["sequence"]] or list(range(len(self.sizes)))
        self.share = 0.5 if plan["sequence"] else 1.0

    def in_order(self, cost):
        """Ends of all messages when each service lasts share * bytes * cost and nothing else takes time."""
        ends, free, left = {}, 0.0, list(self.sequence)
        while left:
            message = left[0]
            if self.priority:
                free = max(free, min(self.release[each] for each in left))
                message = min((each for each in left if self.release[each] <= free), key=lambda each: self.priority[each])
            left.remove(message)
            free = max(free, self.release[message]) + self.share * self.sizes[message] * cost
            ends[message] = free
        return ends

    def as_served(self, services):
        """Ends of all messages when (message, seconds) services follow each other as soon as the message may start."""
        ends, free = {}, 0.0
        for message, seconds in services:
            free = max(free, self.release[message]) + seconds
            ends[message] = free
        return ends

    def iteration(self, ends):
        """The iteration's length when message i has come back at ends[i]."""
        back = [0.0] * len(self.profile["layers"])
        for message, layers in enumerate(self.layers):
            for layer in layers:
                back[layer] = max(back[layer], ends[message])
        now = bounds_of.layer_times(self.profile)[0][0]
        if self.full:
            now = max(now, *back)
        for layer, description in enumerate(self.profile["layers"]):
            if not self.full:
                now = max(now, back[layer])
            now += description.get("update_seconds", 0) + description["forward_seconds"]
        return now


def measured_services(messages, decoupled):
    """What each service added to the wire's work, in the order in which they ended."""
    spans = []
    for index, message in enumerate(messages):
        if decoupled:
            spans.append((message["started_seconds"], message["reduced_seconds"], index))
            second = message.get("distributing_seconds", message["reduced_seconds"])
            spans.append((second, message["distributed_seconds"], index))
        else:
            spans.append((message["started_seconds"], message["distributed_seconds"], index))
    services, last_end = [], 0.0
    for start, end, index in sorted(spans, key=lambda span: span[1]):
        services.append((index, max(0.0, end - max(start, last_end))))
        last_end = max(last_end, end)
    return services


def parts_of_service(rank, excess):
    """Of the seconds by which messages held the wire too long, those that copying and waiting for a core can explain."""
    iterations = len(rank["iteration_seconds"])
    copies = min(rank.get("copying_seconds", 0) / iterations, excess)
    return copies, min(rank.get("delayed_seconds", 0) / iterations, excess - copies)


def stages(result, profile, plan, ports):
    """(name, seconds) from the bound to the measured iteration; differences are the table's lines."""
    report = result.chosen.rounds[-1].detail["report"]
    steps = Steps(plan, profile)
    cost = road_seconds_per_byte(plan["road"], ports)
    ready, tail, sizes = bounds_of.layer_times(profile)
    bodies = [(r, cost * size, q) for r, q, size in zip(ready, tail, sizes) if size]
    messages = report["messages"]
    services = measured_services(messages, bool(plan["sequence"]))
    ends = {index: message["distributed_seconds"] for index, message in enumerate(messages)}
    first = next(rank for rank in report["ranks"] if rank["rank"] == 0)
    planned = steps.iteration(steps.in_order(cost))
    served = steps.iteration(steps.as_served(services))
    copies, contention = parts_of_service(first, max(0.0, served - planned))
    return [
        ("bound", result.bounds.per_layer_barrier),
        ("road", max(result.bounds.per_layer_barrier, bounds_of.jackson(bodies))),
        ("plan", planned),
        ("copies", planned + copies),
        ("contention", planned + copies + contention),
        ("stage cost", served),
        ("idle wire", steps.iteration(ends)),
        ("waking up", statistics.median(first["iteration_seconds"])),
        ("stragglers", statistics.median(report["iteration_seconds"])),
    ]


def table(result, profile, plan, ports):
    """The table as text, for the last round of the tuner's choice."""
    steps = stages(result, profile, plan, ports)
    floor = steps[0][1]
    rows = [["where the time goes (last round)", "ms", "of the bound"]]
    rows.append(["bound", milliseconds(floor), "100.0%"])
    for (_, before), (name, after) in zip(steps, steps[1:]):
        rows.append([f"+ {name}", milliseconds(after - before), f"{(after - before) / floor:+.1%}"])
    measured = steps[-1][1]
    rows.append(["= measured", milliseconds(measured), f"{measured / floor:.1%}"])
    ideal = result.bounds.communication
    wire = sum(seconds for _, seconds in measured_services(result.chosen.rounds[-1].detail["report"]["messages"], bool(plan["sequence"])))
    return aligned(rows, 1) + f"\nwire busy {milliseconds(wire)} ms, ideal {milliseconds(ideal)} ms; {len(plan['messages'])} messages"
