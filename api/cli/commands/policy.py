"""framesift policy list, run, due."""

from typing import Annotated

import typer

from api.cli.long_work import run_policy
from api.cli.options.order_options import argument_of, option_of
from api.cli.tables.table import emit_table
from api.cli.target import Record, target
from api.cli.terminal import JsonFlag, emit_json, stdout
from api.schemas.home_orders import PolicyRun
from pipeline.policies.actions import BATCH_ROWS

policy_app = typer.Typer(
    no_args_is_help=True, help="Policies: set tags on files that meet a condition."
)


@policy_app.command("list")
def list_(as_json: JsonFlag = False) -> None:
    """List the policies, and how their last runs ended."""
    policies: list[Record] = list(target().policies.list())
    if as_json:
        emit_json(policies)
        return
    columns = ("name", "action", "state", "condition")
    emit_table(
        (*columns, "last run"),
        [
            [*(policy[c] for c in columns), (policy["last_run"] or {"state": "never run"})["state"]]
            for policy in policies
        ],
    )


@policy_app.command("run")
def run(
    name: Annotated[str, argument_of(PolicyRun, "policy")],
    run_id: Annotated[str, option_of(PolicyRun, "run")] = PolicyRun.run,
    batch_rows: Annotated[
        int, typer.Option(min=1, help="Files of one commit; it may be paused between two.")
    ] = BATCH_ROWS,
    as_json: JsonFlag = False,
) -> None:
    """Run an active policy now, whatever its schedule."""
    ended = run_policy(name, run_id, batch_rows)
    if as_json:
        emit_json(ended)
    else:
        stdout.print(_sentence(ended))


@policy_app.command("due")
def due(as_json: JsonFlag = False) -> None:
    """Start due policies as jobs; for a timer that runs every minute."""
    started: list[Record] = list(target().policies.start_due())
    if as_json:
        emit_json(started)
    else:
        for run in started:
            stdout.print(f"started policy {run['policy']}")


def _sentence(ended: Record) -> str:
    return (
        f"policy {ended['policy']} {ended['state']}: {ended['total']:,} files found, "
        f"{ended['completed']:,} done, {ended['failed']:,} failed, {ended['skipped']:,} skipped"
    )
