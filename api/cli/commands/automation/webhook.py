"""framesift webhook add, list, show, remove."""

from itertools import islice
from typing import Annotated

import typer

from api.cli.tables.table import emit_table
from api.cli.target import Record, target
from api.cli.terminal import JsonFlag, document, emit_json, stdout

webhook_app = typer.Typer(
    no_args_is_help=True,
    help="Webhooks: addresses that are told of jobs' ends, by signed requests.",
)

_NameArgument = Annotated[str, typer.Argument(help="The webhook.")]
_STATES = ("done", "failed", "cancelled")


@webhook_app.command("add")
def add(
    name: Annotated[str, typer.Argument(help="Its name.")],
    url: Annotated[
        str, typer.Argument(help="https://HOST/PATH, of a host in FRAMESIFT_WEBHOOK_HOSTS.")
    ],
    state: Annotated[
        list[str] | None,
        typer.Option(help="Tell it of jobs that end so: done, failed, cancelled; of all."),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Add a webhook, and show the secret that signs what it is told."""
    added = target().webhooks.add(name, url, states=state or _STATES)
    if as_json:
        emit_json(added)
    else:
        stdout.print(f"added webhook {name}; its secret, shown this once:")
        stdout.print(added["secret"])


@webhook_app.command("list")
def list_(as_json: JsonFlag = False) -> None:
    """List the webhooks."""
    webhooks: list[Record] = list(target().webhooks.list())
    if as_json:
        emit_json(webhooks)
    else:
        rows = [(row["name"], row["url"], ", ".join(row["states"])) for row in webhooks]
        emit_table(("name", "url", "told of jobs"), rows)


@webhook_app.command("show")
def show(name: _NameArgument, as_json: JsonFlag = False) -> None:
    """Show a webhook, and what it was told of late."""
    webhooks = target().webhooks
    webhook = webhooks.get(name)
    deliveries: list[Record] = list(islice(webhooks.deliveries(name), 20))
    if as_json:
        emit_json({**document(webhook), "deliveries": deliveries})
        return
    stdout.print(f"webhook {name}: {webhook['url']}")
    columns = ("created", "job", "state", "tries", "status", "due", "error")
    emit_table(columns, [[row[column] for column in columns] for row in deliveries])


@webhook_app.command("remove")
def remove(name: _NameArgument) -> None:
    """Remove a webhook; it is told nothing more."""
    target().webhooks.remove(name)
    stdout.print(f"removed webhook {name}")
