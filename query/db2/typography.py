"""Statements as people copy them out of documents: with ligatures, curved quotes and a BOM."""

import re
import unicodedata

_BOM = "\ufeff"
_SINGLE, _DOUBLE = "\u2018\u2019\u201a\u201b", "\u201c\u201d\u201e\u201f"
_SIGNS = {
    **{sign: unicodedata.normalize("NFKC", sign) for sign in map(chr, range(0xFB00, 0xFB07))},
    **dict.fromkeys("\u00a0\u2007\u202f", " "),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2212", "-"),
}
"""Ligatures, blanks that do not break, and hyphens and signs that mean minus."""

_IS_SET = re.compile(f"[{_BOM}{_SINGLE}{_DOUBLE}{''.join(_SIGNS)}]")
_PARTS = re.compile(
    # What does not end goes on to the end of the text, so that each character is looked at once.
    rf"""'[^']*(?:'|\Z)|"[^"]*(?:"|\Z)|--[^\n]*|/\*.*?(?:\*/|\Z)"""
    rf"""|[{_SINGLE}](?P<text>[^'{_SINGLE}]*)['{_SINGLE}]"""
    rf"""|[{_DOUBLE}](?P<name>[^"{_DOUBLE}]*)["{_DOUBLE}]"""
    rf"|(?P<sign>[{''.join(_SIGNS)}])",
    re.DOTALL,
)


def as_typed(text: str) -> str:
    """The statement as it would be typed; what stands in straight quotes stays as it is.

    >>> as_typed("select \ufb01lename from metaocean where path like \u2018a2d2/%\u2019")
    "select filename from metaocean where path like 'a2d2/%'"
    """
    if not _IS_SET.search(text):
        return text
    return _PARTS.sub(_typed, text.removeprefix(_BOM))


def _typed(token: re.Match[str]) -> str:
    if token["sign"]:
        return _SIGNS[token["sign"]]
    if token["text"] is not None:
        return f"'{token['text']}'"
    return token[0] if token["name"] is None else f'"{token["name"]}"'


def odd_characters(name: str) -> str:
    """A hint at characters of a name that look like others, or like nothing; empty without any.

    >>> odd_characters("filen\u0430me")
    ' It has the character U+0430, CYRILLIC SMALL LETTER A.'
    """
    odd = next((character for character in name if not character.isascii()), None)
    if odd is None:
        return ""
    title = unicodedata.name(odd, "")
    return f" It has the character U+{ord(odd):04X}{', ' if title else ''}{title}."
