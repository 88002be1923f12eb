"""What `tune profile --pytorch` reads of models that everybody knows is what the shipped profiles say of them."""

import json
from pathlib import Path

import pytest
from known_models import on_meta

import commtune.torch.profile as profiles

ROOT = Path(__file__).resolve().parents[3]


def tensors_of(profile):
    return {tensor["name"]: tensor["bytes"] for layer in profile["layers"] for tensor in layer["tensors"]}


def read(name):
    return tensors_of(profiles.profile(on_meta(name), 1, budget=0))


@pytest.mark.parametrize("name", sorted(path.stem for path in (ROOT / "perfmodel/profiles").glob("*.json")))
def test_names_and_sizes_are_the_shipped_profiles(name):
    shipped = json.loads((ROOT / f"perfmodel/profiles/{name}.json").read_text(encoding="utf-8"))
    assert read(name) == tensors_of(shipped)


def test_a_tied_head_is_sent_once_with_its_embedding():
    # Embedding 128,256 x 2,048; a layer: queries and output 2 x 2,048 x 2,048, keys and values 2 x 512 x 2,048, three times
    # 8,192 x 2,048, two norms of 2,048; a last norm.
    layer = 2 * 2048 * 2048 + 2 * 512 * 2048 + 3 * 8192 * 2048 + 2 * 2048
    sizes = read("llama3_1b")
    assert sum(sizes.values()) == 2 * (128256 * 2048 + 16 * layer + 2048) == 2 * 1_235_814_400
    assert "lm_head.weight" not in sizes
    assert len(sizes) == 1 + 16 * 9 + 1
