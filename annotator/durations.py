"""Lengths of time in words."""

from datetime import timedelta

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
NAMES = {DAY: "day", HOUR: "hour", MINUTE: "minute", SECOND: "second"}


def in_words(duration: timedelta, *, largest: timedelta = DAY) -> str:
    """A duration, to the second, in its two largest units; none larger than ``largest``.

    >>> in_words(timedelta(seconds=104.6)), in_words(timedelta(days=3)), in_words(timedelta(0))
    ('1 minute 45 seconds', '3 days', 'no time')
    >>> in_words(timedelta(hours=26, minutes=5), largest=HOUR)
    '26 hours 5 minutes'
    >>> in_words(timedelta(milliseconds=400))
    'less than a second'
    """
    if timedelta(0) < duration <= SECOND / 2:
        return "less than a second"
    duration = timedelta(seconds=round(duration.total_seconds()))
    parts = []
    for unit in NAMES:
        if unit <= largest:
            number, duration = divmod(duration, unit)
            parts += [_counted(number, unit)] if number else []
    return " ".join(parts[:2]) or "no time"


def left_in_words(left: timedelta) -> str:
    """Rounded as people say it; static/annotator/countdown.js says the same.

    >>> left_in_words(timedelta(minutes=26, seconds=40)), left_in_words(timedelta(minutes=100))
    ('27 minutes', '100 minutes')
    >>> left_in_words(timedelta(seconds=59))
    'less than a minute'
    """
    if left < MINUTE:
        return "less than a minute"
    unit = next(unit for unit in (DAY, HOUR, MINUTE) if left >= unit * 2 or unit == MINUTE)
    return _counted(round(left / unit), unit)


def _counted(number: int, unit: timedelta) -> str:
    return f"{number:,} {NAMES[unit]}{'' if number == 1 else 's'}"
