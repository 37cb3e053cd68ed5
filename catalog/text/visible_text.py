"""Text from outside, for a terminal or a log: what would act on either is shown instead.

A file's name, a request's path or a server's answer may hold any character. Some move the cursor,
set the clipboard (OSC 52), begin a line or turn the order of what follows.
"""

import re

_CONTROLS = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 but tab and line feed; DEL; C1
    r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # direction: Unicode Standard Annex 9
    r"\u2028\u2029\ud800-\udfff"  # line and paragraph separator; bytes that are no UTF-8
)
_IN_LINES = re.compile(f"[{_CONTROLS}]")
_IN_A_LINE = re.compile(rf"[\t\n{_CONTROLS}]")
_USER = re.compile(r"//[^/?#\s]*@")
_SHORT = {"\t": r"\t", "\n": r"\n", "\r": r"\r"}


def visible(text: str) -> str:
    r"""A text of one line: characters that act are shown as \n, \x1b, \u202e.

    >>> print(visible("a\x1b]52;c;eA==\x07\nb"))
    a\x1b]52;c;eA==\x07\nb
    """
    return _IN_A_LINE.sub(_escaped, text)


def visible_lines(text: str) -> str:
    """`visible`, of a text whose line feeds and tabs are our own."""
    return _IN_LINES.sub(_escaped, text)


def without_user(text: str) -> str:
    """A text whose URLs have no user and password any more."""
    return _USER.sub("//", text)


def _escaped(match: re.Match[str]) -> str:
    character = match[0]
    if character in _SHORT:
        return _SHORT[character]
    code = ord(character)
    # Above ASCII so that JSON stays JSON, which escapes the others by itself.
    return f"\\x{code:02x}" if code < 0x7F else f"\\u{code:04x}"
