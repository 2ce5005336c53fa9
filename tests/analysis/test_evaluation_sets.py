"""Test sets from files: the layouts of published ones, what is left out and counted, what is refused and why."""

import csv
import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command

from analysis.classifiers import evaluation_sets
from analysis.classifiers.evaluation_sets import WrongFile, import_test_set
from analysis.imports import staging
from analysis.models import EvaluationSet, EvaluationText
from generation.models import AuditEntry

pytestmark = pytest.mark.django_db

PLAIN = "text,label\nthe lake is cold,1\nthe choir sang,0\nrain fell,0\n"


def write(tmp_path, content, name="texts.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def table(columns, *rows, delimiter=","):
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter).writerows([columns, *rows])
    return out.getvalue()


def run(path, *options, **named):
    """What the command says."""
    out = io.StringIO()
    usual = () if "--text" in options else ("--text", "text", "--label", "label")
    call_command("import_evaluation", str(path), *usual, *options, stdout=out, **named)
    return out.getvalue()


def refusal(path, *options, error=None):
    with pytest.raises(CommandError) as refused:
        run(path, *options, stderr=error or io.StringIO())
    assert not EvaluationSet.objects.exists()
    return str(refused.value)


def rows(name):
    """Text, label, group and functionality of each text of a set."""
    texts = EvaluationText.objects.filter(evaluation_set__name=name).order_by("index")
    return list(texts.values_list("text", "is_toxic", "group", "functionality"))


# --- Published layouts


def test_social_bias_frames_a_row_an_annotator(tmp_path):
    columns = ["whoTarget", "offensiveYN", "WorkerId", "post", "targetMinority", "dataSource"]
    file = table(
        columns,
        ["1.0", "1.0", "7", "the lake is cold", "sailors", "r/boats"],
        ["1.0", "0.5", "8", "the lake is cold", "sailors", "r/boats"],
        ["", "0.0", "9", "the lake is cold", "", "r/boats"],
        ["", "0.0", "7", "the choir sang", "", "r/boats"],
        ["", "1.0", "7", "rain fell", "", "r/boats"],
        ["", "0.0", "8", "rain fell", "", "r/boats"],
        ["", "", "9", "no label here", "", "r/boats"],
    )
    options = ("--text", "post", "--label", "offensiveYN", "--group", "targetMinority", "--name", "sbf")
    said = run(write(tmp_path, file, "SBIC.v2.tst.csv"), *options, "--above", "0.4")
    assert rows("sbf") == [("the lake is cold", True, "sailors", ""), ("the choir sang", False, "", "")]
    assert said == (
        "sbf: 2 texts, 1 toxic, 1 benign.\nRows left out: 1 without a label; 2 of texts that as many rows call toxic "
        "as not; 2 a text that is there already.\n"
    )
    assert EvaluationSet.objects.get().columns["above"] == 0.4


def test_the_implicit_hate_corpus_tab_separated_with_two_positive_classes(tmp_path):
    file = table(
        ["post", "class"], ["the lake is cold", "implicit_hate"], ["rain fell", "not_hate"],
        ["she said “no, thanks”", "explicit_hate"], delimiter="\t",
    )  # fmt: skip
    options = ("--text", "post", "--label", "class", "--positive", "implicit_hate", "--positive", "explicit_hate")
    run(write(tmp_path, file, "implicit_hate_v1_stg1_posts.tsv"), *options)
    assert [(text, toxic) for text, toxic, *_ in rows("implicit-hate-v1-stg1-posts")] == [
        ("the lake is cold", True),
        ("rain fell", False),
        ("she said “no, thanks”", True),
    ]


def test_dynahate_of_one_split_with_a_nameless_first_column(tmp_path):
    columns = ["", "acl.id", "X1", "text", "label", "type", "target", "level", "split", "round.base"]
    file = table(
        columns,
        ["1", "acl1", "0", "the lake is cold", "hate", "Animosity", "sailors", "original", "test", "2"],
        ["2", "acl2", "0", "the choir sang", "nothate", "none", "none", "original", "train", "2"],
        ["3", "acl3", "0", "rain fell", "nothate", "none", "none", "perturbation", "test", "3"],
        ["4", "acl4", "0", "snow fell", "nothate", "none", "none", "perturbation", "dev", "1"],
    )
    options = ("--group", "target", "--positive", "hate", "--where", "split=test", "--where", "split=dev")
    said = run(write(tmp_path, file, "dynahate.csv"), *options)
    assert [text for text, *_ in rows("dynahate")] == ["the lake is cold", "rain fell", "snow fell"]
    assert "Rows left out: 1 not chosen by the conditions." in said


def test_hatecheck_with_functionalities_of_each_of_which_a_text_is_one(tmp_path):
    columns = ["", "functionality", "case_id", "test_case", "label_gold", "target_ident", "direction"]
    file = table(
        columns,
        ["0", "derog_neg_emote_h", "1", "the lake is cold", "hateful", "sailors", "general"],
        ["1", "ident_neutral_nh", "2", "the choir sang", "non-hateful", "singers", ""],
        ["2", "counter_quote_nh", "3", "the choir sang", "non-hateful", "singers", ""],
    )
    options = ("--text", "test_case", "--label", "label_gold", "--positive", "hateful")
    run(write(tmp_path, file, "hatecheck.csv"), *options, "--group", "target_ident", "--functionality", "functionality")
    assert rows("hatecheck") == [
        ("the lake is cold", True, "sailors", "derog_neg_emote_h"),
        ("the choir sang", False, "singers", "ident_neutral_nh"),
        ("the choir sang", False, "singers", "counter_quote_nh"),
    ]


# --- What is read


@pytest.mark.parametrize("positive", ["1", "1.0", " 1 ", "1e0"])
def test_labels_are_compared_as_numbers_where_both_are_some(tmp_path, positive):
    run(write(tmp_path, "text,label\nthe lake is cold,1.0\nrain fell,0.0\n"), "--positive", positive)
    assert EvaluationSet.objects.get().toxic_count == 1


def test_json_lines_and_parquet_are_read_with_their_truth_values(tmp_path):
    found = [{"text": "the lake is cold", "label": True}, {"text": "rain fell", "label": False}]
    run(write(tmp_path, "\n".join(map(json.dumps, found)), "lines.jsonl"), "--positive", "TRUE")
    pq.write_table(pa.Table.from_pylist(found), tmp_path / "columns.parquet")
    run(tmp_path / "columns.parquet", "--positive", "true")
    assert rows("lines") == rows("columns")


def test_what_is_in_another_encoding_is_read_when_it_is_named(tmp_path):
    path = write(tmp_path, "text;label\nder See ist kühl;1\nes regnet;0\n".encode("cp1252"))
    assert "Encoding: cp1252" in refusal(path, "--positive", "1")
    run(path, "--positive", "1", "--encoding", "cp1252")
    assert rows("texts")[0][0] == "der See ist kühl"


def test_a_text_several_times_has_the_label_and_the_group_that_most_rows_give(tmp_path):
    lines = ["text,label,about", "rain fell,1,b", "rain fell ,0,a", "rain fell,1,a", "rain fell,1,", "snow fell,0,"]
    run(write(tmp_path, "\n".join(lines)), "--positive", "1", "--group", "about")
    assert rows("texts") == [("rain fell", True, "a", ""), ("snow fell", False, "", "")]
    assert list(EvaluationText.objects.order_by("index").values_list("index", flat=True)) == [1, 5]
    assert EvaluationSet.objects.get().left_out == {"a text that is there already": 3}


def test_a_text_has_one_label_whatever_it_tests_and_however_it_is_spaced(tmp_path):
    lines = ["text,label,tests", "The choir sings,1,a", "the choir  sings,0,b", "the choir sings,0,b", "rain fell,1,a"]
    run(write(tmp_path, "\n".join(lines)), "--positive", "1", "--functionality", "tests")
    assert rows("texts") == [
        ("The choir sings", False, "", "a"), ("the choir  sings", False, "", "b"), ("rain fell", True, "", "a"),
    ]  # fmt: skip


@pytest.mark.parametrize("options", [(), ("--positive=1", "--above=0.5"), ("--positive=1", "--name=Two words")])
def test_wrong_arguments_have_a_status_of_their_own(tmp_path, options):
    with pytest.raises(CommandError) as refused:
        run(write(tmp_path, PLAIN), *options)
    assert refused.value.returncode == 2
    with pytest.raises(CommandError, match="There is no file") as refused:
        run(tmp_path / "none.csv", "--positive", "1")
    assert refused.value.returncode == 2


@pytest.mark.parametrize("label", ["1_0", "inf"])
def test_what_is_written_otherwise_is_no_number(tmp_path, label):
    assert "1 of 2 rows is bad" in refusal(write(tmp_path, f"text,label\nrain fell,{label}\ntea,0\n"), "--above", "1")


def test_what_is_empty_is_left_out_and_counted(tmp_path):
    path = write(tmp_path, PLAIN + ",1\n  ,0\nnan,1\nthe bus is late,\nthe train is late,NaN\n")
    said = run(path, "--positive", "1")
    assert said == "texts: 3 texts, 1 toxic, 2 benign.\nRows left out: 3 without a text; 2 without a label.\n"


def test_rows_of_a_set_are_those_that_became_texts_and_those_left_out(tmp_path):
    path = write(tmp_path, PLAIN + "rain fell,1\nrain fell,0\ntea,1\ntea,0\n,0\nonly one cell\n")
    run(path, "--positive", "1", "--on-fault", "skip")
    made = EvaluationSet.objects.get()
    assert made.left_out == {
        "without a text": 1,
        "of texts that as many rows call toxic as not": 2,
        "a text that is there already": 2,
        "that are faulty": 1,
    }
    assert made.texts_count + sum(made.left_out.values()) == 9


def test_a_file_is_staged_in_parts_of_one_size_however_many_rows_it_has(tmp_path, monkeypatch):
    monkeypatch.setattr(staging, "BATCH", 50)
    sizes = []
    flush = staging.Staging.flush

    def watched(self):
        sizes.append(len(self._rows))
        flush(self)

    monkeypatch.setattr(staging.Staging, "flush", watched)
    path = write(tmp_path, "text,label\n" + "".join(f"text {number},{number % 2}\n" for number in range(1234)))
    run(path, "--positive", "1")
    assert max(sizes) == 50
    assert EvaluationText.objects.count() == 1234


def test_who_imported_what_is_noted(admin_user, tmp_path, settings):
    settings.VAR = tmp_path / "var"
    upload = SimpleUploadedFile("../Böse Namen (1).csv", PLAIN.encode())
    made = import_test_set(upload, name="mine", text="text", label="label", positive=["1"], by=admin_user)
    assert (made.created_by, made.file_name, made.texts_count) == (admin_user, "Böse Namen (1).csv", 3)
    entry = AuditEntry.objects.get(act="test set imported")
    assert (entry.by, entry.subject, entry.details["texts"]) == (admin_user, "mine", 3)
    assert list((tmp_path / "var" / "uploads").iterdir()) == []


# --- What is refused


def test_an_unknown_column_is_refused_with_those_there_are(tmp_path):
    path = write(tmp_path, PLAIN)
    assert refusal(path, "--positive", "1", "--group", "target") == (
        "texts.csv lacks the column target. It has: text, label."
    )
    assert "lacks the column split" in refusal(path, "--positive", "1", "--where", "split=test")


def test_a_positive_value_that_never_occurs_is_refused_with_those_that_do(tmp_path):
    path = write(tmp_path, PLAIN)
    assert refusal(path, "--positive", "hate", "--positive", "1") == (
        "No row that is taken has the label 'hate' in label. The labels there are: 0, 1."
    )


def test_a_condition_that_never_holds_is_refused_with_the_values_there_are(tmp_path):
    path = write(tmp_path, "text,label,split\nrain fell,1,train\nsnow fell,0,test\n")
    assert refusal(path, "--positive", "1", "--where", "split=tset") == (
        "No row has split 'tset'. The values there are: test, train."
    )
    with pytest.raises(CommandError, match="write COLUMN=VALUE"):
        run(path, "--positive", "1", "--where", "split")


def test_one_class_only_is_refused(tmp_path):
    path = write(tmp_path, PLAIN)
    assert refusal(path, "--positive", "1", "--positive", "0") == (
        "All 3 texts of texts.csv are toxic if label 1 or 0 means toxic. A classifier is tested on both classes. The "
        "labels there are: 0, 1."
    )
    assert "are benign if label above 1 means toxic" in refusal(path, "--above", "1")


def test_no_label_at_all_is_refused(tmp_path):
    path = write(tmp_path, "text,label\nrain fell,\n,1\n")
    assert refusal(path, "--above", "0") == (
        "texts.csv has no text with a label. Rows left out: 1 without a text; 1 without a label."
    )


def test_what_means_toxic_is_said_once_and_in_one_way(tmp_path):
    path = write(tmp_path, PLAIN)
    for options in ((), ("--positive", "1", "--above", "0.5")):
        assert "one of the two" in refusal(path, *options)
    assert "takes a number" in refusal(path, "--above", "nan")


def test_faulty_rows_are_told_with_their_lines_and_refuse_the_file(tmp_path):
    path = write(tmp_path, PLAIN + "rain\0fell,1\none cell\n" + "x" * 100_001 + ",1\ntea,much\n")
    error = io.StringIO()
    assert "4 of 7 rows are bad" in refusal(path, "--above", "0.5", error=error)
    told = error.getvalue().splitlines()
    assert [line.split(":")[0] for line in told] == ["Line 5, text", "Line 6", "Line 7, text", "Line 8, label"]
    assert told[0].endswith("There is a NUL character (U+0000), which no text has. Remove it.")


@pytest.mark.parametrize(
    ("content", "name", "sentence"),
    [
        (b"", "texts.csv", "is empty"),
        (b"PK\x03\x04", "texts.xlsx", "ZIP archive or an Excel workbook"),
        (b"PAR1 and no more", "texts.parquet", "no whole Parquet file"),
        (b'[{"text": "rain fell"}]', "texts.json", "one JSON array"),
        (b'text,label\n"rain fell,1\n', "texts.csv", "never closed"),
        (b"text,text\n", "texts.csv", "has the column 'text' twice"),
    ],
)
def test_what_is_no_table_is_refused_with_the_reason(tmp_path, content, name, sentence):
    assert sentence in refusal(write(tmp_path, content, name), "--positive", "1")


def test_a_file_that_is_not_there_is_refused(tmp_path):
    assert "There is no file" in refusal(tmp_path / "none.csv", "--positive", "1")
    assert "is a folder" in refusal(tmp_path, "--positive", "1", "--name", "folder")


@pytest.mark.parametrize("name", ["Two words", "-x", "x" * 61, "humanval", "humanval-3"])
def test_a_name_that_no_command_could_name_is_refused(tmp_path, name):
    assert "name" in refusal(write(tmp_path, PLAIN), "--positive", "1", f"--name={name}")


def test_a_file_whose_name_makes_none_needs_one(tmp_path):
    assert "The file's name makes no name of a set" in refusal(write(tmp_path, PLAIN, "…….csv"), "--positive", "1")


def test_an_upload_that_is_too_large_is_refused(settings):
    settings.LARGEST_UPLOAD_MB = 0
    with pytest.raises(WrongFile, match="at most 0 MB are taken"):
        import_test_set(SimpleUploadedFile("a.csv", PLAIN.encode()), text="text", label="label", positive=["1"])


def test_an_upload_of_too_many_rows_is_refused_with_the_command(settings, tmp_path, monkeypatch):
    settings.VAR = tmp_path
    monkeypatch.setattr(evaluation_sets, "MOST_ROWS_OF_UPLOAD", 2)
    with pytest.raises(WrongFile, match=r"more than 2 rows\. Import it on the command line: manage.py import_eval"):
        import_test_set(SimpleUploadedFile("a.csv", PLAIN.encode()), text="text", label="label", positive=["1"])
    run(write(tmp_path, PLAIN), "--positive", "1")


# --- Twice


def test_who_imports_the_same_file_at_the_same_time_gets_the_same_set(tmp_path, monkeypatch):
    path = write(tmp_path, PLAIN)
    run(path, "--positive", "1")
    look, looks = evaluation_sets._there_already, []

    def too_early(wanted):
        looks.append(wanted)
        return look(wanted) if len(looks) > 1 else None

    monkeypatch.setattr(evaluation_sets, "_there_already", too_early)
    assert "is of this file already" in run(path, "--positive", "1")


def test_the_same_file_a_second_time_changes_nothing_and_says_so(tmp_path):
    path = write(tmp_path, PLAIN)
    run(path, "--positive", "1")
    assert run(path, "--positive", "1") == (
        "The test set texts is of this file already; nothing was changed.\ntexts: 3 texts, 1 toxic, 2 benign.\n"
    )
    assert EvaluationText.objects.count() == 3


def test_a_name_that_is_taken_is_refused_for_another_file_and_for_another_reading_of_it(tmp_path):
    run(write(tmp_path, PLAIN), "--positive", "1")
    with pytest.raises(CommandError, match=r"is of this file, but read otherwise\. Give another name"):
        run(tmp_path / "texts.csv", "--above", "0.5")
    with pytest.raises(CommandError, match=r"There is a test set texts of another file\. Give another name"):
        run(write(tmp_path, PLAIN + "tea,1\n"), "--positive", "1")
    assert EvaluationText.objects.count() == 3
