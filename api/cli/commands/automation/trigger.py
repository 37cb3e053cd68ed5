"""framesift trigger add, list, show, remove, enable, disable."""

from itertools import islice
from typing import Annotated, Any

import typer

from api.cli.commands.automation.steps import THEN, WithSteps, steps
from api.cli.tables.table import emit_table
from api.cli.target import Record, target
from api.cli.terminal import JsonFlag, document, emit_json, stdout
from catalog.errors import InvalidInput

trigger_app = typer.Typer(
    no_args_is_help=True,
    help="Triggers: begin jobs when frames are added, or a time has come. A server begins them, or "
    "'framesift jobs daemon'.",
)

_NameArgument = Annotated[str, typer.Argument(help="The trigger.")]
_PARTS = ("minute", "hour", "dayOfMonth", "month", "dayOfWeek", "timezone")


@trigger_app.command(
    "add",
    cls=WithSteps,
    epilog=f"Behind {THEN}: a command's words, train, validate, predict or run, without the "
    "dataset where it shall be the frames that --when finds, and without the model where it shall "
    "be the training before. Several are done one after another. framesift trigger add NAME "
    f"{THEN} train --help lists the options of train.",
)
def add(
    name: Annotated[
        str, typer.Argument(help="Its name, with which names of its jobs and datasets begin.")
    ],
    when: Annotated[
        str | None,
        typer.Option(
            metavar="CONDITION",
            help="Frames that count: a condition in SQL, such as 'bicycle>0 and "
            "camera=front_center'.",
        ),
    ] = None,
    min_frames: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Begin when there are so many more than at the last start; 1 by default, with "
            "--schedule 0.",
        ),
    ] = None,
    quiet: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Count frames once the catalog has not changed for so long [s]; 60 by default.",
        ),
    ] = None,
    schedule: Annotated[
        str | None,
        typer.Option(
            metavar="PART=VALUE ...",
            help="Begin at these times only: minute, hour, dayOfMonth, month, dayOfWeek, timezone, "
            "such as 'hour=5 dayOfWeek=mon-fri'.",
        ),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(help="Division of the frames' dataset: train=0.8,validation=0.2."),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Add a trigger: jobs that begin by themselves when frames are added, or at times."""
    chosen = {
        "when": when,
        "min_frames": min_frames,
        "quiet_s": quiet,
        "schedule": None if schedule is None else _parts(schedule),
        "split": split,
    }
    options: dict[str, Any] = {name: value for name, value in chosen.items() if value is not None}
    added = target().triggers.add(name, then=steps(), **options)
    if as_json:
        emit_json(added)
    else:
        stdout.print(f"added trigger {name}: {_sentence(added)}")


@trigger_app.command("list")
def list_(as_json: JsonFlag = False) -> None:
    """List the triggers, and how their last runs stand."""
    triggers: list[Record] = list(target().triggers.list())
    if as_json:
        emit_json(triggers)
        return
    emit_table(
        ("name", "enabled", "begins", "new frames", "last run", "its jobs", "error"),
        [_row(trigger) for trigger in triggers],
    )


@trigger_app.command("show")
def show(name: _NameArgument, as_json: JsonFlag = False) -> None:
    """Show a trigger and its newest runs."""
    triggers = target().triggers
    trigger = triggers.get(name)
    runs: list[Record] = list(islice(triggers.runs(name), 20))
    if as_json:
        emit_json({**document(trigger), "runs": runs})
        return
    stdout.print(f"trigger {name}: {_sentence(trigger)}")
    if trigger["error"]:
        stdout.print(trigger["error"])
    columns = ("started", "cause", "frames", "dataset", "state", "error")
    emit_table(
        (*columns, "jobs"),
        [[*(run[column] for column in columns), ", ".join(run["jobs"])] for run in runs],
    )


@trigger_app.command("remove")
def remove(name: _NameArgument) -> None:
    """Remove a trigger; jobs that it has begun go on."""
    target().triggers.remove(name)
    stdout.print(f"removed trigger {name}")


@trigger_app.command("enable")
def enable(name: _NameArgument) -> None:
    """Have a trigger begin jobs again; times that passed meanwhile do not count."""
    target().triggers.enable(name, enabled=True)
    stdout.print(f"enabled trigger {name}")


@trigger_app.command("disable")
def disable(name: _NameArgument) -> None:
    """Have a trigger begin no more jobs; those that it has begun go on."""
    target().triggers.enable(name, enabled=False)
    stdout.print(f"disabled trigger {name}")


def _parts(text: str) -> dict[str, str]:
    """The parts of a time.

    Raises:
        InvalidInput: They are not written as they should be.
    """
    parts: dict[str, str] = {}
    for word in text.split():
        key, _, value = word.partition("=")
        if key not in _PARTS or not value or key in parts:
            raise InvalidInput(
                f"--schedule '{text}': expected PART=VALUE with blanks between, each part of "
                f"{', '.join(_PARTS)} once, such as 'hour=5 dayOfWeek=mon-fri'"
            )
        parts[key] = value
    return parts


def _sentence(trigger: Record) -> str:
    jobs = ", then ".join(step["kind"] for step in trigger["then"])
    return f"{jobs} {_begins(trigger)}{'' if trigger['enabled'] else ' (disabled)'}"


def _begins(trigger: Record) -> str:
    words: list[str] = []
    if trigger["schedule"] is not None:
        words.append("at " + " ".join(f"{k}={v}" for k, v in trigger["schedule"].items()))
    if trigger["when"] is not None and trigger["min_frames"]:
        words.append(f"on {trigger['min_frames']:,} frames more with {trigger['when']}")
    return ", ".join(words)


def _row(trigger: Record) -> list[Any]:
    last = trigger["last_run"] or {"state": "never run", "jobs": []}
    return [
        trigger["name"],
        "yes" if trigger["enabled"] else "no",
        _begins(trigger),
        trigger["new_frames"],
        last["state"],
        ", ".join(last["jobs"]),
        trigger["error"],
    ]
