"""What somebody fills in who joins by the link of a panel."""

import uuid

from django import forms

from annotator import inviting
from annotator.models import Panel, Worker

LONGEST = Worker._meta.get_field("pay_reference").max_length

TOO_LONG = f"An ID has at most {LONGEST} characters. Copy it again from whoever sent you here."
PAGE_NOT_WHOLE = "This page did not arrive whole. It is now: press the button again."


class JoinForm(forms.Form):
    """The id that whoever pays knows a person by, if there is one, and the page's ticket."""

    pay_reference = forms.CharField(
        label="Participant ID, if whoever sent you here pays by one",
        required=False,
        max_length=LONGEST,
        error_messages={"max_length": TOO_LONG},
    )
    ticket = forms.CharField(required=False)

    def __init__(self, *args, panel: Panel, **kwargs):
        super().__init__(*args, **kwargs)
        self.panel = panel
        self.key = inviting.key_of_ticket(panel, self.data.get("ticket", ""))

    @property
    def own_ticket(self) -> str:
        """The ticket that was sent, if it is one of ours, or else a new one."""
        return self.data["ticket"] if self.key else inviting.ticket(self.panel)

    def clean_ticket(self) -> uuid.UUID:
        if self.key is None:
            raise forms.ValidationError(PAGE_NOT_WHOLE)
        return self.key
