"""A log's text as people read it: without what the launcher of ranks puts before each line."""

import re

_OF_LAUNCHER = re.compile(r"^\[(?:\d+,)?(\d+)\]<std(?:out|err)>:", re.MULTILINE)


def without_launcher(text: str) -> str:
    """A log's lines without ``[0]<stdout>:``; of several ranks each line begins with its rank."""
    ranks = set(_OF_LAUNCHER.findall(text))
    return _OF_LAUNCHER.sub(r"rank \1: " if len(ranks) > 1 else "", text)
