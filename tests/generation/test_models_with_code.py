"""Folders of models that bring code of their own: it is never run, whoever is asked to load them."""

import io
import json
import sys
from pathlib import Path

import pytest
import torch

from analysis.training.bases import load_base
from generation import classifiers, language_models
from generation.classifiers import ClassifierUnavailable
from generation.language_models import LanguageModelUnavailable

CPU = torch.device("cpu")
CODE = """
from pathlib import Path

from transformers import PretrainedConfig

Path({ran!r}).touch()


class OwnConfig(PretrainedConfig):
    model_type = "own"
"""
NAMES = ("AutoConfig", "AutoModel", "AutoModelForCausalLM", "AutoModelForSequenceClassification", "AutoTokenizer")


@pytest.fixture
def ran(tmp_path):
    """What the code would write."""
    return tmp_path / "ran"


@pytest.fixture
def folder(tmp_path, ran, monkeypatch):
    """A model with code, at a terminal where somebody says yes to everything."""
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "own.py").write_text(CODE.format(ran=str(ran)))
    auto_map = dict.fromkeys(NAMES, "own.OwnConfig") | {"AutoTokenizer": ["own.OwnConfig", None]}
    labels = {"id2label": {"0": "benign", "1": "toxic"}}
    (folder / "config.json").write_text(json.dumps({"model_type": "own", "auto_map": auto_map, **labels}))
    (folder / "tokenizer_config.json").write_text(json.dumps({"auto_map": auto_map}))
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n" * 9))
    return str(folder)


def refused(error, ran: Path) -> None:
    assert "(it brings code of its own, which is never run here)" in str(error.value)
    assert not ran.exists()


def test_code_of_a_classifier_is_not_run(folder, ran):
    with pytest.raises(ClassifierUnavailable, match="cannot be loaded from this machine") as error:
        classifiers.load.__wrapped__(folder, device=CPU)
    refused(error, ran)


def test_code_of_a_model_to_train_is_not_run(folder, ran):
    with pytest.raises(ClassifierUnavailable, match="cannot be loaded from this machine") as error:
        load_base(folder, device=CPU, seed=0)
    refused(error, ran)


def test_code_of_a_language_model_is_not_run(folder, ran, tmp_path):
    with pytest.raises(LanguageModelUnavailable, match="cannot be loaded from this machine") as error:
        language_models.load.__wrapped__(folder, cache_folder=tmp_path, device=CPU)
    refused(error, ran)


class Touching:
    """What touches a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_pickled_weights_are_read_as_numbers_only(ran, tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    tokenizer = {"tokenizer_class": "BertTokenizer"}
    config = {"model_type": "bert", "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 9}
    labels = {"id2label": {"0": "benign", "1": "toxic"}}
    (folder / "config.json").write_text(json.dumps({**config, **labels, "intermediate_size": 8}))
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer))
    (folder / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nrain\n")
    torch.save({"weight": Touching(ran)}, folder / "pytorch_model.bin")
    with pytest.raises(ClassifierUnavailable, match="cannot be loaded from this machine"):
        classifiers.load.__wrapped__(str(folder), device=CPU)
    assert not ran.exists()
