"""The workspace's Annotate pages."""

from annotator.admin import consent, hits, known_answers, links, pay, people, qualifications, review, studies

__all__ = ["consent", "hits", "known_answers", "links", "pay", "people", "qualifications", "review", "studies"]
