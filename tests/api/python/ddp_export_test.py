"""`tune export --to ddp`: DistributedDataParallel really fills its buckets as the plan's messages say."""

import json
import os
import subprocess

import pytest
import torch
from models import ResidualNetwork, Transformer, batches, make, step
from ranks import on_ranks

import commtune.torch

RANKS = 2


def profile_of(model):
    """One layer a module that has parameters of its own; times do not matter here."""
    layers = {}
    for name, parameter in model.named_parameters():
        layer = layers.setdefault(name.rpartition(".")[0], {"forward_seconds": 0.001, "backward_seconds": 0.002, "tensors": []})
        layer["tensors"].append({"name": name, "bytes": parameter.numel() * 4})
    return {
        "format": "commtune/profile/1",
        "model": "small",
        "batch": 1,
        "data_type": "float32",
        "origin": {"how": "derived"},
        "layers": [{"name": name, **layer} for name, layer in layers.items()],
    }


def bucket_plan(kind):
    """Of this model, one message a tensor, in the order in which gradients appear."""

    def body(rank):
        training = commtune.torch.wrap(*make(kind, rank), "buckets")
        plan = training.bucket_plan(commtune.BucketOptions(4, 4))
        training.close()
        return plan

    return on_ranks(RANKS, body)[0]


def exported(plan, profile, folder, target="ddp"):
    for name, document in (("plan", plan), ("profile", profile)):
        (folder / f"{name}.json").write_text(json.dumps(document))
    environment = {**os.environ, "HOME": str(folder), "COMMTUNE_DB": str(folder / "store.db")}
    command = [os.environ["COMMTUNE_E2E_TUNE"], "export", "plan.json", "--to", target, "--model", "profile.json", "--json"]
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def buckets_of_iterations(kind, text, steps=4):
    """Names in each bucket of each iteration; the model is wrapped by the exported text itself."""

    def body(rank):
        model, optimizer = make(kind, rank)
        names = {id(parameter): name for name, parameter in model.named_parameters()}
        scope = {"torch": torch, "model": model}
        exec(text, scope)
        seen = []

        def hook(_state, bucket):
            seen[-1].append(sorted(names[id(parameter)] for parameter in bucket.parameters()))
            future = torch.futures.Future()
            future.set_result(bucket.buffer())
            return future

        scope["model"].register_comm_hook(None, hook)
        for batch in batches(kind, rank, steps):
            seen.append([])
            step(scope["model"], optimizer, *batch)
        return seen

    return on_ranks(RANKS, body)


def fused(plan, sizes):
    """Its messages, so many of them in one."""
    pieces = [piece for message in plan["messages"] for piece in message["pieces"]]
    messages, first = [], 0
    for size in sizes:
        messages.append({"pieces": pieces[first : first + size]})
        first += size
    assert first == len(pieces)
    return {**plan, "messages": messages, "priority": list(range(len(messages)))}


# Numbers of tensors from the last one on; each ends where a module or an encoder layer begins. In definition order the
# encoder's norms stand behind what runs after them, so inside of a layer gradients appear in another order.
@pytest.mark.parametrize(
    ("kind", "sizes"),
    [
        (ResidualNetwork, [2, 3, 3, 3, 5]),
        (ResidualNetwork, [5, 9, 2]),
        (ResidualNetwork, [2, 2, 1, 2, 1, 2, 1, 2, 1, 2]),
        (ResidualNetwork, [16]),
        (Transformer, [13, 12, 1]),
        (Transformer, [1, 12, 13]),
    ],
)
def test_ddp_runs_the_plans_groups_after_the_first_iterations(kind, sizes, tmp_path):
    profile = profile_of(make(kind)[0])
    plan = fused(bucket_plan(kind), sizes)
    export = exported(plan, profile, tmp_path)
    assert "bucket_cap_mb_list" in export["settings"]
    names = [tensor["name"] for layer in profile["layers"] for tensor in layer["tensors"]]
    planned = [sorted(names[piece["tensor"]] for piece in message["pieces"]) for message in plan["messages"]]
    # A static graph's first iteration only counts gradients, so that its buckets are filled anew one iteration later.
    for text, first in ((export["text"], 2), (export["text"].replace("static_graph=True", "static_graph=False"), 1)):
        for iterations in buckets_of_iterations(kind, text):
            assert sorted(name for bucket in iterations[0] for name in bucket) == sorted(names)
            assert iterations[first:] == [planned] * (len(iterations) - first)
    said = any("the first two iterations" in gap for gap in export["not_expressed"])
    assert said == (len(sizes) > 1)


@pytest.mark.parametrize("target", ["ddp", "ddp-single"])
def test_a_single_cap_closes_each_bucket_but_the_last(target, tmp_path):
    profile = profile_of(make(ResidualNetwork)[0])
    cap = exported(fused(bucket_plan(ResidualNetwork), [2, 3, 3, 3, 5]), profile, tmp_path, target)["settings"]["bucket_cap_mb"]
    text = f"model = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb={cap})"
    sizes = {tensor["name"]: tensor["bytes"] for layer in profile["layers"] for tensor in layer["tensors"]}
    buckets = [[sizes[name] for name in bucket] for bucket in buckets_of_iterations(ResidualNetwork, text)[0][-1]]
    assert len(buckets) > 1
    assert min(sum(bucket) for bucket in buckets[:-1]) >= int(float(cap) * 2**20)
