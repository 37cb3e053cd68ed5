"""Triggers: jobs that begin by themselves, when frames are added and when a time has come."""

import json
import shutil
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from typer.testing import CliRunner

import framesift as client_package
from api.app import create_app
from api.cli.commands.automation.trigger import trigger_app
from api.cli.commands.jobs.jobs import jobs_app
from api.services.accounts.callers import Caller
from api.services.automation import starting
from api.services.automation.starting import start_triggers
from api.services.session import Session
from api.settings import Settings
from api.workspace import Workspace
from catalog.accounts import users
from catalog.errors import AlreadyExists, InvalidInput, NotAllowed, NotFound, SqlError
from catalog.records.automation import triggers as records_of
from catalog.records.automation.tables import Trigger
from catalog.records.datasets import recorded_dataset
from catalog.values import now
from pipeline.manifest_store import read_manifest
from tests.api.servers import serving
from tests.pipeline.homes import FRAMES, SAMPLE, add_source, copy_home, open_home

WHEN = "car>0 and camera=front_center"
COUNT = [{"kind": "run", "command": "cp {files} {job}/list"}]


@pytest.fixture
def home(catalogued: Path, tmp_path: Path) -> Workspace:
    """The sample frames, which tests may change."""
    return open_home(copy_home(catalogued, tmp_path))


def more_frames(workspace: Workspace, folder: Path, name: str = "more") -> None:
    """The sample's frames once more, from another source."""
    add_source(workspace, name, Path(shutil.copytree(SAMPLE, folder / name)))


def until(workspace: Workspace, state: str, name: str = "bikes") -> dict[str, Any]:
    """A trigger's newest run, looked at until it is in that state."""
    end = time.monotonic() + 300
    while True:
        start_triggers(workspace)
        run = Session(workspace).triggers.get(name).last_run
        if run is not None and run.state == state:
            return dict(run)
        assert time.monotonic() < end, run
        assert run is None or run.state == "running", run
        time.sleep(0.2)


def back(workspace: Workspace, name: str, **of: float) -> None:
    """Let a trigger have been enabled that long ago."""
    records_of.change(workspace.records, name, since=now() - timedelta(**of))


@pytest.mark.wide
def test_frames_that_are_added_begin_a_job(home: Workspace, tmp_path: Path) -> None:
    """Proves condition, count, dataset and lineage; once for each so many frames, and no more."""
    session = Session(home, is_command=True)
    kept = session.triggers.add("bikes", when=WHEN, min_frames=5, quiet_s=0, then=COUNT)
    assert kept.when == "car > 0 AND camera = 'front_center'"
    assert (kept.new_frames, kept.last_run) == (0, None)
    before = kept.frames
    assert 0 < before < FRAMES
    assert start_triggers(home) == 0  # nothing new
    more_frames(home, tmp_path)
    run = until(home, "done")
    assert (run["cause"], run["frames"], run["dataset"]) == ("frames", 2 * before, "bikes@1")
    (name,) = run["jobs"]
    job = session.jobs.get(name)
    assert (job.kind, job.dataset, job.state) == ("run", "bikes@1", "done")
    lines = session.jobs.file(name, "output/list").path.read_text().splitlines()
    manifest = read_manifest(home.records, recorded_dataset(home.records, "bikes@1"))
    assert len(lines) == 2 * before == manifest.frames.num_rows
    assert manifest.header.snapshot == run["snapshot"]
    assert start_triggers(home) == 0
    assert [one.jobs for one in session.triggers.runs("bikes")] == [[name]]


@pytest.mark.wide
def test_fewer_frames_begin_nothing(home: Workspace, tmp_path: Path) -> None:
    """They are shown, and count towards the next start; a disabled trigger waits."""
    session = Session(home, is_command=True)
    session.triggers.add("bikes", when=WHEN, min_frames=2 * FRAMES, quiet_s=0, then=COUNT)
    session.triggers.add("off", when=WHEN, min_frames=1, quiet_s=0, then=COUNT)
    session.triggers.enable("off", enabled=False)
    more_frames(home, tmp_path)
    assert start_triggers(home) == 0
    shown = session.triggers.get("bikes")
    assert (shown.frames, shown.new_frames) == (shown.frames, shown.frames // 2)
    assert shown.last_run is session.triggers.get("off").last_run is None
    session.triggers.enable("off", enabled=True)
    assert start_triggers(home) == 1
    session.triggers.remove("off")
    with pytest.raises(NotFound, match="no trigger named 'off'"):
        session.triggers.get("off")
    assert start_triggers(home) == 0


def with_cars(workspace: Workspace, frames: int) -> None:
    """So many of the sample's frames have cars, the first ones; the others have none."""
    with workspace.whole_catalog.writing("cars") as connection:
        connection.execute(
            "UPDATE lake.main.class_pixels SET car = CASE WHEN fkey IN (SELECT fkey FROM "
            "lake.main.class_pixels ORDER BY fkey LIMIT ?) THEN 9 ELSE 0 END",
            [frames],
        )


@pytest.mark.wide
def test_frames_count_from_the_lowest_number_that_there_was(home: Workspace) -> None:
    """Of ten frames five go away: two that are added begin nothing, three do, below ten again."""
    session = Session(home, is_command=True)
    with_cars(home, 10)
    session.triggers.add("bikes", when="car>0", min_frames=3, quiet_s=0, then=COUNT)
    session.triggers.add("others", when="car=0", min_frames=20, quiet_s=0, then=COUNT)
    begun = []
    for number in (5, 7, 8):
        with_cars(home, number)
        begun.append(start_triggers(home))
    assert begun == [0, 0, 1]
    run = session.triggers.get("bikes").last_run
    assert run is not None
    assert run.frames == 8
    assert session.triggers.get("others").last_run is None


def test_what_a_trigger_missed_while_it_was_off_is_not_caught_up_on(home: Workspace) -> None:
    """Enabled again, it waits for the next time; one that was on all the time begins at once."""
    session = Session(home, is_command=True)
    for name in ("off", "off-too-but-not-again", "on"):
        session.triggers.add(name, schedule={"hour": "*"}, then=[{**COUNT[0], "dataset": "x"}])
        session.triggers.enable(name, enabled=name == "on")
        back(home, name, hours=5)
    session.triggers.enable("off", enabled=True)
    start_triggers(home)
    began = {one.name for one in session.triggers.list() if one.last_run is not None}
    assert began == {"on"}


@pytest.mark.wide
def test_a_catalog_that_changes_is_waited_for(home: Workspace, tmp_path: Path) -> None:
    """Until it is quiet, or has changed for ten times as long; so a long ingest begins one job."""
    session = Session(home, is_command=True)
    session.triggers.add("bikes", when=WHEN, quiet_s=3600, then=COUNT)
    more_frames(home, tmp_path)
    assert start_triggers(home) == 0
    assert session.triggers.get("bikes").new_frames == 0  # not even counted
    records_of.change(home.records, "bikes", changed=now() - timedelta(hours=11))
    assert start_triggers(home) == 1


@pytest.mark.wide
def test_a_clock_that_is_set_back_holds_no_trigger(
    home: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit that lies a year ahead is no recent one."""
    session = Session(home, is_command=True)
    session.triggers.add("bikes", when=WHEN, quiet_s=3600, then=COUNT)
    more_frames(home, tmp_path)
    assert start_triggers(home) == 0
    monkeypatch.setattr(starting, "now", lambda: now() - timedelta(days=400))
    assert start_triggers(home) == 1


@pytest.mark.wide
def test_cycles_on_a_calendar(home: Workspace, tmp_path: Path) -> None:
    """Each time the newest frames, one job after another; missed times are caught up on once."""
    session = Session(home, is_command=True)
    steps = [*COUNT, {"kind": "run", "command": "wc -l {files}"}]
    session.triggers.add("bikes", when=WHEN, schedule={"hour": "*"}, then=steps)
    assert start_triggers(home) == 0
    back(home, "bikes", hours=5)
    run = until(home, "done")
    assert (run["cause"], len(run["jobs"])) == ("schedule", 2)
    first, second = map(session.jobs.get, run["jobs"])
    assert first.finished is not None
    assert second.started is not None
    assert first.finished <= second.started
    assert start_triggers(home) == 0  # its start is newer than the missed times
    more_frames(home, tmp_path)
    with home.records.session() as records:
        for kept in session_runs(records):
            kept.started -= timedelta(hours=2)
    assert until(home, "done")["dataset"] == "bikes@1" or start_triggers(home) == 0
    again = session.triggers.get("bikes").last_run
    assert again is not None
    assert again.dataset == "bikes@2"


def session_runs(records: Any) -> Any:
    """Every run, in a transaction."""
    from sqlalchemy import select

    from catalog.records.automation.tables import TriggerRun

    return records.scalars(select(TriggerRun)).all()


@pytest.mark.wide
def test_a_job_that_fails_ends_the_cycle(home: Workspace) -> None:
    """The run says why; the jobs after it do not begin."""
    session = Session(home, is_command=True)
    steps = [{"kind": "run", "command": "sh -c 'echo error: broken >&2; exit 3'"}, *COUNT]
    session.triggers.add("bikes", when=WHEN, schedule={"minute": "*"}, then=steps)
    back(home, "bikes", minutes=2)
    run = until(home, "failed")
    assert len(run["jobs"]) == 1
    assert "broken" in run["error"]


@pytest.mark.wide
def test_a_process_that_is_killed_begins_no_job_twice(
    home: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the job was submitted, and before the run was told of it."""
    session = Session(home, is_command=True)
    session.triggers.add("bikes", when=WHEN, schedule={"minute": "*"}, then=COUNT)
    back(home, "bikes", minutes=2)
    keep, calls = records_of.keep_run, []

    class Killed(BaseException):
        """No error that a process survives."""

    def killed(records: Any, number: int, **columns: Any) -> Any:
        calls.append(columns)
        if "jobs" in columns:
            raise Killed
        return keep(records, number, **columns)

    monkeypatch.setattr(records_of, "keep_run", killed)
    with pytest.raises(Killed):
        start_triggers(home)
    monkeypatch.undo()
    assert calls
    # Its run goes on; no next one begins, when the minute ends meanwhile.
    session.triggers.enable("bikes", enabled=False)
    run = until(home, "done")
    assert run["jobs"] == [job.name for job in session.jobs.list()]


@pytest.mark.wide
def test_a_trigger_does_what_its_owner_may(home: Workspace, tmp_path: Path) -> None:
    """A removed owner's begins nothing, and a later user of the name is no heir."""
    users.add(home.records, "dora", ["dataadmin"], None)
    caller = Caller.of(users.recorded(home.records, "dora"), "write", logged_in=False)
    session = Session(home, caller)
    with pytest.raises(NotAllowed, match="FRAMESIFT_RUN_PROGRAMS"):
        session.triggers.add("bikes", when=WHEN, then=COUNT)
    train = [{"kind": "train", "max_steps": 1}]
    assert session.triggers.add("bikes", when=WHEN, quiet_s=0, then=train).owner == "dora"
    users.add(home.records, "root", ["admin"], None)
    users.remove(home.records, "dora")
    users.add(home.records, "dora", ["admin"], None)
    more_frames(home, tmp_path)
    told: list[str] = []
    assert start_triggers(home, told.append) == 0
    assert told == [f"trigger bikes: {session.triggers.get('bikes').error}"]
    assert "its owner was removed" in told[0]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"when": None}, "nothing starts it"),
        ({"min_frames": 0}, "expected 1 or more frames"),
        ({"when": None, "schedule": {"hour": 5}}, "name a dataset"),
        ({"when": None, "schedule": {"hour": 5}, "split": "a=1"}, "split: goes with a condition"),
        ({"schedule": {"hour": 25}}, "hour '25'"),
        ({"then": [{"kind": "validate"}]}, "name a model, or put a training before it"),
        ({"split": "train"}, "train"),
    ],
)
def test_what_cannot_be_a_trigger(wrong: dict[str, Any], words: str, home: Workspace) -> None:
    """It is refused when it is added."""
    triggers = Session(home, is_command=True).triggers
    request: dict[str, Any] = {"when": WHEN, "then": [{"kind": "train"}], **wrong}
    with pytest.raises(InvalidInput, match=words):
        triggers.add("bikes", **request)
    assert triggers.list() == []


def test_wrong_conditions_and_names(home: Workspace) -> None:
    """As questions tell them."""
    triggers = Session(home, is_command=True).triggers
    for when in ("car >", "cra > 5", "car > 0 or scene = camra + 1"):
        with pytest.raises(SqlError):
            triggers.add("bikes", when=when, then=COUNT)
    triggers.add("bikes", when=WHEN, then=COUNT)
    with pytest.raises(AlreadyExists):
        triggers.add("bikes", when=WHEN, then=COUNT)
    with pytest.raises(InvalidInput, match="expected 96 at most"):
        triggers.add("b" * 97, when=WHEN, then=COUNT)
    assert isinstance(records_of.recorded(home.records, "bikes"), Trigger)


COMMAND = [
    "add", "bikes", "--when", WHEN, "--min-frames", "500", "--schedule", "hour=5 dayOfWeek=mon",
    "--split", "train=0.8,validation=0.2", "--then", "train", "--max-steps", "300", "--then",
    "validate", "--fail-below", "miou=0.4", "--then", "run", "all@1", "--command", "wc -l {files}",
    "--folder", "/srv",
]  # fmt: skip


def test_by_command(home: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Options before --then are the trigger's, and those behind it the jobs', as their own."""
    monkeypatch.setenv("FRAMESIFT_HOME", str(home.home))

    def framesift(*words: str) -> Any:
        return CliRunner().invoke(trigger_app, words, catch_exceptions=True)

    added = framesift(*COMMAND, "--then", "predict", "--workers", "1")
    assert added.exit_code == 0, added
    assert "train, then validate, then run, then predict at hour=5" in added.output
    shown = json.loads(framesift("show", "bikes", "--json").output)
    assert shown["runs"] == []
    assert shown["schedule"] == {"hour": "5", "dayOfWeek": "mon"}
    train, validate, run, predict = shown["then"]
    assert (train["kind"], train["max_steps"], "dataset" in train) == ("train", 300, False)
    assert (validate["kind"], validate["fail_below"]) == ("validate", {"miou": 0.4})
    assert (run["dataset"], run["command"], run["folder"]) == ("all@1", "wc -l {files}", "/srv")
    assert (predict["kind"], predict["workers"]) == ("predict", 1)
    for without_job in (["--then"], ["--then", "train", "--then"], []):
        refused = framesift("add", "others", "--when", WHEN, *without_job)
        assert "which job? End the line with --then and a command's words" in str(refused.exception)
    assert framesift("disable", "bikes").output == "disabled trigger bikes\n"
    assert "(disabled)" in framesift("show", "bikes").output
    assert framesift("enable", "bikes").output == "enabled trigger bikes\n"
    assert json.loads(framesift("list", "--json").output)[0]["enabled"]
    assert "never run" in framesift("list").output
    assert framesift("remove", "bikes").output == "removed trigger bikes\n"
    for words, message in (
        (["add", "b", "--when", WHEN], "End the line with --then"),
        (["add", "b", "--when", WHEN, "--then", "trian"], "did you mean train"),
        (["add", "b", "--when", WHEN, "--then", "train", "--name", "x"], "names its jobs"),
        (["add", "b", "--when", WHEN, "--then", "train", "--dry-run"], "--dry-run: a trigger"),
        (["add", "b", "--schedule", "5", "--then", "train", "d"], "expected PART=VALUE"),
        (["add", "b", "--when", WHEN, "--then", "validate", "m", "a", "b"], "expected one dataset"),
    ):
        refused = framesift(*words)
        assert message in str(refused.exception), refused
    assert framesift("add", "b", "--then", "train", "--max-steps", "x").exit_code == 2


@pytest.mark.wide
def test_over_rest_and_by_client(home: Workspace) -> None:
    """The same trigger, made, shown, disabled and removed."""
    body = {
        "name": "bikes",
        "when": WHEN,
        "min_frames": 500,
        "then": [{"kind": "train", "max_steps": 300}, {"kind": "validate"}],
    }
    settings = Settings(home=home.home, cache=None)
    with TestClient(create_app(settings, authenticates=False)) as client:
        made = client.post("/v1/triggers", json=body)
        assert made.status_code == 201, made.text
        assert made.json()["then"] == body["then"]
        again = client.post("/v1/triggers", json=body)
        assert (again.status_code, again.json()["title"]) == (409, "AlreadyExists")
        changes: list[dict[str, Any]] = [{"then": []}, {"then": [{"kind": "scan"}]}, {"x": 1}]
        for wrong in (*changes, {"quiet_s": -1}):
            assert client.post("/v1/triggers", json=body | wrong).status_code == 422, wrong
        named = [{"kind": "train", "name": "mine"}]
        assert client.post("/v1/triggers", json=body | {"then": named}).status_code == 422
    with serving(home.home) as (url, _), client_package.connect(url) as remote:
        (trigger,) = remote.triggers
        assert (trigger.name, trigger["enabled"]) == ("bikes", True)
        assert remote.triggers.enable("bikes", enabled=False)["enabled"] is False
        assert list(remote.triggers.runs("bikes")) == []
        then = [{"kind": "train", "dataset": "d"}]
        other = remote.triggers.add("night", then=then, schedule={"hour": 5})
        assert remote.triggers.get("night")["schedule"] == other["schedule"] == {"hour": 5}
        remote.triggers.remove("night")
        with pytest.raises(client_package.NotFound):
            remote.triggers.get("night")


def test_run_once_looks_at_triggers(home: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a server's ticker does: jobs of a home without one begin from a timer."""
    monkeypatch.setenv("FRAMESIFT_HOME", str(home.home))
    session = Session(home, is_command=True)
    session.triggers.add("bikes", when=WHEN, schedule={"minute": "*"}, then=COUNT)
    back(home, "bikes", minutes=2)
    assert CliRunner().invoke(jobs_app, ["run-once"]).exit_code == 0
    run = session.triggers.get("bikes").last_run
    assert run is not None
    assert len(run.jobs) == 1
