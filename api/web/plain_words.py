"""Messages in the words of a page: the same as everywhere, without what only programs can do."""

import re

_COMMAND = r"\bframesift [a-z]|\b(?:GET|POST|PUT|PATCH|DELETE) /|/v1\b|/openapi\.json"
"""Tells advice that only commands and programs can follow."""

_OF_PROGRAMS = re.compile(_COMMAND)
_IN_BRACKETS = re.compile(rf" ?\((?:[^()]*(?:{_COMMAND})[^()]*|--[a-z][\w-]*)\)")
_CLAUSES = re.compile(r"(?<=[;:.?!])\s+")

_BEFORE_OPTIONS = (
    "and|another|as|by|fewer|give|its|leave|nor|one:|or|out|same|say|such as|the|with|without"
)
_OPTION = re.compile(rf"\b({_BEFORE_OPTIONS}) --([a-z][\w-]*)(?![\w=])")
"""A command's option within a sentence; those of a command line are left as they are."""

_NAMES = {"model-name": "the model's name", "trust-model": "your trust in the model"}
"""Options whose name is no name of a field, after the verb *give*."""

_CODES = re.compile(r"\bSQL\d{4}N\s+|\s+SQLSTATE=\w{5}\b\.?")
"""Db2's codes, which its clients read; the sentence between them says what is wrong."""

_WITH_OPTION = re.compile(r" with --[a-z][\w-]*(?=[,;:.?!]|$| which\b)")
"""Says by which option something is done that the sentence says in words."""


def in_plain_words(message: str) -> str:
    """A message without commands, paths of REST and Db2's codes, and with options as words.

    Left out are brackets, clauses and parts of clauses that name commands or paths; the first
    clause stays whole.
    """
    first, *others = _CLAUSES.split(_IN_BRACKETS.sub("", _CODES.sub("", message)))
    clauses = (first, *(clause for one in others if (clause := _without_commands(one))))
    text = _WITH_OPTION.sub("", " ".join(clauses).rstrip(" ;:,"))
    return _OPTION.sub(_in_words, text)


def _without_commands(clause: str) -> str:
    """A clause as far as it is for people: nothing where it begins with what is for programs."""
    begin, *parts = clause.split(", ")
    if _OF_PROGRAMS.search(begin):
        return ""
    kept = [part for part in parts if not _OF_PROGRAMS.search(part)]
    text = ", ".join((begin, *kept))
    is_cut = bool(parts) and parts[-1] not in kept[-1:] and clause[-1] in ";:.?!"
    return text + clause[-1] if is_cut else text


def _in_words(option: re.Match[str]) -> str:
    before, name = option.groups()
    words = _NAMES.get(name) if before == "give" else None
    return f"{before} {words or re.sub('[-_]', ' ', name)}"
