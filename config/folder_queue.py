"""The queue without a broker: Celery's filesystem transport, whose messages appear whole or not at all.

The transport itself opens a message's file before it writes it, and a worker that finds the file empty ends with an
error. Here the file gets its name, by which workers look for it, when all is written.
"""

import os
import uuid
from pathlib import Path
from time import monotonic

from kombu.exceptions import ChannelError
from kombu.transport import filesystem
from kombu.utils.json import dumps


class Channel(filesystem.Channel):
    """A channel whose messages are put in place in one step."""

    def _put(self, queue: str, payload: dict, **kwargs) -> None:
        folder = Path(self.data_folder_out)
        name = f"{round(monotonic() * 1000)}_{uuid.uuid4()}"
        unfinished = folder / f"{name}.unfinished"
        try:
            unfinished.write_text(dumps(payload))
            os.replace(unfinished, folder / f"{name}.{queue}.msg")
        except OSError as error:
            raise ChannelError(f"Cannot add a message to the folder {folder}: {error.strerror}.") from error


class Transport(filesystem.Transport):
    """What ``filesystem://`` means here, see ``config/celery.py``."""

    Channel = Channel
