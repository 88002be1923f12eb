"""What a probe found, against what is true."""

import collections
import json
import statistics

# Streams of messages below this size cost processor time, not bytes: reported apart.
SMALL_BYTES = 16 << 10

# Of those on emulated hosts that share cores: which of them has one when decides what they take, so that two
# probes of the same size differ by a quarter and more. A fit cannot be closer to one probe than another probe is, so
# they are judged by how much two probes differ, where that is more than the targets.
SHARED_CORES = ", small, shared cores"


def cost(curve, size):
    piece = [p for p in curve if p["from_bytes"] <= size][-1]
    return piece["alpha_seconds"] + piece["beta_seconds_per_byte"] * size


def slope(curve, low, high):
    """Time per byte between two sizes."""
    return (cost(curve, high) - cost(curve, low)) / (high - low)


def typical(truth):
    """Rate and delay of the pair that the fit of the class stands for: the fastest."""
    best = max(truth["pairs"], key=lambda pair: (pair["goodput_bytes_per_second"], -pair["delay_seconds"]))
    return 1 / best["goodput_bytes_per_second"], best["delay_seconds"]


def latency(links):
    """One way, of a small message, between the typical pair of hosts: the delay and the stack's own share."""
    return statistics.median(link["latency_seconds"] for link in links["links"] if link["latency_seconds"] > 0)


def verdicts(links):
    return {links["hosts"][verdict["host"]]: verdict["kind"] for verdict in links["verdicts"]}


def key_of(sample):
    """What a sample's curve is, apart from the size: streamed ones differ in how many are under way."""
    subject = sample["subject"]
    streamed = "streamed" if sample["in_flight"] > 1 else "alone"
    if subject == "operation":
        return (subject, json.dumps(sample["road"], sort_keys=True), sample["operation"], sample["workers"], streamed)
    return (subject, streamed)


def curves(cluster):
    """Every fit of a cluster by the key of its samples, with its range."""
    found = {}
    link = cluster["links"].get("inter-host", {})
    for name, key in (("alone", ("message", "alone")), ("streamed", ("message", "streamed")), ("duplex", ("exchange", "streamed"))):
        if link.get(name):
            found[key] = link[name]
    for operation in cluster["operations"]:
        road = json.dumps(operation["road"], sort_keys=True)
        for name in ("alone", "streamed"):
            if operation.get(name):
                found[("operation", road, operation["operation"], operation["workers"], name)] = operation[name]
    return found


def of_curves(samples):
    """The latest sample of each size, without the pairs of hosts that were measured at a size or two for the matrix:
    slow ones are meant to differ from the curve of their class."""
    latest, sizes = {}, {}
    for sample in samples:
        pair = (sample.get("source"), sample.get("destination"))
        latest[(key_of(sample), pair, sample["size_bytes"])] = sample
    for key, pair, _ in latest:
        sizes.setdefault(key, {}).setdefault(pair, 0)
        sizes[key][pair] += 1
    return [sample for (key, pair, _), sample in latest.items() if sizes[key][pair] == max(sizes[key].values())]


def typical_of(probes):
    """One sample of each size that any of the probes measured: of those that did, the median time."""
    found = {}
    for samples in probes:
        for sample in of_curves(samples):
            pair = (sample.get("source"), sample.get("destination"))
            found.setdefault((key_of(sample), pair, sample["size_bytes"]), []).append(sample)
    return [{**same[0], "seconds": statistics.median(sample["seconds"] for sample in same)} for same in found.values()]


def label_of(sample, shared_cores):
    """What a sample is counted under in the table of held-out sizes."""
    kind = sample["subject"] if sample["subject"] != "operation" else sample["operation"]
    label = f"{kind} {'streamed' if sample['in_flight'] > 1 else 'alone'}"
    if sample["in_flight"] == 1 or sample["size_bytes"] >= SMALL_BYTES:
        return label
    return label + (SHARED_CORES if shared_cores else ", small")


def why_left_out(sample, fit):
    """Why a held-out sample says nothing of a fit, in one word; None: it does."""
    if sample["subject"] not in ("message", "exchange", "operation"):
        return "no-curve"
    if sample["seconds"] <= 0:
        return "no-time"
    if fit is None:
        return "no-fit"
    if not fit["smallest_bytes"] <= sample["size_bytes"] <= fit["largest_bytes"]:
        return "outside-the-fit's-sizes"
    return None


def held_out(cluster, samples, shared_cores):
    """Relative errors of the fits at sizes that another probe measured, by kind; and how many sizes say nothing of a fit, by
    the rule that leaves them out."""
    fits = curves(cluster)
    errors, left_out = {}, collections.Counter()
    for sample in of_curves(samples):
        fit = fits.get(key_of(sample))
        reason = why_left_out(sample, fit)
        if reason:
            left_out[reason] += 1
            continue
        size, seconds = sample["size_bytes"], sample["seconds"]
        errors.setdefault(label_of(sample, shared_cores), []).append(abs(cost(fit["curve"], size) - seconds) / seconds)
    return errors, left_out


def repeated(samples, again, shared_cores):
    """By how much two probes of the same sizes differ, relative to the first, by kind."""
    first = {(key_of(sample), sample["size_bytes"]): sample["seconds"] for sample in of_curves(samples)}
    differences = {}
    for sample in of_curves(again):
        seconds = first.get((key_of(sample), sample["size_bytes"]), 0)
        if seconds > 0:
            differences.setdefault(label_of(sample, shared_cores), []).append(abs(sample["seconds"] - seconds) / seconds)
    return differences
