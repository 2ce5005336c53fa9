"""Help on every page, without a query on every page."""

from django import template

from annotator import helping

register = template.Library()
register.simple_tag(helping.help_lines)
