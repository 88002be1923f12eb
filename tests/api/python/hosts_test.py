"""On four emulated hosts: the same losses and parameters as DistributedDataParallel's, and a killed rank is named."""

import json
import re
from pathlib import Path

import pytest
from hosts import finished, up
from models import assert_same

HERE = Path(__file__).parent
HOSTS = 4
KILLED = (-9, 128 + 9)  # as its own process or a shell tells


@pytest.fixture(scope="module")
def hosts():
    with up(HOSTS, "--rate", "1Gbit", "--delay", "100us") as those:
        yield those


@pytest.mark.parametrize(("kind", "barrier"), [("ResidualNetwork", "full"), ("Transformer", "layer")])
def test_losses_and_parameters_are_those_of_ddp(hosts, kind, barrier):
    ranks = hosts.start(HERE / "same_as_ddp.py", kind, barrier)
    said = finished(ranks)
    assert [rank.returncode for rank in ranks] == [0] * HOSTS, [text for _, text in said]
    learnt = []
    for output, _ in said:
        found = json.loads(output.splitlines()[-1])
        assert_same(found["ours"], found["theirs"])
        losses, parameters = found["ours"]
        assert losses[-1] < losses[0]
        learnt.append(parameters)
    if kind == "Transformer":
        assert all(each == learnt[0] for each in learnt)


@pytest.mark.parametrize("barrier", ["full", "layer"])
def test_a_killed_rank_is_named_with_its_host_by_all_others(hosts, barrier):
    ranks = hosts.start(HERE / "train_script.py", "--barrier", barrier, "--die", "2", "5")
    said = [text for _, text in finished(ranks)]
    assert ranks[2].returncode in KILLED
    for rank in (0, 1, 3):
        assert ranks[rank].returncode == 1, said[rank]
        named = [line for line in said[rank].splitlines() if "commtune.errors" in line]
        assert len(named) == 1, said[rank]
        assert re.search(r"PeerLost: .*rank 2 \(host h3", named[0]), said[rank]


def test_a_training_measures_the_network_between_hosts_and_plans(hosts, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for name in ("COMMTUNE_URL", "COMMTUNE_CLUSTER"):
        monkeypatch.delenv(name, raising=False)
    ranks = hosts.start(HERE / "auto_script.py", "70")
    said = finished(ranks)
    assert [rank.returncode for rank in ranks] == [0] * HOSTS, [text for _, text in said]
    found = [json.loads(output.splitlines()[-1]) for output, _ in said]
    assert len({each["digest"] for each in found}) == 1
    assert {"timing", "waiting", "planning"} <= set(found[0]["states"])
    assert {"adopted", "taken back"} & set(found[0]["states"])
    (folder,) = (tmp_path / "commtune" / "auto").iterdir()
    cluster = json.loads((folder / "cluster.json").read_text())
    assert [host["name"] for host in cluster["hosts"]] == [f"h{number}" for number in range(1, HOSTS + 1)]
    per_byte = cluster["links"]["inter-host"]["alone"]["curve"][-1]["beta_seconds_per_byte"]
    assert 0.5 < 0.94 * 125e6 * per_byte < 2  # 1 Gb/s, as TCP has it
