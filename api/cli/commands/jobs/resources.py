"""Options by which a job asks something of the machines it runs on."""

from typing import Annotated, Any

import typer

from catalog.errors import InvalidInput, UnknownName

ResourceOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=VALUE",
        help="Asked of the machines it runs on, each with an option of its own: ranks_per_node, "
        "gpus and cores of a process, memory_mb, wall_minutes, nodes, constraint, image, "
        "mount=HERE:INSIDE, environment=VARIABLE.",
    ),
]
OptionOption = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        metavar="BACKEND.NAME=VALUE",
        help="A setting of the backend's own, such as slurm.partition=gpu.",
    ),
]
_NUMBERS = ("ranks_per_node", "gpus", "cores", "memory_mb", "wall_minutes")
_TEXTS = ("nodes", "constraint", "image")


def resources_of(
    backend: str, needs: list[str] | None, options: list[str] | None
) -> dict[str, Any] | None:
    """The field ``resources`` of POST /v1/jobs, of options; None for none.

    Args:
        backend: Where the job runs.
        needs: NAME=VALUE each.
        options: BACKEND.NAME=VALUE each.

    Raises:
        InvalidInput: One is not of that form, or no number.
        UnknownName: One is not known.
    """
    values: dict[str, Any] = {}
    for name, value in _pairs("--resource", needs):
        if name in _NUMBERS:
            if not value.isascii() or not value.isdigit():
                raise InvalidInput(f"--resource {name}={value}: expected a whole number")
            values[name] = int(value)
        elif name in _TEXTS:
            values[name] = value
        elif name == "mount":
            here, _, inside = value.partition(":")
            values.setdefault("mounts", {})[here] = inside
        elif name == "environment":
            values.setdefault("environment", []).append(value)
        else:
            raise UnknownName("resource", name, (*_NUMBERS, *_TEXTS, "mount", "environment"))
    for name, value in _pairs("--option", options):
        of, _, setting = name.partition(".")
        if of != backend or not setting:
            raise InvalidInput(
                f"--option {name}={value}: expected {backend}.NAME=VALUE, for --backend {backend}"
            )
        values.setdefault("options", {})[setting] = value
    return values or None


def _pairs(flag: str, words: list[str] | None) -> list[tuple[str, str]]:
    for word in words or []:
        if "=" not in word:
            raise InvalidInput(f"{flag} {word}: expected NAME=VALUE")
    return [(name, value) for name, _, value in (word.partition("=") for word in words or [])]
