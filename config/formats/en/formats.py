"""Dates and times in English: one way wherever none is named. What people type is read as Django reads it."""

DATE_FORMAT = "j F Y"
TIME_FORMAT = "H:i"
DATETIME_FORMAT = "j F Y, H:i e"
SHORT_DATE_FORMAT = "j M Y"
SHORT_DATETIME_FORMAT = "j M Y, H:i e"
MONTH_DAY_FORMAT = "j F"
