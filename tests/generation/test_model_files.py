"""A folder's model is told from another one by what is in its files."""

import pytest

from generation import model_files
from generation.model_files import fingerprint, revision_of


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text('{"layers": 2}')
    (folder / "model.safetensors").write_bytes(bytes(range(256)) * 40)
    return folder


def test_the_same_files_have_the_same_fingerprint_wherever_they_lie(folder, tmp_path):
    before = fingerprint(folder)
    assert len(before) == 16
    assert fingerprint(folder.rename(tmp_path / "elsewhere")) == before


def test_what_is_no_part_of_a_model_does_not_count(folder):
    before = fingerprint(folder)
    (folder / "README.md").write_text("About it.")
    (folder / "checkpoints").mkdir()
    assert fingerprint(folder) == before


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "config.json").write_text('{"layers": 3}'),
        lambda folder: (folder / "model.safetensors").write_bytes(bytes(range(256)) * 39 + b"x" * 256),
        lambda folder: (folder / "model.safetensors").rename(folder / "other.safetensors"),
        lambda folder: (folder / "tokenizer.json").write_text("{}"),
    ],
    ids=["config", "weights", "name", "new file"],
)
def test_every_change_of_the_model_shows(folder, change):
    before = fingerprint(folder)
    change(folder)
    assert fingerprint(folder) != before


def test_of_large_weights_parts_from_the_first_to_the_last_byte_are_read(folder, monkeypatch):
    monkeypatch.setattr(model_files, "WHOLE_BELOW", 100)
    monkeypatch.setattr(model_files, "SAMPLE", 16)
    weights = folder / "model.safetensors"
    before = fingerprint(folder)
    for place in (0, -1):
        content = bytearray(weights.read_bytes())
        content[place] ^= 1
        weights.write_bytes(content)
        changed = fingerprint(folder)
        assert changed != before
        before = changed


def test_a_model_of_the_hub_has_its_commit_and_a_folder_its_fingerprint(folder):
    class Config:
        _commit_hash = "0123abc"

    assert revision_of("some/model", Config()) == "0123abc"
    assert revision_of(str(folder), object()) == f"files {fingerprint(folder)}"
    assert revision_of("some/model", object()) == ""
