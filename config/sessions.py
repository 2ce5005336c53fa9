"""Django's sessions in the database, read by a prepared query: every request of an annotator reads one."""

from django.contrib.sessions.backends import db
from django.contrib.sessions.models import Session
from django.db.models.functions import Now

from annotator.prepared import SESSION, Prepared, instance

FOUND = Prepared(
    lambda: Session.objects.filter(session_key=SESSION, expire_date__gt=Now()).values(
        "session_key", "session_data", "expire_date"
    )
)


class SessionStore(db.SessionStore):
    """As its base; only the read, which there is a new query of the ORM each time, is another."""

    def _get_session_from_db(self):
        row = FOUND.first(session=self.session_key)
        if row is None:
            self._session_key = None
            return None
        return instance(Session, row)
