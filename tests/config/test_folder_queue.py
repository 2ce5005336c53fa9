"""The queue without a broker: no worker ever finds half a message."""

import os
from queue import Empty

import pytest
from kombu import Connection

from config import celery, folder_queue


@pytest.fixture
def channel(tmp_path):
    for name in ("messages", "control"):
        (tmp_path / name).mkdir()
    messages = str(tmp_path / "messages")
    options = {"data_folder_in": messages, "data_folder_out": messages, "control_folder": str(tmp_path / "control")}
    with Connection("filesystem://", transport_options=options) as connection:
        yield connection.default_channel


def test_it_is_what_celery_uses_without_a_broker(channel):
    assert celery.TRANSPORT_ALIASES["filesystem"] == "config.folder_queue:Transport"
    assert isinstance(channel, folder_queue.Channel)


def test_a_message_is_found_by_nobody_before_all_of_it_is_there(channel, monkeypatch):
    seen = []

    def replace(unfinished, name):
        with pytest.raises(Empty):
            channel._get("default")
        seen.append(unfinished)
        os.rename(unfinished, name)

    monkeypatch.setattr(folder_queue.os, "replace", replace)
    channel._put("default", {"body": "go"})
    assert seen
    assert channel._get("default") == {"body": "go"}
    with pytest.raises(Empty):
        channel._get("default")
