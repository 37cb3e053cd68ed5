"""Patterns of file names: how a path says which frame a file belongs to.

images/10k/{split}/{scene}.jpg          a field is a part of a path, or a piece of one
{scene}_{sequence:6}_{frame_number:6}   so many digits; {scene:8_6} digits in groups
**/{frame}.{jpg,png}                    any folders, also none; one of several endings
cam_{camera}/{camera:joined}            a field twice has one value; joined: without underscores
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from catalog.errors import InvalidInput

FOLDERS = "**"
"""Stands for any folders; as a field of a match, their path with a slash at its end, or ""."""

_ANY_FIELD = re.compile(r"\{[^}]*\}|\*\*|[^A-Za-z0-9]")
_FIELD = re.compile(r"\{(?P<name>[a-z][a-z0-9_]*)(?::(?P<form>[a-z0-9_]+))?\}")
_CHOICE = re.compile(r"\{(?P<choices>[A-Za-z0-9.]+(?:,[A-Za-z0-9.]+)+)\}")
_DIGITS = re.compile(r"[0-9]+(_[0-9]+)*")
_JOINED = "joined"
_FOLDERS = "_folders"
_NUMBERS = ("frame_number",)
"""Fields that are digits, however many."""


@dataclass(frozen=True)
class Pattern:
    """Pattern of a kind of files of frames."""

    text: str
    fields: tuple[str, ...] = field(init=False, compare=False)
    """Names of its fields, in order; with FOLDERS where it has those."""
    _regex: re.Pattern[str] = field(init=False, compare=False, repr=False)
    _joined: tuple[str, ...] = field(init=False, compare=False, repr=False)
    _folders: tuple[re.Pattern[str], ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Compile it.

        Raises:
            InvalidInput: It is no pattern.
        """
        parser = _Parser(self.text)
        set_ = object.__setattr__
        set_(self, "fields", tuple(parser.fields))
        set_(self, "_joined", tuple(parser.joined))
        set_(self, "_regex", re.compile("".join(parser.regexes), re.ASCII | re.DOTALL))
        folders = (parser.regexes[:depth] for depth in range(len(parser.regexes) - 1, 0, -1))
        set_(self, "_folders", tuple(re.compile("".join(f), re.ASCII | re.DOTALL) for f in folders))

    def match(self, key: str) -> dict[str, str] | None:
        """The fields of a path; None where it does not follow the pattern.

        >>> Pattern("{split}/{scene}_{frame_number:3}.png").match("val/a_b_007.png")
        {'split': 'val', 'scene': 'a_b', 'frame_number': '007'}
        """
        match = self._regex.fullmatch(key)
        if match is None:
            return None
        fields = match.groupdict()
        for number, name in enumerate(self._joined):
            if fields.pop(f"_joined{number}") != fields[name].replace("_", ""):
                return None
        if _FOLDERS in fields:
            fields[FOLDERS] = fields.pop(_FOLDERS)
        return fields

    def match_folder(self, folder: str) -> dict[str, str] | None:
        """The fields of a folder that may hold files of the pattern; None where it holds none.

        Args:
            folder: Ends in a slash.

        >>> Pattern("labels/{split}/{scene}/{frame}.png").match_folder("labels/val/")
        {'split': 'val'}
        """
        for regex in self._folders:
            match = regex.fullmatch(folder)
            if match is not None:
                fields = match.groupdict()
                return {
                    FOLDERS if name == _FOLDERS else name: value
                    for name, value in fields.items()
                    if not name.startswith("_joined")
                }
        return None

    @property
    def parts(self) -> list[str]:
        """Parts of the path, as they are written."""
        return self.text.split("/")

    @property
    def letters(self) -> int:
        """Letters and digits that are no field: of two patterns that fit, more say more."""
        return len(_ANY_FIELD.sub("", self.text))

    @property
    def ending(self) -> str:
        """What follows the last field: every file of the pattern ends so; "" for a choice."""
        ending = self.text.rpartition("}")[2] if "{" in self.text else self.parts[-1]
        return ending if "," not in self.text.rpartition("{")[2] else ""

    def folder_with(self, fields: Mapping[str, str], depth: int | None = None) -> str:
        """The deepest folder that surely holds the files with these fields; "" for the source.

        Args:
            depth: At most so many of the pattern's parts.
        """
        folder = ""
        for segment in self.parts[:-1][:depth]:
            if segment == FOLDERS:
                if FOLDERS not in fields:
                    break
                folder += fields[FOLDERS]
                continue
            try:
                folder += _FIELD.sub(lambda match: _written(match, fields), segment) + "/"
            except KeyError:
                break
        return folder

    @property
    def forms(self) -> dict[str, str]:
        """What each field is written as: "6" or "8_6" for digits, "" for any text; no folders."""
        forms: dict[str, str] = {}
        for match in _FIELD.finditer(self.text):
            form = match["form"] or ""
            forms.setdefault(match["name"], "" if form == _JOINED else form)
        return forms

    def path_with(self, fields: Mapping[str, str]) -> str:
        """The path that has these fields; of several endings the first.

        >>> Pattern("**/{scene:8_6}/{frame}.{jpg,png}").path_with(
        ...     {"**": "a/", "scene": "20180807_145028", "frame": "7"})
        'a/20180807_145028/7.jpg'
        """
        file = _FIELD.sub(lambda match: _written(match, fields), self.parts[-1])
        return self.folder_with(fields) + _CHOICE.sub(lambda m: m["choices"].split(",")[0], file)


def _written(match: re.Match[str], fields: Mapping[str, str]) -> str:
    value = fields[match["name"]]
    return value.replace("_", "") if match["form"] == _JOINED else value


class _Parser:
    """Regular expression of a pattern's text, and its fields."""

    def __init__(self, text: str) -> None:
        self.fields: list[str] = []
        self.joined: list[str] = []
        self._text = text
        if not isinstance(text, str) or not text.strip("/"):
            raise InvalidInput(f"pattern {text!r}: expected a path such as images/{{frame}}.png")
        parts = text.split("/")
        if text != text.strip("/") or any(segment in ("", ".", "..") for segment in parts):
            raise InvalidInput(
                f"pattern {text}: expected a path below the source's root, without empty parts"
            )
        if parts.count(FOLDERS) > 1 or parts[-1] == FOLDERS:
            raise InvalidInput(f"pattern {text}: ** may stand once, and not at the end")
        self.regexes = [
            self._folders()
            if segment == FOLDERS
            else self._part(segment) + ("/" if not is_last else "")
            for segment, is_last in (
                (segment, n == len(parts) - 1) for n, segment in enumerate(parts)
            )
        ]
        if not self.fields:
            raise InvalidInput(f"pattern {text}: has no field such as {{frame}}; it names one file")

    def _folders(self) -> str:
        self.fields.append(FOLDERS)
        return f"(?P<{_FOLDERS}>(?:.*/)?)"

    def _part(self, segment: str) -> str:
        regex, position, is_open = "", 0, False
        while position < len(segment):
            if match := _FIELD.match(segment, position):
                piece, ends = self._field(match["name"], match["form"])
                if is_open and not ends:
                    raise InvalidInput(
                        f"pattern {self._text}: the field before {{{match['name']}}} has no end; "
                        "write something between the two, or how many digits one has"
                    )
                is_open = not ends
                regex += piece
            elif match := _CHOICE.match(segment, position):
                regex += f"(?:{'|'.join(map(re.escape, match['choices'].split(',')))})"
                is_open = False
            elif segment[position] in "{}*":
                raise InvalidInput(
                    f"pattern {self._text}: '{segment[position:][:20]}' is no field: expected "
                    "{name}, {name:6} for six digits, {name:joined}, or a choice such as {jpg,png}"
                )
            else:
                regex += re.escape(segment[position])
                position, is_open = position + 1, False
                continue
            position = match.end()
        return regex

    def _field(self, name: str, form: str | None) -> tuple[str, bool]:
        """The piece of a field, and whether it shows where it ends."""
        if form == _JOINED:
            self.joined.append(name)
            return f"(?P<_joined{len(self.joined) - 1}>[^/]+?)", False
        if form is not None and not _DIGITS.fullmatch(form):
            raise InvalidInput(
                f"pattern {self._text}: {{{name}:{form}}}: expected a number of digits such as 6, "
                "groups of them such as 8_6, or joined"
            )
        if name in self.fields:
            return f"(?P={name})", True
        self.fields.append(name)
        if form is None:
            return f"(?P<{name}>{'[0-9]' if name in _NUMBERS else '[^/]'}+?)", False
        digits = "_".join(f"[0-9]{{{int(count)}}}" for count in form.split("_"))
        return f"(?P<{name}>{digits})", True
