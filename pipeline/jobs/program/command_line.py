"""A user's command line: split into arguments once, placeholders replaced in each; never a shell's.

python train_mine.py --list {files} --classes {classes} --out {job}
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from catalog.errors import InvalidInput, UnknownName
from pipeline.jobs.program.paths import ProgramPaths

_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([a-z][a-z_]*)(?::([^{}:]*))?\}")
_PLACEHOLDER_OR_BRACE = re.compile(rf"{_PLACEHOLDER.pattern}|[{{}}]")
_MOST_CHARACTERS = 65_536

FILES, CLASSES, MANIFEST, PREPARED, JOB = "files", "classes", "manifest", "prepared", "job"
CHECKPOINT = "checkpoint"

PLACEHOLDERS: Mapping[str, str] = {
    FILES: "list of the frames' files; {files:SPLIT} is that of one split",
    CLASSES: "classes.json: class names, ids and colours",
    MANIFEST: "folder of the dataset's manifest",
    PREPARED: "folder of the prepared arrays (--prepare)",
    JOB: "folder for what the program makes",
    CHECKPOINT: "checkpoint that the attempt goes on from; empty for none",
}
"""Placeholders in braces, each with the help text of its replacement."""

HANDED_OVER = (FILES, CLASSES, MANIFEST, PREPARED)
"""Those that a job writes before its program begins (pipeline.jobs.program.hand_over)."""


@dataclass(frozen=True)
class CommandLine:
    """A command line whose placeholders stand for nothing yet."""

    arguments: tuple[str, ...]
    """The program and its arguments, with placeholders."""

    @classmethod
    def parse(cls, text: str) -> "CommandLine":
        """The command line that a text says, quoted as a POSIX shell's words are.

        Nothing else of a shell is known: no variables, pipes, redirections or patterns.

        Raises:
            InvalidInput: It is empty, too long, has a zero byte, or a quotation is not closed.
            UnknownName: A placeholder is not known.
        """
        if len(text) > _MOST_CHARACTERS or "\0" in text:
            raise InvalidInput(
                f"command of {len(text):,} characters: expected at most {_MOST_CHARACTERS:,}, none "
                "of them a zero byte"
            )
        try:
            words = shlex.split(text)
        except ValueError as error:
            raise InvalidInput(f"command {text!a}: {error}; close the quotation") from error
        return cls.of(words)

    @classmethod
    def of(cls, words: Sequence[str]) -> "CommandLine":
        """The command line of a program and its arguments.

        Raises:
            InvalidInput: There is no program.
            UnknownName: A placeholder is not known.
        """
        if not words or not words[0]:
            raise InvalidInput(
                "command: expected a program and its arguments, such as 'python train.py {files}'"
            )
        line = cls(tuple(words))
        for name, field in line.placeholders():
            if name not in PLACEHOLDERS or (field and name != FILES):
                text = f"{name}:{field}" if field else name
                known = [f"{{{known}}}" for known in PLACEHOLDERS]
                hint = f"command. ({{{{{text}}}}} stands for the text {{{text}}})"
                raise UnknownName("placeholder", f"{{{text}}}", known, hint)
        return line

    def placeholders(self) -> list[tuple[str, str | None]]:
        """Each placeholder, once: its name, and the split after a colon."""
        matches = (
            (match[1], match[2] or None)
            for word in self.arguments
            for match in _PLACEHOLDER.finditer(word)
            if match[1]
        )
        return list(dict.fromkeys(matches))

    @property
    def takes_checkpoint(self) -> bool:
        """Whether {checkpoint} is one of its placeholders."""
        return (CHECKPOINT, None) in self.placeholders()

    def filled(self, paths: ProgramPaths) -> tuple[str, ...]:
        """The program and its arguments, each placeholder a path of a job.

        A line that takes a checkpoint keeps that placeholder for `with_checkpoint`, which each
        attempt calls, and has every other brace twice.
        """
        takes_checkpoint = self.takes_checkpoint

        def text_of(match: re.Match[str]) -> str:
            if match[1] == CHECKPOINT:
                return match[0]
            path_of = {
                FILES: paths.files(match[2] or None),
                CLASSES: paths.classes,
                MANIFEST: paths.manifest,
                PREPARED: paths.prepared,
                JOB: paths.output,
            }
            # {{ and }} stand for braces.
            text = str(path_of[match[1]]) if match[1] else match[0][0]
            return text.replace("{", "{{").replace("}", "}}") if takes_checkpoint else text

        return tuple(_PLACEHOLDER_OR_BRACE.sub(text_of, word) for word in self.arguments)

    def __str__(self) -> str:
        """The text that `parse` reads."""
        return shlex.join(self.arguments)


def with_checkpoint(arguments: Sequence[str], checkpoint: str) -> list[str]:
    """The arguments that `filled` gave, with a checkpoint's path in its placeholder's place."""
    return [
        _PLACEHOLDER.sub(lambda match: checkpoint if match[1] else match[0][0], word)
        for word in arguments
    ]
