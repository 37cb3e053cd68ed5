"""What the words of bsub mean, and which are refused.

Sources, IBM Spectrum LSF 10.1, command reference: bsub, each option's page; administration:
resource requirement strings, job dependency syntax. Messages end in ". Job not submitted."; those
that IBM's manuals do not quote are OpenLava's (lsb.err.c, cmd.sub.c), which is LSF 4's source.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

SYNTAX = "Bad resource requirement syntax"
_FLAGS = frozenset({"-H", "-r", "-rn", "-ti", "-x", "-N", "-B"})
_VALUED = frozenset(
    {
        "-J", "-q", "-P", "-G", "-app", "-U", "-n", "-R", "-gpu", "-W", "-M", "-cwd", "-o", "-oo",
        "-e", "-eo", "-w", "-m", "-Jd", "-L", "-env", "-i",
    }
)  # fmt: skip


class Refused(Exception):
    """A submission that is refused; the message is bsub's."""


@dataclass
class Bsub:
    """The words of a bsub."""

    options: dict[str, str] = field(default_factory=dict)
    """By name; a flag's value is "1"."""
    requirements: list[str] = field(default_factory=list)
    """Of -R, which may come more than once."""
    command: list[str] = field(default_factory=list)

    def merge(self, other: "Bsub") -> None:
        """Take the options of #BSUB lines where the command line has none."""
        self.requirements = self.requirements or other.requirements
        self.options = {**other.options, **self.options}


def bsub_words(words: Sequence[str]) -> Bsub:
    """Take a command line apart.

    Raises:
        Refused: An option is unknown, or lacks its value.
    """
    said, rest = Bsub(), list(words)
    while rest and rest[0].startswith("-") and rest[0] != "-":
        word = rest.pop(0)
        if word in _FLAGS:
            said.options[word] = "1"
        elif word not in _VALUED:
            raise Refused(f"{word}: Illegal option")
        elif not rest:
            raise Refused(f"{word}: option requires an argument")
        elif word == "-R":
            said.requirements.append(rest.pop(0))
        else:
            said.options[word] = rest.pop(0)
    said.command = rest
    if {"-r", "-rn"} <= said.options.keys():
        raise Refused("-r and -rn: Conflicting options")
    if "-ti" in said.options and "-w" not in said.options:
        raise Refused("-ti: goes with -w only")
    return said


def bsub_lines(script: str) -> Bsub:
    """The options of a script's #BSUB lines.

    Raises:
        Refused: As on a command line.
    """
    words: list[str] = []
    for line in script.splitlines():
        match = re.match(r"#\s*BSUB\s+(-.*)", line)
        if match:
            words += shlex.split(match[1], comments=True)
    said = bsub_words(words)
    if said.command:
        raise Refused(f"{said.command[0]}: Illegal option")
    return said


@dataclass(frozen=True)
class Name:
    """A job's name, and its array's indices."""

    name: str
    indices: tuple[int, ...]
    """Empty for a job that is no array."""
    at_once: int
    """Most elements that run at once; 0 for all."""


def job_name(text: str, most: int) -> Name:
    """-J: "name" or "name[1-8,12:2]%4".

    Args:
        most: MAX_JOB_ARRAY_SIZE.

    Raises:
        Refused: The indices are none, or too many.
    """
    if not 0 < len(text) <= 4094:
        raise Refused("Bad job name")
    match = re.fullmatch(r"(.*?)\[([^\[\]]*)\](?:%(\d+))?", text, re.DOTALL)
    if match is None:
        if "[" in text or "]" in text:
            raise Refused("Job array index error")
        return Name(text, (), 0)
    indices: list[int] = []
    for part in match[2].split(","):
        span = re.fullmatch(r"\s*(\d+)(?:-(\d+)(?::(\d+))?)?\s*", part)
        if span is None or int(span[1]) < 1 or (span[3] and int(span[3]) < 1):
            raise Refused("Job array index error")
        first, last = int(span[1]), int(span[2] or span[1])
        if last < first:
            raise Refused("Job array index error")
        if last - first > 10 * most:
            raise Refused("Job array index too large")
        indices += range(first, last + 1, int(span[3] or 1))
    if len(set(indices)) != len(indices) or match[3] == "0":
        raise Refused("Job array index error")
    if len(indices) > most:
        raise Refused("Job array index too large")
    return Name(match[1], tuple(sorted(indices)), int(match[3] or 0))


def minutes(text: str) -> float:
    """-W: "[hour:]minute".

    Raises:
        Refused: It is not.
    """
    match = re.fullmatch(r"(?:(\d+):)?(\d+)", text)
    if match is None or (match[1] and int(match[2]) > 59) or not int(match[1] or 0) + int(match[2]):
        raise Refused(f"{text}: Bad argument for option -W")
    return int(match[1] or 0) * 60.0 + int(match[2])


def slots(text: str) -> int:
    """-n: "min" or "min,max"; the fewest.

    Raises:
        Refused: It is not.
    """
    match = re.fullmatch(r"(\d+)(?:,(\d+))?", text)
    if match is None or int(match[1]) < 1 or (match[2] and int(match[2]) < int(match[1])):
        raise Refused(f"{text}: Bad argument for option -n")
    return int(match[1])


def memory(text: str) -> None:
    """-M: a number, with or without a unit.

    Raises:
        Refused: It is not.
    """
    if not re.fullmatch(r"[1-9]\d*([KMGTPE]B?)?", text, re.IGNORECASE):
        raise Refused(f"{text}: Bad argument for option -M")


_LOOSE = re.compile(r"(?<![=!<>])=(?!=)|\b(?!defined\b)[A-Za-z_]\w*\s*\(")
"""What a selection does not have: a single =, functions other than defined()."""
_USED = r"\w+=[\w.]+(?:/(?:task|host|job))?"
_SECTION = {
    "select": re.compile(r"[\w\s.:!=<>&|()\"'*/+-]+"),
    "order": re.compile(r"[\w:!-]+"),
    "rusage": re.compile(rf"{_USED}(?:[:,]{_USED})*"),
    "span": re.compile(r"ptile=[1-9]\d*|hosts=(?:1|-1)|stripe|block=[1-9]\d*"),
    "same": re.compile(r"\w+(?::\w+)*"),
    "cu": re.compile(r"\w+=[\w:+-]+(?::\w+=[\w:+-]+)*"),
    "affinity": re.compile(
        r"(?:thread|core|socket|numa)(?:\(\d+(?:,[\w=(), ]+)?\))?(?:\*\d+)?(?::[\w=()]+)*"
    ),
}  # fmt: skip


def requirements(texts: Sequence[str]) -> dict[str, str]:
    """-R: the sections, each once; a bare one is select[].

    Raises:
        Refused: One is none, has a value that it cannot have, or comes twice.
    """
    sections: dict[str, str] = {}
    for text in texts:
        rest = text.strip()
        bare = re.match(r"(?!\w+\[)[^\[\]]+$", rest)
        if bare:
            rest = f"select[{rest}]"
        while rest:
            match = re.match(r"(\w+)\[([^\[\]]*)\]\s*", rest)
            if match is None or match[1] not in _SECTION:
                raise Refused(SYNTAX)
            name, value = match[1], match[2].strip()
            balanced = value.count("(") == value.count(")")
            loose = name == "select" and _LOOSE.search(value)
            if not balanced or loose or not _SECTION[name].fullmatch(value):
                raise Refused(SYNTAX)
            if name in sections and name not in ("select", "rusage"):
                raise Refused(SYNTAX)
            sections[name] = value
            rest = rest[match.end() :]
    return sections


@dataclass(frozen=True)
class Gpus:
    """-gpu."""

    count: int
    per_task: bool
    alone: bool
    """True where no other job may use them."""


_GPU_VALUES = {
    "num": r"[1-9]\d*(/task|/host)?",
    "mode": "shared|exclusive_process",
    "mps": r"(yes|per_socket|per_gpu)(,shared)?(,nocvd)?|no",
    "j_exclusive": "yes|no",
    "aff": "yes|no",
    "block": "yes|no",
    "gpack": "yes|no",
    "gvendor": "amd|nvidia",
    "gmodel": r"[\w-]+",
    "gtile": r"\d+|!",
    "gmem": r"\d+(\.\d+)?([KMGT]B?)?",
    "glink": "yes",
    "mig": r"\d+(/\d+)?",
}


def gpus(text: str) -> Gpus:
    """-gpu: "-" or "num=2/task:mode=shared:j_exclusive=yes".

    Raises:
        Refused: It is not.
    """
    said = {"num": "1", "mode": "shared", "j_exclusive": "no"}
    if text != "-":
        for part in text.split(":"):
            name, has_value, value = part.partition("=")
            pattern = _GPU_VALUES.get(name)
            if not has_value or pattern is None or not re.fullmatch(pattern, value):
                raise Refused(f"{text}: Bad argument for option -gpu")
            said[name] = value
    count, _, per = said["num"].partition("/")
    alone = said["j_exclusive"] == "yes" or said["mode"] == "exclusive_process"
    return Gpus(int(count), per == "task", alone)


def environment(text: str | None, submitted: Mapping[str, str]) -> dict[str, str]:
    """-env: "none", "all, NAME=VALUE, ~NAME" or "NAME, NAME=VALUE"; without it all.

    Raises:
        Refused: It is not.
    """
    if text is None:
        return dict(submitted)
    words = [word.strip() for word in text.split(",")]
    kept = dict(submitted) if words[0] == "all" else {}
    if words[0] in ("all", "none"):
        words = words[1:]
    for word in words:
        name, has_value, value = word.partition("=")
        if not re.fullmatch(r"~?[A-Za-z_]\w*", name) or (name[0] == "~" and has_value):
            raise Refused(f"{text}: Bad argument for option -env")
        if name[0] == "~":
            kept.pop(name[1:], None)
        elif has_value:
            kept[name] = value
        elif name in submitted:
            kept[name] = submitted[name]
    return kept


CONDITIONS = ("done", "ended", "exit", "started", "post_done", "post_err", "external")
COUNTS = ("numdone", "numended", "numexit", "numhold", "numpend", "numrun", "numstart")
_TOKEN = re.compile(
    r"\s*(?:(?P<op>&&|\|\||!=|!|\(|\)|,|>=|<=|==|>|<)|\"(?P<quoted>[^\"]*)\""
    r"|(?P<word>[\w./@-]+(?:\[[\d*,-]+\])?\*?|\*))"
)

Condition = tuple[Any, ...]
"""("and", a, b), ("or", a, b), ("not", a), or (name, job, operator, number)."""


class _Parser:
    """Of -w."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[tuple[str, str]] = []
        at = 0
        while at < len(text.rstrip()):
            match = _TOKEN.match(text, at)
            if match is None:
                raise self.error()
            kind = str(match.lastgroup)
            self.tokens.append((kind, match[kind]))
            at = match.end()

    def error(self) -> Refused:
        return Refused(f"{self.text}: Dependency condition syntax error")

    def take(self, *values: str) -> str | None:
        if self.tokens and self.tokens[0][0] == "op" and self.tokens[0][1] in values:
            return self.tokens.pop(0)[1]
        return None

    def expect(self, value: str) -> None:
        if self.take(value) is None:
            raise self.error()

    def either(self) -> Condition:
        left = self.both()
        while self.take("||"):
            left = ("or", left, self.both())
        return left

    def both(self) -> Condition:
        left = self.one()
        while self.take("&&"):
            left = ("and", left, self.one())
        return left

    def one(self) -> Condition:
        if self.take("!"):
            return ("not", self.one())
        if self.take("("):
            inner = self.either()
            self.expect(")")
            return inner
        kind, word = self.word()
        if kind == "word" and word in (*CONDITIONS, *COUNTS) and self.take("("):
            return self.named(word)
        return ("done", word, "", 0)

    def word(self) -> tuple[str, str]:
        if not self.tokens or self.tokens[0][0] == "op":
            raise self.error()
        return self.tokens.pop(0)

    def named(self, name: str) -> Condition:
        _, job = self.word()
        operator, number = "", 0
        if self.take(","):
            operator = self.take(">", "<", ">=", "<=", "==", "!=") or ""
            _, text = self.word()
            if text == "*" and not operator and name in COUNTS:
                operator, number = "*", 0
            elif text.isdigit():
                operator, number = operator or "==", int(text)
            else:
                raise self.error()
        if (name in COUNTS) != bool(operator) and name != "exit":
            raise self.error()
        self.expect(")")
        return (name, job, operator, number)


def dependency(text: str) -> Condition:
    """-w.

    Raises:
        Refused: It is no expression.
    """
    parser = _Parser(text)
    condition = parser.either()
    if parser.tokens:
        raise parser.error()
    return condition


def leaves(condition: Condition) -> list[Condition]:
    """The conditions that name a job."""
    if condition[0] in ("and", "or"):
        return [*leaves(condition[1]), *leaves(condition[2])]
    return leaves(condition[1]) if condition[0] == "not" else [condition]
