"""The least time that any lossless way of summing gradients needs on links of known rates.

Independent of commtune's own fits and of its library: the race judges both sides by it.

Model. N workers, worker h on a link of its own with `up` and `down` bytes per second of payload. An element of a
gradient tensor is summed over all workers and the sum is known to all of them at the end; hosts sum, the network does
not; nothing is compressed. Then for each element, whatever the road (ring, tree, parameter servers on the workers'
hosts, ...):

* at least 2(N-1) copies of it cross the network. Take the first moment at which some worker v knows the sum. Until then
  each of the N-1 others has sent something that was received; from then on each of the N-1 others still has to receive
  something. (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms", JPDC 69, 2009, for equal links.)
* each worker sends its own contribution at least once and receives at least once.

So a set of tensors of m bytes keeps the network busy for at least b*m seconds with

    b = max( 2(N-1)/sum_h up_h, 2(N-1)/sum_h down_h, max_h 1/up_h, max_h 1/down_h ).

With equal links this is 2(N-1)/(N*rate), a ring's bytes. With one slow link it is less than a ring needs: servers on the
other hosts spare the slow one all but its own gradient (BytePS, OSDI 2020).

An iteration is then a one-machine problem with heads r_i (when a gradient appears), bodies b*m_i and tails q_i (what
can only start after it came back), bounded by Jackson's preemptive schedule (1955; Carlier 1982):

    T >= max( B + U + F, delay + Jackson(r, b*m, q) )

Time zero is the start of the backward pass; r_i sums the backward times of the layers from the last to i; q_i sums the
update and forward times from layer i to the last (per-layer barrier) or of all layers (full barrier).
"""

import dataclasses
import heapq


@dataclasses.dataclass(frozen=True)
class Port:
    """A worker's link: payload bytes per second to and from the network, and seconds from host to host."""

    up: float
    down: float
    delay: float


@dataclasses.dataclass(frozen=True)
class Bounds:
    """Seconds that no iteration can be shorter than, and what they are made of."""

    compute: float
    per_layer_barrier: float
    full_barrier: float
    communication: float  # all bytes at the best rate, nothing else


def seconds_per_byte(ports):
    """The network's least busy time per gradient byte; zero for one worker."""
    workers = len(ports)
    if workers < 2:
        return 0.0
    copies = 2 * (workers - 1)
    return max(
        copies / sum(port.up for port in ports),
        copies / sum(port.down for port in ports),
        max(1 / port.up for port in ports),
        max(1 / port.down for port in ports),
    )


def jackson(jobs):
    """Length of Jackson's preemptive schedule of (head, body, tail) jobs: no schedule's max(end + tail) is less."""
    waiting, now, longest = [], 0.0, 0.0
    by_head = sorted(jobs)
    index = 0
    while index < len(by_head) or waiting:
        if not waiting:
            now = max(now, by_head[index][0])
        while index < len(by_head) and by_head[index][0] <= now:
            _, body, tail = by_head[index]
            heapq.heappush(waiting, (-tail, body))
            index += 1
        negative_tail, body = heapq.heappop(waiting)
        next_head = by_head[index][0] if index < len(by_head) else float("inf")
        worked = min(body, next_head - now)
        now += worked
        if worked < body:
            heapq.heappush(waiting, (negative_tail, body - worked))
        else:
            longest = max(longest, now - negative_tail)
    return longest


def layer_times(profile):
    """Per layer, forward order: when its gradients exist, what follows them, and how many bytes they are."""
    layers = profile["layers"]
    ready, total = [0.0] * len(layers), 0.0
    for index in reversed(range(len(layers))):
        total += layers[index]["backward_seconds"]
        ready[index] = total
    tail, after = [0.0] * len(layers), 0.0
    for index in reversed(range(len(layers))):
        after += layers[index]["forward_seconds"] + layers[index].get("update_seconds", 0)
        tail[index] = after
    sizes = [sum(tensor["bytes"] for tensor in layer["tensors"]) for layer in layers]
    return ready, tail, sizes


def bounds(profile, ports):
    """Bounds of one iteration of a profile (format "commtune/profile/1") on these links, one worker on each."""
    ready, tail, sizes = layer_times(profile)
    compute = ready[0] + tail[0]
    cost = seconds_per_byte(ports)
    delay = min(port.delay for port in ports) if len(ports) > 1 else 0.0
    per_layer = [(r, cost * size, q) for r, q, size in zip(ready, tail, sizes) if size]
    full = [(r, body, tail[0]) for r, body, _ in per_layer]
    return Bounds(
        compute=compute,
        per_layer_barrier=max(compute, delay + jackson(per_layer)),
        full_barrier=max(compute, delay + jackson(full)),
        communication=cost * sum(sizes),
    )
