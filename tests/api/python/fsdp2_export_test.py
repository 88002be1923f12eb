"""`tune export --to fsdp2`: FSDP2 really has the plan's groups, and trains with them."""

import json

import pytest
import torch
from ddp_export_test import bucket_plan, exported, fused, profile_of
from models import ResidualNetwork, batches, make, step
from ranks import on_ranks

RANKS = 2


def sharded_groups(kind, text):
    """Names of the parameters of each group, after two steps; the model is sharded by the exported text itself."""

    def body(rank):
        model, _ = make(kind)
        exec(text, {"torch": torch, "model": model})
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for batch in batches(kind, rank, 2):
            step(model, optimizer, *batch)
        groups = {}
        for module in model.modules():
            if hasattr(module, "_get_fsdp_state") and (group := module._get_fsdp_state()._fsdp_param_group):
                groups[id(group)] = [parameter._param_fqn for parameter in group.fsdp_params]
        return sorted(groups.values())

    return on_ranks(RANKS, body)


# Numbers of tensors from the last one on; each ends where a module begins.
@pytest.mark.parametrize("sizes", [[2, 3, 3, 3, 5], [5, 9, 2], [2, 2, 1, 2, 1, 2, 1, 2, 1, 2], [16]])
def test_groups_are_the_plans_messages(sizes, tmp_path):
    profile = profile_of(make(ResidualNetwork)[0])
    plan = fused(bucket_plan(ResidualNetwork), sizes)
    export = exported(plan, profile, tmp_path, "fsdp2")
    names = [tensor["name"] for layer in profile["layers"] for tensor in layer["tensors"]]
    planned = sorted(sorted((names[piece["tensor"]] for piece in message["pieces"]), key=names.index) for message in plan["messages"])
    assert sharded_groups(ResidualNetwork, export["text"]) == [planned] * RANKS
    assert not any("whole modules" in gap for gap in export["not_expressed"])


def test_a_module_is_not_divided(tmp_path):
    profile = profile_of(make(ResidualNetwork)[0])
    export = exported(fused(bucket_plan(ResidualNetwork), [1, 15]), profile, tmp_path, "fsdp2")
    assert len(json.loads(export["settings"]["groups"])) == 1
    assert any("there are 1 of" in gap for gap in export["not_expressed"])
