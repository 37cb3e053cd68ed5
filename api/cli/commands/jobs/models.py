"""framesift models."""

from typing import Annotated

import typer

from api.cli.commands.jobs.follow import plain
from api.cli.tables.table import emit_table
from api.cli.target import Record, target
from api.cli.terminal import JsonFlag, emit_json, stdout

models_app = typer.Typer(no_args_is_help=True, help="Models, and what they were trained on.")


@models_app.command("list")
def list_(as_json: JsonFlag = False) -> None:
    """List the models, newest first: trainings that are done, programs that wrote ONNX files."""
    listed: list[Record] = list(target().models.list())
    if as_json:
        emit_json(listed)
    else:
        columns = ("name", "dataset", "split", "created", "finished", "onnx")
        emit_table(
            columns,
            [
                [*(model.get(column) for column in columns[:-1]), ", ".join(model["onnx"])]
                for model in listed
            ],
        )


@models_app.command("show")
def show(
    name: Annotated[str, typer.Argument(help="The job that made it.")],
    as_json: JsonFlag = False,
) -> None:
    """Show a model: its dataset, the question and snapshot of that, settings, metrics."""
    model = target().models.get(name)
    if as_json:
        emit_json(model)
        return
    stdout.print(f"model {model['name']}, finished {model['finished']}")
    origin = [
        (key, plain(model.get(key)))
        for key in ("dataset", "dataset_id", "split", "snapshot", "question")
        if model.get(key) is not None
    ]
    emit_table(("trained on", ""), origin)
    for title in ("settings", "metrics"):
        rows = [
            (key, plain(value)) for key, value in model[title].items() if value not in (None, [])
        ]
        if rows:
            emit_table((title, ""), rows)
    if model["onnx"]:
        stdout.print(f"ONNX {', '.join(model['onnx'])}")
    stdout.print(f"folder {model['folder']}")
