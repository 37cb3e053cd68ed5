"""What the words of qsub mean, and which are refused.

Sources, OpenPBS: qsub(1B), pbs_resources(7B); qsub.c for the options and their messages;
pbs_messages.c and pbs_error.h for those of the server, whose number modulo 256 is the exit code.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

_TWICE = "duplicated resource within a section of a select specification, resource is:"
CODES = {
    "Unknown Job Id": 15001, "Unauthorized Request ": 15007, "Unknown/illegal signal name": 15013,
    "Illegal attribute or resource value": 15014, "Request invalid for state of job": 15016,
    "Unknown queue": 15018, "Bad UID for job execution": 15023, "Unknown resource": 15035,
    "job is not rerunnable": 15038, "Invalid Job Dependency": 15054,
    "Array job exceeds server or queue size limit": 15107,
    '"-lresource=" cannot be used with "select" or "place", resource is:': 15109,
    "Cannot be used with select or place": 15110,
    'Cannot have "place" without "select"': 15111,
    _TWICE: 15116,
    "hook error": 15136, "Job has finished": 15139,
}  # fmt: skip
"""Messages of the server by their number."""

_VALUED = "aAcCejJklmMNopqrRSuvWP"
_FLAGS = "fhIVXz"
USAGE = (
    "usage: qsub [-a date_time] [-A account_string] [-c interval]\n"
    "\t[-C directive_prefix] [-e path] [-f ] [-h ] [-I [-X]] [-j oe|eo] [-J X-Y[:Z]]\n"
    "\t[-k keep] [-l resource_list] [-m mail_options] [-M user_list]\n"
    "\t[-N jobname] [-o path] [-p priority] [-P project] [-q queue] [-r y|n]\n"
    "\t[-R o|e|oe] [-S path] [-u user_list] [-W otherattributes=value...]\n"
    "\t[-v variable_list] [-V ] [-z] [script | -- command [arg1 ...]]\n"
    "       qsub --version\n"
)


class Refused(Exception):
    """A request that is refused; the message is the program's, without its name."""

    def __init__(self, message: str, code: int | None = None) -> None:
        """Of the server's messages, or one with a code of its own.

        Args:
            code: The exit code; else that of the server's message.
        """
        super().__init__(message)
        known = [number for words, number in CODES.items() if message.startswith(words)]
        self.code = code if code is not None else (known[0] & 0xFF if known else 2)


@dataclass
class Qsub:
    """The words of a qsub."""

    options: dict[str, str] = field(default_factory=dict)
    """By letter; a flag's value is empty."""
    lists: list[str] = field(default_factory=list)
    """Of -l, which may come more than once."""
    attributes: dict[str, str] = field(default_factory=dict)
    """Of -W."""
    script: str | None = None
    """The script's path; None for standard input."""
    command: list[str] = field(default_factory=list)
    """After --."""


def options(
    words: Sequence[str], valued: str, flags: str
) -> tuple[list[tuple[str, str]], list[str]]:
    """Take words apart as getopt does; letters with values, and the rest.

    Raises:
        Refused: A letter is unknown, or lacks its value.
    """
    found, rest = [], list(words)
    while rest and rest[0].startswith("-") and rest[0] not in ("-", "--"):
        letters = rest.pop(0)[1:]
        while letters:
            letter, letters = letters[0], letters[1:]
            if letter in flags:
                found.append((letter, ""))
            elif letter not in valued:
                raise Refused(f"invalid option -- '{letter}'", 2)
            elif letters or rest:
                found.append((letter, letters or rest.pop(0)))
                letters = ""
            else:
                raise Refused(f"option requires an argument -- '{letter}'", 2)
    return found, rest


_VALUES = {
    "j": "oe|eo|n",
    "k": "n|[oed]{1,3}",
    "m": "n|[abe]{1,3}|[abej]{1,4}",
    "r": "y|n",
    "N": r"[A-Za-z0-9][!-~]{0,235}",
    "S": r"/.*",
    "p": r"-?\d{1,4}",
    "R": "[oe]{1,2}",
}  # fmt: skip


def qsub_words(words: Sequence[str], said: Qsub) -> None:
    """Take a command line apart into ``said``; what is there stays.

    Raises:
        Refused: An option or its value is none.
    """
    found, rest = options(words, _VALUED, _FLAGS)
    fresh: dict[str, str] = {}
    lists, attributes = [], {}
    for letter, value in found:
        if letter in _VALUES and not re.fullmatch(_VALUES[letter], value):
            raise Refused(f"illegal -{letter} value", 2)
        if letter in "IXacCuM":
            raise Refused(f"-{letter}: this stand-in does not know what it does", 2)
        if letter == "l":
            lists.append(value)
        elif letter == "W":
            attributes.update(_attributes(value))
        else:
            fresh[letter] = value
    said.options = {**fresh, **said.options}
    # A resource of the command line stands before those of the script.
    named = {part.split("=")[0] for text in said.lists for part in resources_of(text)}
    said.lists += [
        part for text in lists for part in resources_of(text) if part.split("=")[0] not in named
    ]
    said.attributes = {**attributes, **said.attributes}
    if rest[:1] == ["--"]:
        if len(rest) == 1:
            raise Refused("illegal use of --", 2)
        said.command = rest[1:]
    elif len(rest) > 1:
        raise Refused(USAGE, 2)
    elif rest and rest[0] != "-":
        said.script = rest[0]


def directives(script: str) -> list[str]:
    """The words of a script's #PBS lines, which end at its first command."""
    words: list[str] = []
    for line in script.splitlines():
        if line.startswith("#PBS "):
            words += shlex.split(line[5:])
        elif line.strip() and not line.lstrip().startswith(("#", ":")):
            break
    return words


def _attributes(text: str) -> dict[str, str]:
    pairs: list[list[str]] = []
    for part in text.split(","):
        name, has_value, value = part.partition("=")
        if has_value and re.fullmatch(r"[a-z_]+", name):
            pairs.append([name, value])
        elif pairs:
            pairs[-1][1] += f",{part}"
        else:
            raise Refused("illegal -W value", 2)
    known = ("depend", "umask", "run_count", "max_run_subjobs", "sandbox", "block", "group_list")
    for name, value in pairs:
        if name not in known or not value:
            raise Refused("illegal -W value", 2)
        if name == "block":
            raise Refused("block: this stand-in does not know what it does", 2)
        if name in ("run_count", "max_run_subjobs", "umask") and not value.isdigit():
            raise Refused(f"Illegal attribute or resource value: {name}")
    return {pair[0]: pair[1] for pair in pairs}


def resources_of(text: str) -> list[str]:
    """The parts of an -l, which commas separate."""
    parts = text.split(",")
    for part in parts:
        if not re.fullmatch(r"[a-zA-Z_]\w*=.+", part.strip()):
            raise Refused("illegal -l value", 2)
    return [part.strip() for part in parts]


@dataclass(frozen=True)
class Range:
    """-J."""

    indices: tuple[int, ...]
    at_once: int
    """0 for all."""
    said: str
    """As submitted, without the limit."""


def array_range(text: str, most: int) -> Range:
    """-J: "X-Y[:Z][%N]", Y above X.

    Raises:
        Refused: It is not.
    """
    match = re.fullmatch(r"(\d+)-(\d+)(?::([1-9]\d*))?(?:%([1-9]\d*))?", text)
    if match is None or int(match[2]) <= int(match[1]):
        raise Refused("illegal -J value", 2)
    indices = tuple(range(int(match[1]), int(match[2]) + 1, int(match[3] or 1)))
    if len(indices) > most:
        raise Refused("Array job exceeds server or queue size limit")
    return Range(indices, int(match[4] or 0), text.partition("%")[0])


@dataclass(frozen=True)
class Chunk:
    """Of a select."""

    cpus: int
    gpus: int
    ranks: int
    """mpiprocs: lines in the node file."""
    host: str
    """The only one that will do; empty for any."""


@dataclass(frozen=True)
class Asked:
    """-l."""

    chunks: tuple[Chunk, ...]
    arrangement: str
    """ "free", "pack" or "scatter"."""
    alone: bool
    walltime_s: int | None
    listed: dict[str, str]
    """As qstat prints them."""


_SIZE = r"\d+([kmgtp]?[bw])?"
_CHUNK = {
    "ncpus": r"\d+", "ngpus": r"\d+", "mpiprocs": r"\d+", "ompthreads": r"\d+", "mem": _SIZE,
    "vmem": _SIZE, "host": r"[\w.-]+", "vnode": r"[\w.-]+", "arch": r"\w+",
}  # fmt: skip
_JOB_WIDE = {"walltime": r"(\d+:){0,2}\d+(\.\d+)?", "cput": r"(\d+:){0,2}\d+", "pmem": _SIZE}
_OLD = ("nodes", "neednodes", "resc")


def resources(texts: Sequence[str], hosts: Sequence[str]) -> Asked:
    """-l: select, place, walltime.

    Raises:
        Refused: A resource is unknown, its value is none, or two do not go together.
    """
    listed: dict[str, str] = {}
    for text in texts:
        for part in resources_of(text):
            name, _, value = part.partition("=")
            listed[name] = value
    new = "select" in listed or "place" in listed
    for name, value in listed.items():
        _check(name, value, new)
    if "place" in listed and "select" not in listed:
        raise Refused('Cannot have "place" without "select"')
    if "select" not in listed:
        old = ":".join(f"{name}={listed[name]}" for name in _CHUNK if name in listed)
        listed["select"] = f"1:{old or 'ncpus=1'}"
        if "nodes" in listed:
            listed["select"] = _of_nodes(listed["nodes"])
    chunks = tuple(_chunks(listed["select"], hosts))
    arrangement, alone = _place(listed.get("place", "free"))
    seconds = _seconds(listed["walltime"]) if "walltime" in listed else None
    return Asked(chunks, arrangement, alone, seconds, listed)


def _check(name: str, value: str, new: bool) -> None:
    if name in ("select", "place"):
        return
    if name in _OLD:
        if new:
            raise Refused("Cannot be used with select or place: nodes")
        return
    if name in _JOB_WIDE:
        if not re.fullmatch(_JOB_WIDE[name], value):
            raise Refused(f"Illegal attribute or resource value Resource_List.{name}")
        return
    if name not in _CHUNK:
        raise Refused(f"Unknown resource Resource_List.{name}")
    if new:
        words = '"-lresource=" cannot be used with "select" or "place", resource is:'
        raise Refused(f"{words} {name}")
    if not re.fullmatch(_CHUNK[name], value):
        raise Refused(f"Illegal attribute or resource value Resource_List.{name}")


def _of_nodes(text: str) -> str:
    match = re.fullmatch(r"(\d+)(?::ppn=(\d+))?", text)
    if match is None:
        raise Refused("Illegal attribute or resource value Resource_List.nodes")
    return f"{match[1]}:ncpus={match[2] or 1}:mpiprocs={match[2] or 1}"


def _chunks(text: str, hosts: Sequence[str]) -> list[Chunk]:
    chunks: list[Chunk] = []
    for part in text.split("+"):
        words = part.split(":")
        count = int(words.pop(0)) if words[0].isdigit() else 1
        values: dict[str, str] = {}
        for word in words:
            name, has_value, value = word.partition("=")
            if not has_value or count < 1:
                raise Refused("Illegal attribute or resource value Resource_List.select")
            if name not in _CHUNK:
                raise Refused(f"Unknown resource Resource_List.{name}")
            if name in values:
                raise Refused(f"{_TWICE} {name}")
            if not re.fullmatch(_CHUNK[name], value):
                raise Refused("Illegal attribute or resource value Resource_List.select")
            values[name] = value
        cpus = int(values.get("ncpus", 1))
        ranks = int(values.get("mpiprocs", 1 if cpus else 0))
        host = values.get("host", values.get("vnode", ""))
        chunks += [Chunk(cpus, int(values.get("ngpus", 0)), ranks, host)] * count
    return chunks


def _place(text: str) -> tuple[str, bool]:
    arrangement, alone = "free", False
    for word in text.split(":"):
        if word in ("free", "pack", "scatter", "vscatter"):
            arrangement = word.removeprefix("v")
        elif word in ("excl", "shared", "exclhost"):
            alone = word != "shared"
        elif not re.fullmatch(r"group=\w+", word):
            raise Refused("Illegal attribute or resource value Resource_List.place")
    if text.startswith(":"):
        raise Refused("Illegal attribute or resource value Resource_List.place")
    return arrangement, alone


def _seconds(text: str) -> int:
    seconds = 0
    for part in text.partition(".")[0].split(":"):
        seconds = seconds * 60 + int(part)
    return seconds


DEPENDENCIES = ("after", "afterok", "afternotok", "afterany")


def depend(text: str) -> list[tuple[str, str]]:
    """-W depend: kinds and identifiers.

    Raises:
        Refused: It is none.
    """
    found = []
    for part in text.split(","):
        kind, *jobs = part.split(":")
        if kind not in DEPENDENCIES or not jobs:
            raise Refused("illegal -W value", 2)
        for job in jobs:
            if not re.fullmatch(r"\d+(\[\])?(\.[\w.-]+)?", job):
                raise Refused("Invalid Job Dependency" if "[" in job else "illegal -W value",
                              None if "[" in job else 2)  # fmt: skip
            found.append((kind, job))
    return found


def variables(text: str, submitted: Mapping[str, str]) -> dict[str, str]:
    """-v: names, and names with values; a comma within a value is quoted, or follows a backslash.

    Raises:
        Refused: One has no value to send.
    """
    found = {}
    for token in re.findall(r"(?:'[^']*'|\"[^\"]*\"|\\.|[^,'\"\\])+", text):
        name, has_value, value = token.strip().partition("=")
        if has_value:
            found[name] = re.sub(r"\\(.)|['\"]", r"\1", value)
        elif name in submitted:
            found[name] = submitted[name]
        elif not name.startswith("PBS_O_"):
            raise Refused("cannot send environment with the job", 3)
    return found
