"""Started by torchrun or a process a rank: trains; a rank that is killed ends the others with one message naming it."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("train_script.py")
RANKS = 4


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def start(rank, port, *arguments):
    place = {"RANK": str(rank), "WORLD_SIZE": str(RANKS), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    return subprocess.Popen([sys.executable, SCRIPT, *arguments], env={**os.environ, **place}, stderr=subprocess.PIPE, text=True)


def test_torchrun_starts_it():
    command = ["torchrun", "--nnodes=1", f"--nproc-per-node={RANKS}", f"--master-port={free_port()}", SCRIPT]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    assert sorted(set(re.findall(r"rank (\d): \d", done.stderr))) == list("0123")


@pytest.mark.parametrize("model", ["Transformer", "ResidualNetwork"])  # the second shares buffers by gloo, before each pass
@pytest.mark.parametrize("barrier", ["full", "layer"])
def test_a_killed_rank_is_named_by_all_others(barrier, model):
    port = free_port()
    ranks = [start(rank, port, "--barrier", barrier, "--model", model, "--die", "2", "5") for rank in range(RANKS)]
    said = [rank.communicate(timeout=300)[1] for rank in ranks]
    assert ranks[2].returncode == -9
    for rank in (0, 1, 3):
        assert ranks[rank].returncode == 1, said[rank]
        last = said[rank].strip().splitlines()
        named = [line for line in last if "commtune.errors" in line]
        assert len(named) == 1, said[rank]
        assert re.search(r"PeerLost: .*rank 2 \(host ", named[0]), said[rank]
