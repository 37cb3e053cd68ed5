"""Long lists of texts stand outside a statement while it is rewritten: ``in ('a', 'b', ...)``.

Clients ask for a thousand files by name. To parse, check and rewrite so many texts takes 35 ms, a
third of such a question's CPU, and what is learnt of one list holds for the next. So a few texts
stand in for each list; in the rewritten statement they are one literal, which the list's replaces.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from catalog.errors import SqlError
from catalog.text.quoting import literal
from query.db2.semantics import LONG_LIST, SEPARATOR

_MOST_CHARACTERS = 500_000
"""Of a statement: read_only's limits of bytes and tokens hold for no more than twice of them."""
_LONGEST = 1_000
"""Characters of a text in a list: a constant has a limit of its own."""

_TOKENS = re.compile(
    r"""
      (?P<list> \b in \s*+ \( \s*+ (?P<texts> '[^']*+' (?: \s*+ , \s*+ '[^']*+' )*+ ) \s*+ \) )
    | '(?:[^']|'')*+' | "(?:[^"]|"")*+"                  # as they are
    | (?P<unsure> -- | /\* | \w['"] )                    # comments, texts and names of other kinds
    """,
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)
_TEXT = re.compile("'([^']*)'")
_STAND_IN = "stand_in_for_texts_"


@dataclass(frozen=True)
class _Folded:
    """A statement in which some texts stand in for each long list."""

    statement: str
    lists: tuple[tuple[str, ...], ...]

    def unfolded(self, rewritten: str) -> str | None:
        """The rewritten statement with its own lists.

        None where the texts that stand in for one are not what that list became, and nothing else.
        """
        for number, texts in enumerate(self.lists):
            listed = literal(SEPARATOR.join(_stand_ins(number)))
            if listed not in rewritten:
                return None
            rewritten = rewritten.replace(listed, literal(SEPARATOR.join(texts)))
        return None if _STAND_IN in rewritten else rewritten


def rewritten(statement: str, rewrite: Callable[[str], str]) -> str:
    """The statement as ``rewrite`` makes it.

    Raises:
        SqlError: ``rewrite`` raises it of the statement as it is.
    """
    folded = _folded(statement)
    if folded is None:
        return rewrite(statement)
    try:
        unfolded = folded.unfolded(rewrite(folded.statement))
    except SqlError:  # it may be of a text that stands in, or say one
        unfolded = None
    return rewrite(statement) if unfolded is None else unfolded


def _folded(statement: str) -> _Folded | None:
    """The statement without its long lists; None where it has none, or more than the plainest."""
    if not 2 * LONG_LIST < len(statement) <= _MOST_CHARACTERS or _STAND_IN in statement:
        return None
    parts: list[str] = []
    lists: list[tuple[str, ...]] = []
    since = 0
    for token in _TOKENS.finditer(statement):
        if token["unsure"]:
            return None
        texts = tuple(_TEXT.findall(token["texts"] or ""))
        if len(texts) < LONG_LIST or not all(map(_is_plain, texts)):
            continue
        stand_ins = ", ".join(map(literal, _stand_ins(len(lists))))
        parts += [statement[since : token.start("texts")], stand_ins]
        lists.append(texts)
        since = token.end("texts")
    if not lists:
        return None
    return _Folded("".join([*parts, statement[since:]]), tuple(lists))


def _is_plain(text: str) -> bool:
    """Whether a text is kept as it is, wherever it stands: it is short, and ends in no blank."""
    return 0 < len(text) <= _LONGEST and text.isprintable() and not text.endswith(" ")


def _stand_ins(number: int) -> list[str]:
    """The texts that stand in for a statement's list of that number."""
    return [f"{_STAND_IN}{number}_{each}" for each in range(LONG_LIST)]
