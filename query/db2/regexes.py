"""Db2's functions of regular expressions, computed by DuckDB's RE2.

RE2 takes time that grows with the text and no faster, whatever the pattern: it has neither
lookaround nor references to groups inside of a pattern, which Db2's ICU has. Such patterns are
refused.

Source: Db2 for LUW SQL reference, "REGEXP_LIKE" and its neighbours, "Regular expression control
characters".
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from catalog.errors import SqlError
from query.db2.calls import MAX_TEXT, Db2Function
from query.db2.templates import TOO_LONG, Typed, fill, number
from query.db2.types import INTEGER, OTHER, TEXT, Db2Type

TypeOf = Callable[[object], Db2Type]

NAMES = ("REGEXP_LIKE", "REGEXP_SUBSTR", "REGEXP_COUNT", "REGEXP_INSTR", "REGEXP_REPLACE")

_MOST_PATTERN_BYTES = 4_096
_MOST_OCCURRENCE = 1_000
"""RE2 repeats a group at most so often."""

_MOST_MADE_BYTES = 1 << 20
"""Bytes that a replacement may make on the way to a text that is too long anyway."""

_OUTSIDE = {
    "d": r"\p{Nd}", "D": r"\P{Nd}",
    "w": r"[\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}]", "W": r"[^\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}]",
    "s": r"[\t-\r\p{Z}]", "S": r"[^\t-\r\p{Z}]",
    "Z": r"(?:\n?\z)", "h": r"[\t\p{Zs}]", "R": r"(?:\r\n|[\n-\r\x{85}\x{2028}\x{2029}])",
}  # fmt: skip
"""ICU's classes, which are of Unicode, as RE2 writes them."""

_INSIDE = {"d": r"\p{Nd}", "w": r"\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}", "s": r"\t-\r\p{Z}",
           "h": r"\t\p{Zs}"}  # fmt: skip
"""A part of ICU's pattern as RE2's, inside of brackets."""

_ATOM = re.compile(
    r"\\u(?P<hex>[0-9A-Fa-f]{4})|(?P<escape>\\(?P<code>.|\Z))|(?P<possessive>[*+?}]\+)"
    r"|(?P<open>\((?P<kind>\?(?:<?[=!]|>|<[A-Za-z][A-Za-z0-9]*>)?)?)|(?P<sign>.)",
    re.DOTALL,
)
_MEMBER = re.compile(
    r"\\u(?P<hex>[0-9A-Fa-f]{4})|(?P<escape>\\(?P<code>.|\Z))|(?P<sign>.)", re.DOTALL
)
"""A part of a pattern, outside of brackets and inside."""


@dataclass(frozen=True)
class _Pattern:
    """A pattern of RE2."""

    text: str
    """It, with its flags."""
    bare: str
    """The same without groups that give anything."""
    groups: int
    """Number of those."""


def call(node: Db2Function, of: TypeOf) -> Typed:
    """A call in DuckDB's SQL, and its type."""
    name: str = node.args["name"]
    text = node.this if of(node.this) is TEXT else fill("CAST({x} AS VARCHAR)", x=node.this)
    pattern, *optional = node.expressions
    if name in ("REGEXP_LIKE", "REGEXP_COUNT") and len(optional) == 1 and _is_flags(optional[0]):
        optional = [exp.Literal.number(1), *optional]  # a start may be left out alone
    return _CALLS[name](text, pattern, _Arguments(name, optional, of))


def _is_flags(node: exp.Expr) -> bool:
    literal = node.unnest()
    return isinstance(literal, exp.Literal) and literal.is_string and not literal.name.isdecimal()


@dataclass(frozen=True)
class _Arguments:
    """The arguments of a call that may be left out."""

    name: str
    optional: Sequence[exp.Expr]
    of: TypeOf

    def constant(self, index: int, what: str, default: int, lowest: int, highest: int) -> int:
        """A whole number."""
        node = self.optional[index].unnest() if index < len(self.optional) else None
        if node is None:
            return default
        text = node.name if isinstance(node, exp.Literal) and not node.is_string else ""
        if not (text.isdecimal() and len(text) < 10 and lowest <= int(text) <= highest):
            raise SqlError(
                -171, "42815", f"The {what} of {self.name} is not valid. Expected: a constant "
                f"from {lowest} to {highest}.",
            )  # fmt: skip
        return int(text)

    def flags(self, index: int) -> str:
        """The flags of a pattern, as RE2 writes them."""
        node = self.optional[index].unnest() if index < len(self.optional) else None
        text = "c" if node is None else _constant(node, self.name, "flags")
        if set(text) - set("cimns") or {"c", "i"} <= set(text):
            raise SqlError(
                -171, "2201T", f"The flags '{text[:20]}' of {self.name} are not valid. Expected: "
                "c or i, m, n or s.",
            )  # fmt: skip
        known = {"i": "i", "m": "m", "n": "s", "s": "s"}
        return "".join(dict.fromkeys(known[flag] for flag in text if flag in known))

    def start(self, text: exp.Expr, index: int) -> tuple[exp.Expr, exp.Expr | None]:
        """The text from where the search begins, and that place; None for its begin."""
        node = self.optional[index] if index < len(self.optional) else None
        if node is None or (isinstance(node, exp.Literal) and node.name == "1"):
            return text, None
        value = number(node) if self.of(node) is TEXT else node
        begin = fill(
            f"CASE WHEN {{n}} < 1 THEN error('{BAD_START}') ELSE CAST(trunc({{n}}) AS INTEGER) END",
            n=value,
        )
        return fill("substr({x}, {n})", x=text, n=begin), begin


LONG_TEXT = "SQL0171N:long"
"""Text of the DuckDB error that the query raises where matches of a long text are listed."""

MOST_LISTED_BYTES = 4_096
"""Bytes of a text whose matches are listed: DuckDB lists those of 2,048 rows at once, and of 32 kB
each they could take a gigabyte."""

BAD_START = "SQL0171N:start"
"""Text of the DuckDB error that the query raises where a search begins before the text."""


def _like(text: exp.Expr, pattern: exp.Expr, arguments: _Arguments) -> Typed:
    searched, _ = arguments.start(text, 0)
    expression = _pattern(pattern, arguments.flags(1), arguments.name).text
    return fill("regexp_matches({x}, {p})", x=searched, p=_text(expression)), OTHER


def _count(text: exp.Expr, pattern: exp.Expr, arguments: _Arguments) -> Typed:
    searched, _ = arguments.start(_short(text), 0)
    expression = _pattern(pattern, arguments.flags(1), arguments.name).text
    counted = "CAST(len(regexp_extract_all({x}, {p})) AS INTEGER)"
    return fill(counted, x=searched, p=_text(expression)), INTEGER


def _substr(text: exp.Expr, pattern: exp.Expr, arguments: _Arguments) -> Typed:
    searched, _ = arguments.start(_short(text), 0)
    occurrence = arguments.constant(1, "occurrence", 1, 1, 10**9 - 1)
    parsed = _pattern(pattern, arguments.flags(2), arguments.name)
    group = arguments.constant(3, "group", 0, 0, parsed.groups)
    match = f"regexp_extract_all({{x}}, {{p}}, {group})[{occurrence}]"
    return fill(match, x=searched, p=_text(parsed.text)), TEXT


def _instr(text: exp.Expr, pattern: exp.Expr, arguments: _Arguments) -> Typed:
    searched, begin = arguments.start(_short(text), 0)
    occurrence = arguments.constant(1, "occurrence", 1, 1, _MOST_OCCURRENCE)
    after = arguments.constant(2, "return option", 0, 0, 1)
    parsed = _pattern(pattern, arguments.flags(3), arguments.name)
    arguments.constant(4, "group", 0, 0, 0)
    # The text before the match, or with it: found by one pattern, since each match may look at what
    # stands before it.
    before = _before(parsed, occurrence)
    match = f"({before}{parsed.bare})" if after else f"({before}){parsed.bare}"
    prefix = rf"(?s:\A{match})"
    position = (
        f"CASE WHEN len(regexp_extract_all({{x}}, {{p}})) < {occurrence} THEN 0 "
        "ELSE length(regexp_extract({x}, {w}, 1)) + {n} END"
    )
    offset = exp.Literal.number(1) if begin is None else begin
    parts = {"x": searched, "p": _text(parsed.text), "w": _text(prefix), "n": offset}
    return fill(f"CAST({position} AS INTEGER)", **parts), INTEGER


def _replace(text: exp.Expr, pattern: exp.Expr, arguments: _Arguments) -> Typed:
    new = arguments.optional[0] if arguments.optional else exp.Literal.string("")
    rest = _Arguments(arguments.name, arguments.optional[1:], arguments.of)
    searched, begin = rest.start(_short(text), 0)
    occurrence = rest.constant(1, "occurrence", 0, 0, _MOST_OCCURRENCE)
    parsed = _pattern(pattern, rest.flags(2), arguments.name)
    replacement = _constant(new.unnest(), arguments.name, "replacement")
    parts: dict[str, exp.Expr] = {"x": searched}
    if occurrence == 0:
        replacement_text, references = _replacement(replacement, parsed.groups, 0)
        replaced = "regexp_replace({x}, {p}, {r}, 'g')"
        parts["p"], parts["r"] = _text(parsed.text), _text(replacement_text)
    else:
        replacement_text, references = _replacement(replacement, parsed.groups, 1)
        before = _before(parsed, occurrence)
        parts["p"], parts["r"] = _text(parsed.text), _text("\\1" + replacement_text)
        parts["w"] = _text(rf"(?s:\A({before}))({parsed.text})")
        replaced = (
            f"CASE WHEN len(regexp_extract_all({{x}}, {{p}})) < {occurrence} THEN {{x}} "
            "ELSE regexp_replace({x}, {w}, {r}) END"
        )
    most = (
        f"strlen({{x}}) * {1 + references} + len(regexp_extract_all({{x}}, {{p}})) * "
        f"{len(replacement_text.encode())}"
    )
    limited = (
        f"CASE WHEN {most} > {_MOST_MADE_BYTES} THEN error('{TOO_LONG}') "
        f"WHEN strlen({replaced}) > {MAX_TEXT} THEN error('{TOO_LONG}') ELSE {replaced} END"
    )
    result = fill(limited, **parts)
    if begin is not None:
        result = fill("left({x}, {n} - 1) || {y}", x=text, n=begin, y=result)
    return result, TEXT


def _short(text: exp.Expr) -> exp.Expr:
    """The text, which may have its matches listed."""
    error = f"error('{LONG_TEXT}')"
    return fill(
        f"CASE WHEN strlen({{x}}) > {MOST_LISTED_BYTES} THEN {error} ELSE {{x}} END", x=text
    )


_CALLS = {
    "REGEXP_LIKE": _like,
    "REGEXP_SUBSTR": _substr,
    "REGEXP_COUNT": _count,
    "REGEXP_INSTR": _instr,
    "REGEXP_REPLACE": _replace,
}


def _text(value: str) -> exp.Literal:
    return exp.Literal.string(value)


def _constant(node: exp.Expr, name: str, what: str) -> str:
    if not (isinstance(node, exp.Literal) and node.is_string):
        raise SqlError(
            -171, "42815", f"The {what} of {name} is not valid. Expected: a constant in quotes."
        )
    return str(node.name)


def _before(pattern: _Pattern, occurrence: int) -> str:
    """The pattern of the text before that occurrence, earlier ones included."""
    earlier = f"(?:.*?{pattern.bare}){{{occurrence - 1}}}" if occurrence > 1 else ""
    return earlier + ".*?"


def _replacement(text: str, groups: int, shift: int) -> tuple[str, int]:
    """ICU's replacement as RE2's, and how many groups it names."""
    parts: list[str] = []
    references = 0
    for token in re.finditer(r"\\(.)|\$(\d)|(\$)|(.)", text, re.DOTALL):
        escaped, group, dollar, sign = token.groups()
        if group is not None and int(group) <= groups and int(group) + shift <= 9:
            # Shifted, the group 2 is the whole match.
            parts.append(f"\\{int(group) + (shift + 1 if shift else 0)}")
            references += 1
        elif group is not None or dollar:
            raise SqlError(
                -171, "42815", f"The replacement '{text[:40]}' of REGEXP_REPLACE is not valid. "
                f"Expected: $0 to ${groups}, and \\$ for a dollar sign.",
            )  # fmt: skip
        else:
            plain = escaped if escaped is not None else sign
            parts.append("\\\\" if plain == "\\" else plain)
    return "".join(parts), references


def _pattern(node: exp.Expr, flags: str, name: str) -> _Pattern:
    """A pattern for RE2.

    Raises:
        SqlError: SQLSTATE 2201S, it is too long, or has what RE2 cannot do.
    """
    text = _constant(node.unnest(), name, "pattern")
    if len(text.encode()) > _MOST_PATTERN_BYTES:
        raise _invalid(text, f"it is longer than {_MOST_PATTERN_BYTES} bytes")
    written: list[str] = []
    bare: list[str] = []
    groups = brackets = position = 0
    while position < len(text):
        atom = (_MEMBER if brackets else _ATOM).match(text, position)
        assert atom is not None  # any character is one
        position = atom.end()
        converted = _member(atom, text, brackets) if brackets else _atom(atom, text)
        if atom["sign"] in ("[", "]"):
            brackets = max(0, brackets + (1 if atom["sign"] == "[" else -1))
        written.append(converted)
        is_group = converted == "(" and not brackets
        groups += is_group
        bare.append("(?:" if is_group else converted)
    on = f"(?{flags})" if flags else ""
    off = "" if "s" in flags else "-s"
    return _Pattern(on + "".join(written), f"(?{flags}{off}:{''.join(bare)})", groups)


def _atom(atom: re.Match[str], text: str) -> str:
    """A part of ICU's pattern as RE2's, outside of brackets."""
    if atom["hex"]:
        return f"\\x{{{atom['hex']}}}"
    if atom["escape"]:
        code = atom["code"]
        if (code.isdigit() and code != "0") or code == "k":
            raise _invalid(text, f"\\{code} refers to a group")
        return _OUTSIDE.get(code, atom["escape"])
    if atom["possessive"]:
        raise _invalid(text, f"{atom['possessive']} is possessive")
    kind = atom["kind"] or ""
    if kind in ("?=", "?!", "?<=", "?<!"):
        raise _invalid(text, f"({kind} looks around")
    if kind == "?>":
        raise _invalid(text, "(?> is atomic")
    return "(" if kind.startswith("?<") else atom[0]


def _member(atom: re.Match[str], text: str, brackets: int) -> str:
    """The same inside of brackets."""
    if atom["hex"]:
        return f"\\x{{{atom['hex']}}}"
    if atom["escape"]:
        return _INSIDE.get(atom["code"], atom["escape"])
    rest = text[atom.start() : atom.start() + 2]
    if rest == "&&" or (atom["sign"] == "[" and (rest != "[:" or brackets > 1)):
        raise _invalid(text, "sets inside of sets")
    return atom[0]


def _invalid(pattern: str, why: str) -> SqlError:
    return SqlError(
        -171, "2201S", f"The regular expression '{pattern[:60]}' is not valid here: {why}."
    )
