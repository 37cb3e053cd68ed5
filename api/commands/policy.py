"""framesift policy list, run, due."""

from typing import Annotated, Any

import typer

from api.commands.common import open_workspace
from api.commands.policy_actions import work_of
from api.discover import policy_bodies
from api.terminal import JsonFlag, emit_json, emit_table, stdout
from catalog import policy_records, policy_runs
from catalog.errors import InvalidInput, NotFound
from catalog.policy_runs import ACTIVE
from catalog.policy_tables import PolicyRun
from catalog.tables import now
from pipeline.policies import runs
from pipeline.policies.schedule import is_due
from pipeline.policies.tags import BATCH_ROWS

policy_app = typer.Typer(no_args_is_help=True, help="Policies: tags set on what a condition finds.")


def register(app: typer.Typer) -> None:
    """Add this subject's commands."""
    app.add_typer(policy_app, name="policy")


@policy_app.command("list")
def list_(as_json: JsonFlag = False) -> None:
    """List the policies, and how their last runs ended."""
    workspace = open_workspace()
    store, records = workspace.catalog, workspace.records
    found = [
        policy_bodies.of_policy(policy, runs.newest(store, records, policy))
        for policy in policy_records.listed(records)
    ]
    if as_json:
        emit_json(found)
        return
    columns = ("pol_id", "action_id", "pol_state", "pol_status", "pol_filter")
    emit_table(columns, [[policy[column] for column in columns] for policy in found])


@policy_app.command("run")
def run(
    name: Annotated[str, typer.Argument(help="The policy.")],
    run_id: Annotated[
        str, typer.Option("--run", help="A run that was begun elsewhere; else a new one.")
    ] = "",
    batch_rows: Annotated[
        int, typer.Option(min=1, help="Files of one commit; it may be paused between two.")
    ] = BATCH_ROWS,
    as_json: JsonFlag = False,
) -> None:
    """Run a policy here and now, whatever its schedule."""
    workspace = open_workspace()
    store, records = workspace.catalog, workspace.records
    policy = policy_records.found(records, name)
    work = work_of(workspace, policy, batch_rows)
    if run_id:
        begun = policy_runs.found(records, run_id)
        if begun is None or begun.policy_id != policy.id:
            raise NotFound("run", run_id[:80], f"it is none of policy {name}")
        if begun.state not in ACTIVE:
            raise InvalidInput(f"run {run_id} of policy {name} has ended: it is {begun.state}")
    else:
        runs.newest(store, records, policy)
        begun = policy_runs.begin(records, policy)
    ended = runs.perform(store, records, policy, begun, work)
    if as_json:
        emit_json({"pol_id": name, "status": ended.state, **policy_bodies.of_run(ended)})
    else:
        stdout.print(_sentence(name, ended))


@policy_app.command("due")
def due(as_json: JsonFlag = False) -> None:
    """Start the policies whose time has come, as jobs: for a timer that runs every minute."""
    workspace = open_workspace()
    store, records = workspace.catalog, workspace.records
    started: list[dict[str, Any]] = []
    for policy in policy_records.listed(records):
        last = runs.newest(store, records, policy)
        idle = last is None or last.state not in ACTIVE
        since = max(policy.updated, last.started) if last is not None else policy.updated
        if idle and policy.state.lower() == "active" and is_due(policy.schedule, since, now()):
            made = runs.start(store, records, workspace.jobs, policy, workspace.variables)
            started.append({"pol_id": policy.name, "run_id": made.run_id})
    if as_json:
        emit_json(started)
    else:
        for item in started:
            stdout.print(f"started policy {item['pol_id']}")


def _sentence(name: str, ended: PolicyRun) -> str:
    return (
        f"policy {name} {ended.state}: {ended.total:,} files found, {ended.completed:,} done, "
        f"{ended.failed:,} failed, {ended.skipped:,} skipped"
    )
