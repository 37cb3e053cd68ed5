"""Policies at work: which files get which values, and what a run that is told to stop leaves."""

import re
import signal
import threading
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from api.services.policies.actions import check, work_of
from api.workspace import Workspace
from catalog.accounts import row_collections
from catalog.errors import FramesiftError, InvalidInput, NotFound, SqlError, UnknownName
from catalog.policies import (
    policies as policy_records,
)
from catalog.policies import (
    regexes as policy_regexes,
)
from catalog.policies import (
    runs as policy_runs,
)
from catalog.records.policy_tables import Policy, PolicyRun
from catalog.records.sources import recorded_source
from catalog.tags import families, tags
from ingest.extractors.image import Image
from ingest.extractors.run import run_extractor
from pipeline.policies import csv_import, runs
from pipeline.policies.report import Report
from pipeline.policies.schedule import check_schedule, is_due, last_of, next_time
from query.run.run_sql import run_sql
from tests.api.servers import environment, framesift
from tests.pipeline.homes import copy_home, open_home
from tests.pipeline.test_local_jobs import eventually
from tests.zygote import Forked


@pytest.fixture(scope="module")
def unchanged(catalogued: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """A home for what is refused."""
    workspace = open_home(copy_home(catalogued, tmp_path_factory.mktemp("unchanged")))
    tags.add_tag(workspace.whole_catalog, "rank", "integer")
    yield workspace
    workspace.close()


def policy(
    workspace: Workspace, parameters: dict[str, Any], condition: str = "", **more: Any
) -> Policy:
    """An AUTOTAG policy, or another, checked and kept."""
    settings = {"name": "p", "action": "AUTOTAG", "schedule": "NOW", "state": "active", "explicit": "true"}  # fmt: skip  # noqa: E501
    created = Policy(
        parameters=parameters, condition=condition, collections=more.pop("collections", []),
        owner="anna", updated_by="anna", **{**settings, **more},
    )  # fmt: skip
    check(workspace, created)
    return policy_records.add(workspace.records, created)


def done(workspace: Workspace, created: Policy, batch_rows: int = 50_000) -> PolicyRun:
    """A run of it, here, to its end."""
    run = policy_runs.begin(workspace.records, created)
    work = work_of(workspace, created, batch_rows)
    return runs.perform(workspace.whole_catalog, workspace.records, created, run, work)


def counts(run: PolicyRun) -> tuple[int, int, int, int, int]:
    """total, submitted, completed, failed, skipped."""
    return run.total, run.submitted, run.completed, run.failed, run.skipped


def values(workspace: Workspace, *columns: str, where: str = "") -> list[tuple[Any, ...]]:
    """Rows of metaocean_view, by fkey."""
    statement = f"select {', '.join(columns)} from metaocean_view {where} order by fkey"
    table = run_sql(workspace.catalog, statement).rows
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


@pytest.mark.wide
def test_the_same_values_for_what_is_found(workspace: Workspace) -> None:
    """A new tag is made, one that is there keeps its kind, and other files keep what they have."""
    tags.add_tag(workspace.whole_catalog, "weather", "text", "Restricted", ["rain", "sun"])
    tags.add_tag(workspace.whole_catalog, "rank", "integer")
    created = policy(
        workspace,
        {"tags": {"Weather": "rain", "rank": 7, "project": 'Ünic\'ode "x"', "seen": True}},
        "filename like ('%/camera/%front%') and filetype='png' -- the end",
    )
    result = done(workspace, created, batch_rows=5)
    condition = "where filename like '%/camera/%front%' and filetype='png'"
    fkeys = {fkey for (fkey,) in values(workspace, "fkey", where=condition)}
    assert (result.state, counts(result)) == (
        "complete",
        (len(fkeys), len(fkeys), len(fkeys), 0, 0),
    )
    for fkey, *stored in values(workspace, "fkey", "weather", "rank", "project", "seen"):
        expected = ["rain", "7", 'Ünic\'ode "x"', "true"] if fkey in fkeys else [None] * 4
        assert stored == expected
    policy_records.change(workspace.records, "p", "otto", {"parameters": {"tags": {"rank": 8}}})
    changed = policy_records.recorded(workspace.records, "p")
    assert (changed.owner, changed.updated_by) == ("anna", "otto")
    assert done(workspace, changed).completed == len(fkeys)
    assert set(values(workspace, "weather", "rank", where=condition)) == {("rain", "8")}
    with workspace.catalog.reading() as cursor:
        from catalog.tags.tag_kinds import kinds

        assert kinds(cursor)["project"].kind == "Open"
        assert kinds(cursor)["weather"].kind == "Restricted"


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        # A vault's third level, as a published scenario has it.
        ({"action": "regex", "regexPattern": "[^/]+", "matchNo": 3},
         lambda name: part(re.findall("[^/]+", name), 3)),
        ({"action": "regex", "regexPattern": r"cam_\w+", "matchNo": 1},
         lambda name: part(re.findall(r"cam_\w+", name), 1)),
        ({"action": "regex", "regexPattern": "(a+)+$"}, lambda name: None),
        ({"action": "split", "delimiter": "/", "fieldNo": 2},
         lambda name: part(name.split("/"), 2)),
        ({"action": "split", "delimiter": "cam_", "fieldNo": 2},
         lambda name: part(name.split("cam_"), 2)),
        ({"action": "split", "delimiter": "/", "fieldNo": 99}, lambda name: None),
    ],
)  # fmt: skip
def test_a_part_of_another_field(workspace: Workspace, rule: dict[str, Any], expected: Any) -> None:
    """As Python takes it; files from which nothing is taken are skipped."""
    rule_fields = {
        "name": "setFromExistingField",
        "existingField": "FileName",
        "newField": "u2-source",
    }
    result = done(workspace, policy(workspace, {"rule": {**rule_fields, **rule}}))
    rows = values(workspace, "filename", "u2-source")
    assert [taken for _, taken in rows] == [expected(name) for name, _ in rows]
    tagged = sum(taken is not None for _, taken in rows)
    assert counts(result) == (len(rows), len(rows), tagged, 0, len(rows) - tagged)


def part(parts: list[str], number: int) -> str | None:
    """The part of that number, from 1, if there is one that is not empty."""
    return (parts[number - 1] or None) if number <= len(parts) else None


@pytest.mark.wide
def test_a_path_s_first_part_comes_after_its_slash(workspace: Workspace) -> None:
    """As documented: the second part of /Lab1/ProjectHA48/users/active is the project."""
    done(workspace, policy(workspace, {"tags": {"place": "/Lab1/ProjectHA48/users/active"}}))
    rule = {"action": "split", "existingField": "place", "delimiter": "/", "fieldNo": 2,
            "newField": "projectname"}  # fmt: skip
    done(workspace, policy(workspace, {"rule": rule}, name="split"))
    assert set(values(workspace, "projectname")) == {("ProjectHA48",)}


@pytest.mark.wide
def test_long_values_are_cut_and_others_fail(workspace: Workspace) -> None:
    """256 characters at most; what a tag may not have counts as failed and is not written."""
    tags.add_tag(workspace.whole_catalog, "long_", "text", "Characteristics")
    tags.add_tag(workspace.whole_catalog, "number_", "integer")
    tags.add_tag(workspace.whole_catalog, "kind_", "text", "Restricted", ["png"])
    done(workspace, policy(workspace, {"tags": {"long_": "ä" * 300}}))
    rule = {"action": "regex", "existingField": "long_", "regexPattern": ".+", "newField": "cut"}
    done(workspace, policy(workspace, {"rule": rule}, name="cut"))
    assert set(values(workspace, "cut")) == {("ä" * 256,)}
    as_kept = {
        "number_": lambda text: str(int(text)),
        "kind_": lambda text: text if text == "png" else None,
    }
    for tag, pattern, field in (("number_", "[0-9]{9}", "filename"), ("kind_", ".*", "filetype")):
        rule = {"action": "regex", "existingField": field, "regexPattern": pattern, "newField": tag}
        result = done(workspace, policy(workspace, {"rule": rule}, name=tag))
        rows = values(workspace, field, tag)
        assert result.failed + result.completed + result.skipped == result.total == len(rows)
        for value, taken in rows:
            assert taken == next(map(as_kept[tag], re.findall(pattern, value)), None)


@pytest.mark.wide
def test_a_registered_pattern_is_used_as_it_is_at_the_run(workspace: Workspace) -> None:
    """A rule names it; changed, the next run takes the new one; gone, the run fails."""
    policy_regexes.add(workspace.records, "camera", "front_[a-z]+", "")
    rule = {"action": "regex", "existingField": "filename", "regex_id": "camera", "newField": "x_"}
    created = policy(workspace, {"rule": rule}, "filename like '%cam_front_center%'")
    done(workspace, created)
    policy_regexes.change(workspace.records, "camera", "cam_[a-z]+", None)
    done(workspace, created)
    assert set(values(workspace, "x_")) >= {("cam_front",)}
    policy_regexes.remove(workspace.records, "camera")
    with pytest.raises(NotFound, match="no regex named 'camera'"):
        done(workspace, created)
    failed = policy_runs.last(workspace.records, created.id)
    assert failed is not None
    assert (failed.state, failed.error.partition(":")[0]) == ("failed", "no regex named 'camera'")


@pytest.mark.wide
def test_files_of_collections_only(workspace: Workspace) -> None:
    """What one of the policy's collections has, and its condition finds."""
    row_collections.add(workspace.records, "images", "filetype='png' -- no more")
    row_collections.add(workspace.records, "lidar", "filetype='npz'")
    created = policy(workspace, {"tags": {"x_": "1"}}, "size > 0", collections=["images", "lidar"])
    assert done(workspace, created).completed == sum(
        kind in ("png", "npz") for (kind,) in values(workspace, "filetype")
    )
    row_collections.remove(workspace.records, "lidar")
    with pytest.raises(NotFound, match="collection"):
        done(workspace, created)


@pytest.mark.parametrize(
    ("parameters", "condition", "error", "words"),
    [
        ({"tags": {"car": "1"}}, "", InvalidInput, "tag 'car' is what scans read"),
        ({"tags": {"front": "1"}}, "", InvalidInput, "tag 'front' is what scans read"),
        ({"tags": {"owner": "me"}}, "", InvalidInput, "tag 'owner' is a column"),
        ({"tags": {"a b": "me"}}, "", InvalidInput, "tag 'a b'"),
        ({"tags": {"x_": "y" * 257}}, "", InvalidInput, "at most 256"),
        ({"tags": {"rank": "many"}}, "", InvalidInput, "is no BIGINT"),
        ({"tags": {}}, "", InvalidInput, "action_params.tags"),
        ({"tags": {"x_": None}}, "", InvalidInput, "action_params.tags.x_"),
        ({}, "", InvalidInput, "action_params.tags"),
        ({"tags": {"x_": "1"}}, "car > 1) or (1=1", SqlError, "is not valid"),
        ({"tags": {"x_": "1"}}, "car > 1; drop table x", SqlError, "SQL0"),
        ({"tags": {"x_": "1"}}, "fkey in (select fkey from read_csv('/etc/passwd'))", SqlError,
         "SQL0"),
        ({"rule": {"action": "regex", "existingField": "filename", "newField": "x_",
                   "regexPattern": "(?=a)"}}, "", InvalidInput, "RE2"),
        ({"rule": {"action": "regex", "existingField": "filename", "newField": "x_"}}, "",
         InvalidInput, "needs a regexPattern"),
        ({"rule": {"action": "split", "existingField": "filename", "newField": "x_"}}, "",
         InvalidInput, "needs a delimiter"),
        ({"rule": {"action": "split", "existingField": "filename", "newField": "x_",
                   "delimiter": "/", "fieldNo": 0}}, "", InvalidInput, "fieldNo"),
        ({"rule": {"action": "regex", "existingField": "filenam", "newField": "x_",
                   "regexPattern": "a"}}, "", UnknownName, "did you mean filename"),
        ({"rule": {"action": "regex", "existingField": "filename", "newField": "car",
                   "regexPattern": "a"}}, "", InvalidInput, "what scans read"),
        ({"rule": {"action": "regex", "existingField": "filename", "newField": "x_",
                   "regex_id": "none"}}, "", NotFound, "no regex named 'none'"),
    ],
)  # fmt: skip
def test_what_cannot_be_kept(
    unchanged: Workspace, parameters: Any, condition: str, error: type[FramesiftError], words: str
) -> None:
    """Refused when it is sent, in one line, and nothing is kept."""
    with pytest.raises(error) as caught:
        policy(unchanged, parameters, condition)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert policy_records.listed(unchanged.records) == []


def test_a_column_that_comes_later(workspace: Workspace) -> None:
    """A policy may name a tag that is added before it runs; until then its runs fail."""
    created = policy(workspace, {"tags": {"x_": "1"}}, "later = 'yes'")
    with pytest.raises(SqlError, match="LATER"):
        done(workspace, created)
    tags.add_tag(workspace.whole_catalog, "later", "text")
    assert counts(done(workspace, created)) == (0, 0, 0, 0, 0)


@pytest.mark.wide
def test_values_of_a_csv_file(own_source: Workspace, tmp_path: Path) -> None:
    """Every row is imported or counted as failed; a column that is no tag is left out."""
    workspace = own_source
    tags.add_tag(workspace.whole_catalog, "bus", "text", "Open")
    tags.add_tag(workspace.whole_catalog, "tree", "integer")
    names = [name for (name,) in values(workspace, "filename", where="where filetype='png'")]
    lines = [
        "objectname,Bus,tree,stop_sign,car,rain_dirt",
        f"a2d2/{names[0]},1, 3 ,0,5,0\r",
        f"a2d2/{names[1]},,,0,5,0",  # neither value
        f'{names[2]},"a, b",-7,0,5,0',  # the object's name alone
        f"a2d2/{names[3]},1,3,0",  # too few
        f"a2d2/{names[4]},1,3,0,5,0,6",  # too many
        f"a2d2/{names[5]},1,many,0,5,0",  # no number
        f"a2d2/{names[6]},{'x' * 257},1,0,5,0",  # too long
        "a2d2/nothing.png,1,1,0,5,0",
        "",
        f"a2d2/{names[0]},2,2,0,5,0",  # named before
    ]
    (tmp_path / "source" / "labels.csv").write_text("\ufeff" + "\r\n".join(lines) + "\r\n")
    parameters = {
        "agent": "ImportTags", "source_connection": "a2d2", "tag_file_path": "a2d2/labels.csv",
        "tag_file_type": "csv",
    }  # fmt: skip
    created = policy(workspace, parameters, "datasource='a2d2' ", action="IMPORT_TAGS")
    result = done(workspace, created, batch_rows=2)
    # Six rows, and three columns that no policy may set.
    assert (result.state, counts(result)) == ("complete", (12, 12, 3, 9, 0))
    rows = {name: stored for name, *stored in values(workspace, "filename", "bus", "tree")}
    assert [rows[name] for name in names[:7]] == [
        ["1", "3"], [None, None], ["a, b", "-7"], [None] * 2, [None] * 2, [None] * 2, [None] * 2,
    ]  # fmt: skip
    # Only what the condition finds is set.
    changed = policy_records.change(workspace.records, "p", "anna", {"condition": "size < 0"})
    assert counts(done(workspace, changed)) == (12, 12, 0, 12, 0)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("a2d2/../labels.csv", "expected a file of connection a2d2"),
        ("/etc/passwd", "expected a file of connection a2d2"),
        ("a2d2//etc/passwd", "expected a file of connection a2d2"),
        ("a2d2/./x", "expected a file of connection a2d2"),
        ("a2d2/", "expected a file of connection a2d2"),
    ],
)
def test_tag_files_lie_in_their_connection(unchanged: Workspace, path: str, words: str) -> None:
    """No path leads out of it."""
    parameters = {"source_connection": "a2d2", "tag_file_path": path, "tag_file_type": "csv"}
    with pytest.raises(InvalidInput, match=words):
        policy(unchanged, parameters, action="IMPORT_TAGS")


def test_what_is_no_tag_file(workspace: Workspace) -> None:
    """Refused whole, in words."""
    tags.add_tag(workspace.whole_catalog, "bus", "text")
    parameters = {"source_connection": "a2d2", "tag_file_path": "a2d2/x.csv"}
    created = policy(workspace, parameters, action="IMPORT_TAGS")
    report = Report(workspace.records, policy_runs.begin(workspace.records, created).id)
    for content, words in (
        (b"", "is empty"),
        (b"\xff\xfe\x00", "cannot be read as CSV"),
        (b"name,car\nx,1\n", "none of the tag file's 1 columns"),
        (b"name,bus,BUS\nx,1,2\n", "columns 2 and 3 have one name"),
        (b'name,bus\n"' + b"x" * 200_000 + b'",1\n', "field larger than field limit"),
    ):
        with pytest.raises(InvalidInput, match=words):
            csv_import.run(
                workspace.whole_catalog, workspace.whole_catalog, created, content, report
            )


@pytest.mark.wide
def test_extractors_read_what_is_found(workspace: Workspace) -> None:
    """Frames of the condition get the family's tags; other files are skipped, others untouched."""
    parameters = {"agent": "image", "extract_tags": ["image_brightness"]}
    created = policy(workspace, parameters, "filename like '%front_center%'", action="DEEPINSPECT")
    result = done(workspace, created)
    rows = values(workspace, "filename", "image_brightness")
    read = {name for name, value in rows if value is not None}
    assert read == {n for n, _ in rows if "/camera/cam_front_center" in n and n.endswith(".png")}
    total = sum("front_center" in name for name, _ in rows)
    assert counts(result) == (total, total, len(read), 0, total - len(read))
    (family,) = [each for each in families.families(workspace.catalog) if each.name == "image"]
    assert family.columns == {"image_brightness": "DOUBLE"}  # what was asked for, and no more
    run_extractor(workspace.whole_catalog, recorded_source(workspace.records, "a2d2"), Image())
    contrasts = dict(values(workspace, "filename", "image_contrast"))
    assert all(contrasts[name] is not None for name in read)  # they were still to be read
    for agent, fields, words in (("none", [], "extractor"), ("image", ["vin"], "tag of agent")):
        with pytest.raises(UnknownName, match=words):
            policy(workspace, {"agent": agent, "extract_tags": fields}, action="DEEPINSPECT")


def tagged(workspace: Workspace) -> int:
    """Files that have the tag of the runs below."""
    with workspace.catalog.reading() as cursor:
        columns = cursor.execute(
            "SELECT count(*) FROM duckdb_columns() WHERE column_name = 'x_' AND "
            "schema_name = 'main'"
        ).fetchall()
    return len(values(workspace, "fkey", where="where x_ = '1'")) if columns[0][0] else 0


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Runs here take a while between two batches."""
    heed = Report.heed

    def heed_slowly(report: Report) -> None:
        heed(report)
        time.sleep(0.2)

    monkeypatch.setattr(Report, "heed", heed_slowly)
    return monkeypatch


@pytest.mark.wide
def test_a_run_pauses_goes_on_and_is_killed_between_batches(
    workspace: Workspace, slow: pytest.MonkeyPatch
) -> None:
    """What it says it has done is what is there; killed while paused it goes no further."""
    created = policy(workspace, {"tags": {"x_": "1"}})
    store, records = workspace.whole_catalog, workspace.records
    run = policy_runs.begin(records, created)
    ended: list[PolicyRun] = []
    work = work_of(workspace, created, batch_rows=1)
    thread = threading.Thread(
        target=lambda: ended.append(runs.perform(store, records, created, run, work))
    )
    thread.start()

    def now() -> PolicyRun:
        run = runs.newest(store, records, created)
        assert run is not None
        return run

    def has_done_more(than: int) -> bool:
        return now().completed > than

    looks: list[int] = []
    requested_state = policy_runs.requested_state

    def looked(*of: Any) -> Any:
        looks.append(1)
        return requested_state(*of)

    slow.setattr(policy_runs, "requested_state", looked)
    try:
        for _ in range(2):
            before = now().completed
            eventually(partial(has_done_more, before))
            runs.ask(store, records, created, "pause")
            eventually(lambda: now().state == "paused")
            done_so_far = now().completed
            assert tagged(workspace) == done_so_far < now().total
            with pytest.raises(InvalidInput, match="running"):
                policy_runs.begin(records, created)
            for change in (
                lambda: policy_records.remove(records, "p"),
                lambda: policy_records.change(records, "p", "anna", {"condition": ""}),
            ):
                with pytest.raises(InvalidInput, match="policy 'p' is running"):
                    change()
            looks.clear()
            eventually(lambda: len(looks) > 1)  # it has looked whether it may go on
            assert (now().state, now().completed) == ("paused", done_so_far)
            assert tagged(workspace) == done_so_far
            runs.ask(store, records, created, "resume")
        runs.ask(store, records, created, "kill")
    finally:
        policy_runs.want(records, run.id, "kill")
        thread.join(300)
    assert [each.state for each in ended] == ["killed"]
    assert 2 <= now().completed == tagged(workspace) < now().total
    for action in ("pause", "resume", "kill"):
        with pytest.raises(InvalidInput, match="not running"):
            runs.ask(store, records, created, action)
    slow.undo()
    assert done(workspace, created).completed == tagged(workspace) == now().total


_SLOW = """
import sys, time
from api.cli.main import main
from pipeline.policies.report import Report
heed = Report.heed
Report.heed = lambda report: (heed(report), time.sleep(0.2))
sys.exit(main())
"""


@pytest.mark.wide
def test_a_run_whose_process_dies(workspace: Workspace) -> None:
    """SIGKILL leaves whole batches, the run counts as failed, and the next one does all of it."""
    created = policy(workspace, {"tags": {"x_": "1"}})
    store, records = workspace.whole_catalog, workspace.records
    words = ["policy", "run", "p"]
    slow = ["-c", _SLOW, *words, "--batch-rows", "1"]
    process = Forked(slow, environment(workspace.home))

    def now() -> PolicyRun | None:
        return runs.newest(store, records, created)

    eventually(lambda: (run := now()) is not None and run.completed >= 2)
    process.send_signal(signal.SIGKILL)
    process.wait()
    dead = now()
    assert dead is not None
    assert (dead.state, dead.error) == ("failed", "its process ended without finishing")
    assert dead.completed <= tagged(workspace) <= dead.completed + 1 < dead.total
    run = framesift(workspace.home, *words, "--json")
    assert run.returncode == 0, run.stderr
    assert f'"completed": {tagged(workspace)}' in run.stdout
    assert tagged(workspace) == dead.total
    assert [each.state for each in runs.history(store, records, created)] == ["complete", "failed"]


@pytest.mark.parametrize(
    ("schedule", "after", "following"),
    [
        ({"minute": "*/5"}, "2026-11-21T17:01", "2026-11-21T17:05"),
        ({"minute": 18, "hour": 12}, "2026-11-21T12:18", "2026-11-22T12:18"),
        ({"dayOfWeek": 4, "hour": 5, "minute": 15}, "2026-11-21T00:00", "2026-11-26T05:15"),
        ({"dayOfWeek": "sun"}, "2026-11-21T00:00", "2026-11-22T00:00"),
        ({"dayOfWeek": 7, "hour": 3}, "2026-11-21T00:00", "2026-11-22T03:00"),
        ({"dayOfMonth": 31}, "2026-11-21T00:00", "2026-12-31T00:00"),
        ({"dayOfMonth": "1", "dayOfWeek": "1"}, "2026-11-21T00:00", "2026-11-23T00:00"),
        ({"month": 2, "dayOfMonth": 29}, "2026-11-21T00:00", "2028-02-29T00:00"),
        ({"month": 2, "dayOfMonth": 30}, "2026-11-21T00:00", None),
        ({"hour": 2, "minute": 30, "timezone": "Europe/Berlin"}, "2026-11-21T00:00",
         "2026-11-21T01:30"),
        ({"minute": "0,30", "hour": "8-9"}, "2026-11-21T08:00", "2026-11-21T08:30"),
        ({"hour": 2, "minute": 30}, "2026-11-21T17:40", "2026-11-22T02:30"),
        ({"hour": "20-22", "minute": 5}, "2026-11-21T17:40", "2026-11-21T20:05"),
        ({"dayOfMonth": "*/2", "dayOfWeek": 2}, "2026-11-21T00:00", "2026-12-01T00:00"),
        ({"dayOfMonth": 31, "hour": 3}, "2026-11-30T04:00", "2026-12-31T03:00"),
    ],
)  # fmt: skip
def test_schedules(schedule: dict[str, Any], after: str, following: str | None) -> None:
    """The first time after another, in UTC, as cron has it; due from then on."""
    moment = datetime.fromisoformat(after)
    time = next_time(schedule, moment)
    assert time == (None if following is None else datetime.fromisoformat(following))
    if time is not None:
        assert is_due(schedule, moment, time)
        assert not is_due(schedule, time, time)


def test_a_clock_that_was_wrong_holds_no_schedule() -> None:
    """Runs that lie ahead do not count: what is due now is due."""
    at, ahead = datetime.fromisoformat("2026-11-21T08:00"), timedelta(days=400)
    assert last_of([at - timedelta(hours=2), at + ahead], at) == at - timedelta(hours=2)
    assert last_of([at - timedelta(hours=2), at, at + timedelta(seconds=1)], at) == at
    assert is_due({"minute": 0}, last_of([at + ahead], at), at)
    assert not is_due({"minute": 30}, last_of([at + ahead], at), at)


@pytest.mark.parametrize(
    "schedule",
    ["LATER", "", None, {}, {"minute": 60}, {"minute": -1}, {"minute": True}, {"hour": "x"},
     {"month": 0}, {"minute": "*/0"}, {"minute": "5-1"}, {"minute": ""}, {"second": 1},
     {"hour": 1, "timezone": "Mars"}, {"hour": 1, "timezone": "../../etc"}, {"minute": [1]},
     {"minute": "1" * 99}],
)  # fmt: skip
def test_what_is_no_schedule(schedule: object) -> None:
    """Refused in words."""
    with pytest.raises(InvalidInput, match="schedule"):
        check_schedule(schedule)
