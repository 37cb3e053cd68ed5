"""The words of the published LSF form, as options of framesift run: docs/lsf-form.md.

Source of the words: the application template AV.cmd of github.com/IBM/ibm-spectrum-scale-daaa, and
searchDiscover.sh there, which reads them from a file with a word on each line.
"""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from typer.core import TyperCommand

from catalog.errors import InvalidInput

FORM = "--form"
_CAMERAS = {
    "p_fl": "front_left", "p_fc": "front_center", "p_fr": "front_right", "p_ml": "side_left",
    "p_mr": "side_right", "p_rl": "rear_left", "p_rc": "rear_center", "p_rr": "rear_right",
}  # fmt: skip
"""Boxes, and the cameras that they name: front, middle and rear, left, center and right."""
_TICKED = {"": True, "yes": True, "no": False}
"""Values of a box; AV.cmd hands on each one that is not "no", one without a value, too."""
_SETTINGS = {"queue": "queue", "oc_namespace": "namespace", "oc_pvc": "claim"}
"""Words that choose a setting of the backend, and what it is."""
_OF_BACKENDS = {
    "slurm": {"queue": "partition"},
    "lsf": {"queue": "queue"},
    "pbs": {"queue": "queue"},
    "kubernetes": {"queue": "queue", "oc_namespace": "namespace", "oc_pvc": "claim"},
}
"""The setting of each backend that a word chooses; a site may have chosen it for all."""
_SCRIPT, _COMMAND = "oc_path_exec", "cmd"
_WORD = re.compile(r"-(?P<name>\w+)=(?P<value>.*)", re.DOTALL | re.ASCII)
_LIMIT = re.compile(r"(?P<end>min|max)_(?P<label>\w+)", re.ASCII)
_FILENAME = "filename"


class WithForm(TyperCommand):
    """A command whose line may end with `--form WORD...`, in the place of a question's options."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words behind --form as options of the command."""
        if FORM in args:
            at = args.index(FORM)
            own, words = args[:at], args[at + 1 :]
            parsed, _, _ = self.make_parser(ctx).parse_args([*own])
            args = [*own, *run_words(words, parsed.get("backend") or "local")]
        return super().parse_args(ctx, args)


def run_words(words: Sequence[str], backend: str) -> list[str]:
    """Options of framesift run: question, command, settings of the backend, and --evict.

    Args:
        words: "-NAME=VALUE" each, or the path of a file with one on each line.
        backend: Where the job shall run.

    Raises:
        InvalidInput: A word is unknown, there twice, contradicts another or cannot be used, or no
            word chooses frames, or a command.
    """
    values = _values(_of_file(words[0]) if len(words) == 1 and words[0][:1] != "-" else words)
    chosen = [*_cameras(values), *_ranges(values), *_filenames(values)]
    if not chosen:
        raise InvalidInput(
            f"{FORM}: no word chooses frames; give a label's range, such as -min_car=10000, a "
            "camera, such as -p_fc=yes, or -min_filename"
        )
    return [*chosen, *_settings(values, backend), "--command", _command(values), "--evict"]


def _of_file(path: str) -> list[str]:
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeError) as error:
        raise InvalidInput(
            f"{FORM} {path}: expected words -NAME=VALUE, or a file of them that can be read "
            f"({getattr(error, 'strerror', None) or 'no UTF-8'})"
        ) from error
    return [line for line in lines if line.strip()]


def _values(words: Sequence[str]) -> dict[str, str]:
    """The value of each word, by its name.

    Raises:
        InvalidInput: One is unknown, there twice, or not of that form.
    """
    values: dict[str, str] = {}
    for word in words:
        match = _WORD.fullmatch(word)
        if match is None:
            raise InvalidInput(
                f"{FORM} '{word}': expected -NAME=VALUE, such as -min_car=10000; quote a value "
                "with blanks for each shell that it passes, or write the words into a file"
            )
        name = match["name"].lower()
        if name not in (*_CAMERAS, *_SETTINGS, _SCRIPT, _COMMAND) and not _LIMIT.fullmatch(name):
            raise InvalidInput(
                f"{FORM} {word}: unknown word -{name}; expected -min_LABEL, -max_LABEL, "
                f"-{', -'.join((*_CAMERAS, *_SETTINGS, _SCRIPT))} or -{_COMMAND}"
            )
        if name in values:
            raise InvalidInput(f"{FORM} {word}: -{name} is there twice; leave one of them out")
        values[name] = match["value"].strip()
    return values


def _cameras(values: Mapping[str, str]) -> Iterator[str]:
    """--camera for each box that is ticked: frames of any of them; of all where none is."""
    for name, camera in _CAMERAS.items():
        value = values.get(name, "no")
        if value.lower() not in _TICKED:
            raise InvalidInput(f"{FORM} -{name}={value}: expected yes or no")
        if _TICKED[value.lower()]:
            yield from ("--camera", camera)


def _limits(values: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """The values of -min_LABEL and -max_LABEL, by label and "min" or "max"."""
    limits: dict[str, dict[str, str]] = {}
    for name, value in values.items():
        if match := _LIMIT.fullmatch(name):
            limits.setdefault(match["label"], {})[match["end"]] = value
    return limits


def _ranges(values: Mapping[str, str]) -> Iterator[str]:
    """--range for each label with a limit; the question refuses one that is upside down."""
    for label, ends in _limits(values).items():
        if label == _FILENAME:
            continue
        for end, value in ends.items():
            if not re.fullmatch("[0-9]{1,18}", value):
                raise InvalidInput(
                    f"{FORM} -{end}_{label}={value}: expected a whole number of pixels"
                )
        yield from ("--range", f"{label}={ends.get('min', '')}:{ends.get('max', '')}")


def _filenames(values: Mapping[str, str]) -> Iterator[str]:
    """--where for -min_filename and -max_filename, which are compared as texts."""
    ends = _limits(values).get(_FILENAME, {})
    if {*ends} == {"min", "max"} and ends["min"] > ends["max"]:
        raise InvalidInput(
            f"{FORM} -min_filename={ends['min']} is above -max_filename={ends['max']}; swap them"
        )
    texts = {end: "'" + value.replace("'", "''") + "'" for end, value in ends.items()}
    operators = {"min": ">=", "max": "<="}
    if texts:
        conditions = (f"{_FILENAME} {operators[end]} {text}" for end, text in texts.items())
        yield from ("--where", " and ".join(conditions))


def _settings(values: Mapping[str, str], backend: str) -> Iterator[str]:
    """--option for queue, namespace and claim, of backends that have such."""
    for name, noun in _SETTINGS.items():
        value = values.get(name)
        if not value:
            continue
        setting = _OF_BACKENDS.get(backend, {}).get(name)
        if setting is None:
            raise InvalidInput(
                f"{FORM} -{name}={value}: the backend {backend} has no {noun}; leave the field "
                "empty, or choose another --backend"
            )
        yield from ("--option", f"{backend}.{setting}={value}")


def _command(values: Mapping[str, str]) -> str:
    """-cmd's command line; or -oc_path_exec's shell script with the list of files and {job}."""
    script, command = values.get(_SCRIPT), values.get(_COMMAND)
    if script and command:
        raise InvalidInput(
            f"{FORM} -{_SCRIPT}={script} and -{_COMMAND}={command}: one job has one command; leave "
            "one of them out"
        )
    if command:
        return command
    if not script:
        raise InvalidInput(
            f"{FORM}: no command; give -{_SCRIPT}=SCRIPT, or -{_COMMAND} with a program and its "
            "arguments"
        )
    as_text = script.replace("{", "{{").replace("}", "}}")
    return f"/bin/sh {shlex.quote(as_text)} {{files}} {{job}}"
