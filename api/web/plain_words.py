"""Messages in the words of a page: the same as everywhere, without what only programs can do."""

import re

_CLAUSES = re.compile(r"(?<=[;:.?!])\s+")
_OF_PROGRAMS = re.compile(r"\bframesift [a-z]|\b(GET|POST|PUT|PATCH|DELETE) /|/v1\b|/openapi\.json")
"""Tells advice that only commands and programs can follow."""


def in_plain_words(message: str) -> str:
    """A message without the clauses that name commands or paths of REST, but for its first."""
    first, *others = _CLAUSES.split(message)
    kept = [first, *(one for one in others if not _OF_PROGRAMS.search(one))]
    return " ".join(kept).rstrip(" ;:,")
