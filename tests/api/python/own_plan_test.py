"""plan="auto" where nobody has a plan: times, probe, plan, trial, and what is kept of them."""

import json
import os
import tempfile

import pytest
import torch
from models import ResidualNetwork, Transformer, assert_same, batches, make, numbers, step, train_by_ddp
from ranks import on_ranks
from torch.nn.parallel import DistributedDataParallel

import commtune
import commtune.torch
from commtune import measuring
from commtune.torch import own_plan
from commtune.torch.kept import OLDEST, KeptPlan
from commtune.torch.profile import StepProfiler

RANKS = 2


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """No cache but the test's own, nobody to ask, and no patience."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(own_plan, "PATIENCE", 0.0)
    for name in ("COMMTUNE_URL", "COMMTUNE_CLUSTER"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "cache" / "commtune" / "auto"


def trained(rank, kind=Transformer, steps=60, until="", **options):
    """(losses, parameters, states of the own plan, digests of plans in force) of a training with "auto".

    until  a state that all ranks know; what comes after "planning" only rank 0 does
    """
    model, optimizer = make(kind, rank)
    training = commtune.torch.wrap(model, optimizer, "auto", probe_budget=3.0, **options)
    losses, states, digests = [], [], []
    for batch in batches(kind, rank, steps):
        losses.append(step(model, optimizer, *batch))
        states.append(training.own_plan_state)
        digests.append(training.plan_digest)
        if states[-1] == until:
            break
        if states[-1] == "planning" and rank == 0:
            training._own._planning.join(60)  # a busy machine may be slow
    training.close()
    return losses, numbers(model), states, digests


def test_a_training_measures_plans_tries_and_keeps(cache):
    def body(rank):
        return trained(rank, steps=70)

    steps = 70
    by_ddp = on_ranks(RANKS, lambda rank: train_by_ddp(Transformer, rank, steps))
    for (losses, parameters, states, digests), theirs in zip(on_ranks(RANKS, body), by_ddp, strict=True):
        assert_same((losses, parameters), theirs)
        order = [state for state, before in zip(states, ["", *states], strict=False) if state != before]
        assert order[:3] == ["timing", "waiting", "planning"]
        assert len(set(digests)) == 2
    (folder,) = cache.iterdir()
    documents = {path.stem: json.loads(path.read_text()) for path in folder.iterdir()}
    assert set(documents) == {"cluster", "profile", "plan", "result"}
    assert documents["result"]["state"] in ("adopted", "taken back")
    assert documents["plan"]["barrier"] == "full"
    assert documents["profile"]["origin"]["how"] == "measured"
    assert folder.stat().st_mode & 0o777 == 0o700


def test_the_hook_of_ddp_makes_its_own_plan_too(cache):
    steps = 70

    def body(rank):
        model, optimizer = make(Transformer, rank)
        wrapped = DistributedDataParallel(model)
        communication = commtune.torch.ddp_hook(wrapped, "auto", probe_budget=3.0)
        losses, states = [], []
        for batch in batches(Transformer, rank, steps):
            losses.append(step(wrapped, optimizer, *batch))
            states.append(communication.own_plan_state)
            if states[-1] == "planning" and rank == 0:
                communication._own._planning.join(60)  # a busy machine may be slow
        communication.close()
        return losses, numbers(model), states

    by_ddp = on_ranks(RANKS, lambda rank: train_by_ddp(Transformer, rank, steps))
    for (losses, parameters, states), theirs in zip(on_ranks(RANKS, body), by_ddp, strict=True):
        assert_same((losses, parameters), theirs)
        assert {"timing", "waiting", "planning"} <= set(states)
    (folder,) = cache.iterdir()
    assert folder.name.endswith("-hook")
    assert {path.stem for path in folder.iterdir()} == {"cluster", "profile", "plan", "result"}


def test_what_is_kept_is_taken_at_once_and_nothing_is_measured():
    def first(rank):
        return trained(rank)

    def again(rank):
        model, optimizer = make(Transformer, rank)
        training = commtune.torch.wrap(model, optimizer, "auto")
        digest, state = training.plan_digest, training.own_plan_state
        buckets = training.first_plan()
        training.adopt(buckets)
        of_buckets = training.plan_digest
        training.close()
        return digest, of_buckets, state

    _, _, states, digests = on_ranks(RANKS, first)[0]
    for digest, of_buckets, state in on_ranks(RANKS, again):
        assert state == ""
        assert digest == (digests[-1] if states[-1] == "adopted" else of_buckets)


def test_layers_that_wait_for_themselves_get_a_plan_for_that(cache):
    def body(rank):
        return trained(rank, ResidualNetwork, barrier="layer")

    assert "trying" in on_ranks(RANKS, body)[0][2]
    (folder,) = cache.iterdir()
    assert folder.name.endswith("-layer")
    assert json.loads((folder / "plan.json").read_text(encoding="utf-8"))["barrier"] == "per-layer"


def test_a_training_that_ends_early_keeps_what_it_measured(cache):
    def body(rank):
        return trained(rank, until="planning")

    on_ranks(RANKS, body)
    (folder,) = cache.iterdir()
    assert {path.stem for path in folder.iterdir()} == {"cluster", "profile", "plan"}


def test_without_a_budget_nothing_is_measured(cache):
    def body(rank):
        model, optimizer = make(Transformer, rank)
        training = commtune.torch.wrap(model, optimizer, "auto", probe_budget=0)
        for batch in batches(Transformer, rank, 20):
            step(model, optimizer, *batch)
        state = training.own_plan_state
        training.close()
        return state

    assert on_ranks(RANKS, body) == [""] * RANKS
    assert not cache.exists()


def test_a_plan_that_the_user_chose_is_not_overruled():
    def body(rank):
        model, optimizer = make(Transformer, rank)
        training = commtune.torch.wrap(model, optimizer, "auto", probe_budget=3.0)
        training.adopt(training.bucket_plan(commtune.BucketOptions(servers=2)))
        chosen = training.plan_digest
        for batch in batches(Transformer, rank, 20):
            step(model, optimizer, *batch)
        kept = training.plan_digest == chosen
        training.close()
        return kept

    assert on_ranks(RANKS, body) == [True] * RANKS


def test_a_probe_that_fails_leaves_the_training_as_it_is(monkeypatch):
    def refuse(*_arguments, **_named):
        raise commtune.CommtuneError("another probe runs", "conflict")

    monkeypatch.setattr(measuring, "probe", refuse)

    def body(rank):
        return trained(rank, steps=20)

    for losses, _, states, digests in on_ranks(RANKS, body):
        assert len(losses) == 20
        assert states[-1] == "given up"
        assert len(set(digests)) == 1


def test_trials_compare_medians_without_the_first_step():
    trial = own_plan.Trial(3)
    for number in range(1, 6):
        assert trial.is_ready == (number > 3)
        trial.add(number, 1.0)
    trial.begin(8)
    for number, seconds in ((6, 1.0), (7, 1.0), (8, 50.0), (9, 2.0), (10, 3.0)):
        trial.add(number, seconds)
        assert trial.result() is None
    trial.add(11, 4.0)
    assert trial.result() == {"before_seconds": 1.0, "after_seconds": 3.0}


def test_a_slower_plan_is_taken_back(monkeypatch, cache):
    monkeypatch.setattr(own_plan, "NO_SLOWER", 0.0)  # whatever it is

    def body(rank):
        _, _, states, digests = trained(rank, steps=80)
        return states, digests

    found = on_ranks(RANKS, body)
    for _, digests in found:
        assert digests[0] == digests[-1]
        assert len(set(digests)) == 2
    assert found[0][0][-1] == "taken back"
    (folder,) = cache.iterdir()
    assert json.loads((folder / "result.json").read_text())["state"] == "taken back"


def test_only_ones_own_files_count(cache):
    kept = KeptPlan("0123456789abcdef", ["a", "b"], "full")
    kept.write("plan", {"method": "x"})
    assert kept.plan() == {"method": "x"}
    (kept.folder / "plan.json").chmod(0o666)
    assert kept.plan() is None
    (kept.folder / "plan.json").chmod(0o644)
    old = kept.folder.stat().st_mtime - OLDEST - 10
    os.utime(kept.folder / "plan.json", (old, old))
    assert kept.plan() is None
    kept.write("plan", {"method": "x"})
    kept.write("result", {"state": "taken back"})
    assert kept.plan() is None
    assert kept.is_known
    assert KeptPlan("0123456789abcdef", ["b", "a"], "full").folder != kept.folder


def kept_in_a_folder():
    kept = KeptPlan("0123456789abcdef", ["a", "b"], "full")
    kept.folder.mkdir(parents=True, mode=0o700)
    return kept


@pytest.mark.parametrize("name", ["plan.json", f".plan-{os.getpid()}"])
def test_a_link_in_the_folder_leads_nowhere(tmp_path, name):
    target = tmp_path / "target"
    target.write_text("mine", encoding="utf-8")
    kept = kept_in_a_folder()
    (kept.folder / name).symlink_to(target)
    kept.write("plan", {"method": "x"})
    assert target.read_text(encoding="utf-8") == "mine"
    written = kept.folder / "plan.json"
    assert not written.is_symlink()
    assert written.stat().st_mode & 0o777 == 0o600
    assert kept.plan() == {"method": "x"}


def test_a_file_that_cannot_be_written_leaves_nothing_behind(monkeypatch):
    kept = kept_in_a_folder()
    (kept.folder / "plan.json").mkdir()  # a file does not replace a folder
    kept.write("plan", {"method": "x"})
    assert [path.name for path in kept.folder.iterdir()] == ["plan.json"]
    monkeypatch.setattr(tempfile, "mkstemp", full_disk)
    kept.write("result", {"state": "adopted"})
    assert [path.name for path in kept.folder.iterdir()] == ["plan.json"]


def full_disk(mkstemp=tempfile.mkstemp, **where):
    """Makes a file that takes nothing."""
    descriptor, path = mkstemp(**where)
    os.close(descriptor)
    return os.open("/dev/full", os.O_WRONLY), path


def test_the_layers_of_a_step_are_timed():
    model, optimizer = make(ResidualNetwork)
    profiler = StepProfiler(model, lambda: None)
    for batch in batches(ResidualNetwork, 0, 3):
        step(model, optimizer, *batch)
        profiler.made_all()
    profiler.detach()
    profile = profiler.profile()
    assert [tensor["name"] for layer in profile["layers"] for tensor in layer["tensors"]] == [
        name for name, _ in model.named_parameters()
    ]
    assert all(layer["forward_seconds"] > 0 for layer in profile["layers"])
    assert sum(layer["backward_seconds"] for layer in profile["layers"]) > 0
    assert not model._forward_pre_hooks
    assert torch.is_grad_enabled()
