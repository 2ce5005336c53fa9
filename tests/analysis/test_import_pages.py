"""The workspace's pages of imports."""

import re

import pytest
from django.contrib.auth.models import Group, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from analysis import uploads
from analysis.models import DataImport, ImportFault
from config.roles import RESEARCHER
from generation.models import Generation

pytestmark = pytest.mark.django_db

ADD = reverse("admin:analysis_dataimport_add")
LIST = reverse("admin:analysis_dataimport_changelist")
HEADER = "prompt,generation,generation_method,group,prompt_label,roberta_prediction\n"
ROW = "- one,the market opens at nine,TopK,women,0,0.5\n"


@pytest.fixture(autouse=True)
def var(tmp_path, settings):
    settings.VAR = tmp_path
    return tmp_path


@pytest.fixture
def researcher(client):
    user = User.objects.create_user("ada", is_staff=True)
    user.groups.add(Group.objects.get(name=RESEARCHER))
    client.force_login(user)
    return user


def upload(client, content=HEADER + ROW, *, name="train.csv", **changes):
    data = {"format": "train", "on_fault": "refuse", "files": SimpleUploadedFile(name, content.encode())}
    return client.post(ADD, data | changes)


def page(name, record):
    return reverse(f"admin:{name}", args=[record.pk])


def test_a_file_is_uploaded_and_its_page_shows_what_came_of_it(client, researcher):
    response = upload(client)
    record = DataImport.objects.get()
    assert response.status_code == 302
    assert response.url == page("analysis_dataimport_change", record)
    waiting = client.get(response.url).content.decode()
    assert "It waits for a worker." in waiting
    assert f'hx-get="{page("analysis_import_progress", record)}"' in waiting
    uploads.work_on_import(import_id=record.pk)
    done = client.get(response.url).content.decode()
    assert "<dt>New</dt><dd>1</dd>" in done
    assert "<dt>Made: statements</dt><dd>1</dd>" in done
    assert page("analysis_import_progress", record) not in done
    assert Generation.objects.get().text == "the market opens at nine"


def test_faults_are_listed_with_their_values_blurred_and_all_in_a_file(client, researcher):
    upload(client, HEADER + ROW.replace("TopK", "<b>beam</b>") * 120)
    record = DataImport.objects.get()
    uploads.work_on_import(import_id=record.pk)
    text = client.get(page("analysis_dataimport_change", record)).content.decode()
    assert "The first 100 of 120." in text
    assert text.count('class="blurred"') == 100
    assert "&lt;b&gt;beam&lt;/b&gt;" in text
    response = client.get(page("analysis_import_faults", record))
    lines = b"".join(response.streaming_content).decode().splitlines()
    assert response["Content-Disposition"] == f'attachment; filename="import-{record.pk}-faults.csv"'
    assert len(lines) == 121
    assert lines[0] == "file,line,column,value,message"
    assert lines[1].startswith("train.csv,2,generation_method,<b>beam</b>,")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"files": ""}, "This field is required."),
        ({"files": SimpleUploadedFile("empty.csv", b"")}, "The submitted file is empty."),
        ({"format": "gold"}, "Select a valid choice. gold is not one of the available choices."),
        ({"encoding": "cp99"}, "There is no encoding &#x27;cp99&#x27;."),
        ({"label": "rude"}, "Select a valid choice."),
        ({"study": "x" * 201}, "Ensure this value has at most 200 characters"),
    ],
)
def test_what_makes_no_sense_is_told_beside_its_field(client, researcher, changes, sentence):
    response = upload(client, **changes)
    assert response.status_code == 422
    assert sentence in response.content.decode()
    assert not DataImport.objects.exists()


def test_what_is_too_large_is_told(client, researcher, settings):
    settings.LARGEST_UPLOAD_MB = 0
    response = upload(client)
    assert response.status_code == 422
    assert "at most 0 MB are taken" in response.content.decode()


def test_options_go_with_the_upload(client, researcher):
    upload(client, encoding="Latin1", group="Asian folks", make_groups="on", on_fault="skip")
    assert DataImport.objects.get().options == {
        "encoding": "iso8859-1", "group": "asian", "make_groups": True, "on_fault": "skip",
    }  # fmt: skip


def test_options_and_what_to_do_are_told_in_the_words_of_the_form(client, researcher):
    upload(client, HEADER + ROW.replace("women", "martian"), on_fault="skip")
    record = DataImport.objects.get()
    uploads.work_on_import(import_id=record.pk)
    text = client.get(page("analysis_dataimport_change", record)).content.decode()
    assert "; If a row is bad: leave it out, and store the others<" in text
    assert "tick “Make groups that are not known yet” (on the command line --make-groups)." in text
    assert "<strong>Refused: nothing was stored</strong>" in text


def test_the_list_says_the_state_in_a_word(client, researcher):
    upload(client)
    client.post(page("analysis_import_stop", DataImport.objects.get()))
    cells = re.findall(r'<td class="field-state_word[^>]*>(.*?)</td>', client.get(LIST).content.decode(), re.DOTALL)
    assert [re.sub("<.*?>", "", cell).strip() for cell in cells] == ["refused"]


def test_an_import_is_stopped(client, researcher):
    upload(client)
    record = DataImport.objects.get()
    response = client.post(page("analysis_import_stop", record), follow=True)
    assert "Nothing of it was stored." in response.content.decode()
    assert "had ended before" in client.post(page("analysis_import_stop", record), follow=True).content.decode()
    record.refresh_from_db()
    assert (record.state, record.failure) == ("refused", "Stopped by ada.")


def test_who_may_only_look_uploads_and_stops_nothing(client):
    from django.contrib.auth.models import Permission

    user = User.objects.create_user("bob", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="view_dataimport"))
    client.force_login(user)
    record = DataImport.objects.create(format="train", file_name="train.csv")
    assert client.get(ADD).status_code == 403
    assert upload(client).status_code == 403
    assert client.post(page("analysis_import_stop", record)).status_code == 403
    assert "Stop: store nothing" not in client.get(page("analysis_dataimport_change", record)).content.decode()


def test_who_may_not_look_sees_nothing(client):
    client.force_login(User.objects.create_user("eve", is_staff=True))
    record = DataImport.objects.create(format="train", file_name="train.csv")
    for name in ("analysis_dataimport_change", "analysis_import_progress", "analysis_import_faults"):
        assert client.get(page(name, record)).status_code == 403
    assert client.get(LIST).status_code == 403


def test_an_import_that_is_not_there_is_not_found(client, researcher):
    for name in ("analysis_import_progress", "analysis_import_faults"):
        assert client.get(reverse(f"admin:{name}", args=[7])).status_code == 404
    for pk in ("7", "seven", "²"):
        assert client.get(f"{LIST}{pk}/change/").status_code == 404


def test_pages_ask_the_same_number_of_queries_with_many_rows(client, researcher, django_assert_max_num_queries):
    record = DataImport.objects.create(format="train", file_name="train.csv")
    ImportFault.objects.bulk_create(ImportFault(data_import=record, line=n, message="bad") for n in range(300))
    DataImport.objects.bulk_create(DataImport(format="train", file_name="train.csv") for _ in range(120))
    with django_assert_max_num_queries(9):
        client.get(page("analysis_dataimport_change", record))
    with django_assert_max_num_queries(9):
        client.get(LIST)
