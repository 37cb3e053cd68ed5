"""The records' database: its schema, its rules, its errors."""

import random
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import func, inspect, select, text

from catalog.errors import (
    AlreadyExists,
    CatalogBusy,
    CatalogDamaged,
    InvalidInput,
    NotFound,
    StorageError,
)
from catalog.records.datasets import recorded_dataset, recorded_datasets
from catalog.records.jobs import recorded_job, recorded_jobs
from catalog.records.migrate import MIGRATIONS
from catalog.records.revision import NEWEST
from catalog.records.scans import last_scan, recorded_problems, replace_problems
from catalog.records.sources import add_source, recorded_source, recorded_sources
from catalog.records.store import RecordStore
from catalog.records.tables import (
    Base,
    Dataset,
    Job,
    Scan,
    ScanProblem,
    Source,
    Staging,
)
from catalog.records.tag_definitions import define_class_tags, recorded_class_names
from catalog.storage.postgres import Postgres
from catalog.storage.write_lock import write_lock
from catalog.values import Owner, Problem
from tests.postgres_server import postgres


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty database, made once."""
    path = tmp_path_factory.mktemp("records") / "records.sqlite"
    RecordStore(path).engine.dispose()
    return path


@pytest.fixture(scope="module")
def made_database() -> str:
    """Name of an empty database on PostgreSQL, made once."""
    database = postgres().new()
    RecordStore(database).engine.dispose()
    return str(database.keywords["dbname"])


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.wide)])
def records(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RecordStore]:
    """An empty database of the test's own."""
    location: Path | Postgres
    if request.param == "sqlite":
        location = Path(shutil.copy(request.getfixturevalue("template"), tmp_path))
    else:
        location = postgres().new(request.getfixturevalue("made_database"))
    store = RecordStore(location)
    yield store
    store.engine.dispose()


def source(name: str = "a", cluster: str = "c", datasource: str = "d") -> Source:
    return Source(name=name, uri="/a", platform="NFS", cluster=cluster, datasource=datasource)


def add_all(records: RecordStore, rows: Sequence[Base]) -> None:
    with records.session() as session:
        session.add_all(rows)


def dataset(name: str = "val", version: int = 1) -> Dataset:
    return Dataset(name=name, version=version, content_id="x", question={}, snapshot=1, frames=0,
                   splits={}, class_pixels={}, manifest="/m")  # fmt: skip


def test_the_newest_revision_is_alembic_s_head() -> None:
    """NEWEST names the one head of the migrations, and revisions sort as they follow."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    script = ScriptDirectory.from_config(config)
    assert script.get_heads() == [NEWEST]
    revisions = [revision.revision for revision in script.walk_revisions()]
    assert revisions == sorted(revisions, reverse=True)


def test_the_models_are_the_migrated_schema(records: RecordStore) -> None:
    """Alembic finds no difference between the models and a migrated database."""
    with records.engine.connect() as connection:
        assert connection.scalar(text("SELECT version_num FROM alembic_version")) == NEWEST
        context = MigrationContext.configure(connection, opts={"compare_server_default": True})
        assert compare_metadata(context, Base.metadata) == []
        unique = inspect(connection).get_unique_constraints("sources")
    assert sorted(rule["column_names"] for rule in unique) == [["cluster", "datasource"], ["name"]]


def test_sources_are_unique(records: RecordStore) -> None:
    """A name is taken once, and so is a cluster's datasource, because every fkey begins with it."""
    add_source(records, source())
    with pytest.raises(AlreadyExists, match="source 'a'"):
        add_source(records, source(datasource="e"))
    with pytest.raises(AlreadyExists, match="source a has it on cluster c"):
        add_source(records, source("b"))
    with pytest.raises(InvalidInput, match="unknown platform 'tape'"):
        add_source(records, Source(name="t", uri="", platform="tape", cluster="c", datasource="t"))
    add_source(records, source("b", datasource="e"))
    assert [entry.name for entry in recorded_sources(records)] == ["a", "b"]
    assert recorded_source(records, "b").datasource == "e"


def test_the_database_itself_refuses_doubles(records: RecordStore) -> None:
    """Where no check stands before it, a unique rule is InvalidInput in one line, undone whole."""
    doubled: list[list[Base]] = [
        [source(), source("b")],
        [dataset(), dataset("other"), dataset()],
        [Job(name="j", kind="train", backend="local", state="done", request={}) for _ in "ab"],
        [ScanProblem(source_id=77, scan_id=77, kind="orphan", key="k", reason="r")],
    ]
    for doubles in doubled:
        with pytest.raises(InvalidInput, match=r"constraint failed|violates") as error:
            add_all(records, doubles)
        assert "\n" not in str(error.value)
    assert [*recorded_sources(records), *recorded_datasets(records), *recorded_jobs(records)] == []


def test_a_page_of_datasets_reads_no_others(records: RecordStore) -> None:
    """Pages follow each other by name and version, also where the user does not see all of them."""
    with records.session() as session:
        session.add_all([dataset(name, n) for name in "cab" for n in range(1, 11)])
    expected = [(name, number) for name in "abc" for number in range(1, 11)]
    looked: list[Dataset] = []

    def as_seen(dataset: Dataset) -> Dataset | None:
        looked.append(dataset)
        return dataset if dataset.version % 3 == 1 else None

    limited = records.limited_to(Owner("u", "1"), as_seen)
    for view, pairs in (
        (records, expected),
        (limited, [(name, number) for name, number in expected if number % 3 == 1]),
    ):
        after: tuple[str, int] | None = None
        listed: list[tuple[str, int]] = []
        while page := recorded_datasets(view, after=after, limit=4):
            listed += [(one.name, one.version) for one in page]
            after = listed[-1]
        assert listed == pairs
        one_name = recorded_datasets(view, "b", after=("b", 4), limit=2)
        assert [one.version for one in one_name] == ([5, 6] if view is records else [7, 10])
    looked.clear()
    assert len(recorded_datasets(limited, limit=2)) == 2
    assert len(looked) == 4


def test_datasets_by_name_and_version(records: RecordStore) -> None:
    """A bare name is the newest version; versions that are none are not found, however written."""
    with records.session() as session:
        session.add_all([dataset(version=1), dataset(version=3), dataset("train", 2)])
    assert (
        recorded_dataset(records, "val").version == recorded_dataset(records, "val@").version == 3
    )
    assert recorded_dataset(records, "val@1").version == 1
    for name in ("val@2", "val@-1", "val@x", "val@²", "val@" + "9" * 30, "va", "", "@1"):
        with pytest.raises(NotFound, match=r"known: train, val|no such version, there are 1, 3"):
            recorded_dataset(records, name)


def test_few_of_many_names_are_told(records: RecordStore) -> None:
    """Of 40 datasets and sources an error names twelve, and what lists the others."""
    with records.session() as session:
        session.add_all(dataset(f"many-{number:02}") for number in range(40))
        session.add_all(source(f"s-{number:02}", datasource=f"{number}") for number in range(40))
    for look, prefix, way in (
        (recorded_dataset, "many", "framesift dataset list"), (recorded_source, "s", "source list"),
    ):  # fmt: skip
        with pytest.raises(NotFound) as refused:
            look(records, f"{prefix}-4")
        told = str(refused.value)
        assert f"{prefix}-00, " in told
        assert f"{prefix}-11 and 28 more; " in told
        assert (way in told, f"{prefix}-12" in told) == (True, False)


def test_missing_names(records: RecordStore) -> None:
    """What is not there is NotFound, saying what is known or what to do."""
    with pytest.raises(NotFound, match="framesift source add"):
        recorded_source(records, "a")
    add_source(records, source())
    with pytest.raises(NotFound, match="no source named 'b': known: a"):
        recorded_source(records, "b")
    with pytest.raises(NotFound, match="jobs list"):
        recorded_job(records, "j")


def test_scans_and_problems_go_with_their_source(records: RecordStore) -> None:
    """Problems come in the order they were met; removing a source removes its scans."""
    recorded = add_source(records, source())
    with records.session() as session:
        scans = [Scan(source_id=recorded.id, state="done") for _ in range(2)]
        session.add_all(scans)
        session.flush()
    met = [Problem("orphan", key, "r") for key in "zay"]
    replace_problems(records, recorded.id, scans[0].id, [], met)
    assert (
        recorded_problems(records, scan_id=scans[0].id)
        == recorded_problems(records, source_id=recorded.id)
        == met
    )
    now = Problem("bad_file", "a", "worse")
    replace_problems(records, recorded.id, scans[1].id, ["z"], [now])
    assert recorded_problems(records, scan_id=scans[0].id) == [met[2]]
    assert recorded_problems(records, source_id=recorded.id) == [met[2], now]
    last = last_scan(records, recorded.id)
    assert last is not None
    assert last.id == scans[1].id
    with records.session() as session:
        session.delete(session.get_one(Source, recorded.id))
    assert last_scan(records, recorded.id) is None
    assert recorded_problems(records, source_id=recorded.id) == []


def test_problems_of_some_files(records: RecordStore) -> None:
    """Keys that begin with one of these, exactly: no pattern, and case counts."""
    recorded = add_source(records, source())
    with records.session() as session:
        scan = Scan(source_id=recorded.id, state="done")
        session.add(scan)
        session.flush()
    keys = ["a/1", "a/2", "A/1", "a_1", "a%", "ab", "ü/1"]
    replace_problems(
        records, recorded.id, scan.id, [], [Problem("orphan", key, "r") for key in keys]
    )

    def found(*below: str) -> list[str]:
        return [
            problem.key
            for problem in recorded_problems(records, source_id=recorded.id, below=below)
        ]

    assert found("a/") == ["a/1", "a/2"]
    assert found("a_", "ü/", "none/") == ["a_1", "ü/1"]
    assert found("a%") == ["a%"]
    assert found("ab", "") == keys


def test_class_tags_keep_their_place(records: RecordStore) -> None:
    """A second source's classes come behind; a class that is known keeps its place."""
    define_class_tags(records, {"car": "Car", "sky": "Sky"})
    define_class_tags(records, {"truck": "Truck", "sky": "The sky", "car": "Car"})
    assert recorded_class_names(records) == {"car": "Car", "sky": "The sky", "truck": "Truck"}
    assert list(recorded_class_names(records)) == ["car", "sky", "truck"]


def test_an_exception_undoes_the_session(records: RecordStore) -> None:
    """A block that raises leaves nothing, and the next session works."""

    def add_and_fail() -> None:
        with records.session() as session:
            session.add(source())
            session.flush()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        add_and_fail()
    add_source(records, source())


@pytest.mark.parametrize(
    ("revision", "words"),
    [
        ("r9999", rf"later version .* \(schema r9999, this version reads up to {NEWEST}\)"),
        ("0019", r"none that this version of Framesift reads; .*\(framesift dataset export\)"),
        ("0001", r"none that this version of Framesift reads; .*\(framesift tags import\)"),
    ],
)
def test_other_schemas_are_refused(records: RecordStore, revision: str, words: str) -> None:
    """A later schema, and those of before, are CatalogDamaged saying how to go on."""
    with records.session() as session:
        session.execute(text("UPDATE alembic_version SET version_num = :r"), {"r": revision})
    with pytest.raises(CatalogDamaged, match=words):
        RecordStore(records.location)
    with records.session() as session:
        assert session.scalar(text("SELECT version_num FROM alembic_version")) == revision


def test_a_damaged_file(template: Path, tmp_path: Path) -> None:
    """Random bytes, and a file that is cut, are CatalogDamaged in one line."""
    path = tmp_path / "records.sqlite"
    whole = template.read_bytes()
    for damaged in (
        random.Random(1).randbytes(20_000),
        b"text",
        whole[: len(whole) // 2],
        b"x" + whole[1:],
    ):
        path.write_bytes(damaged)
        with pytest.raises(CatalogDamaged) as error:
            recorded_sources(RecordStore(path))
        assert str(error.value).startswith(str(path))
        assert "\n" not in str(error.value)


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    """A folder where the file should be is StorageError."""
    with pytest.raises(StorageError, match="cannot be"):
        RecordStore(tmp_path)


def test_what_only_postgresql_refuses(records: RecordStore) -> None:
    """A text longer than its column is InvalidInput in one line there; both keep large numbers."""
    long_name = source("n" * 200)
    if isinstance(records.location, Postgres):
        with pytest.raises(InvalidInput, match="too long") as error:
            add_source(records, long_name)
        assert "\n" not in str(error.value)
    add_all(records, [dataset()])
    large = 2**40
    staging = Staging(dataset_id=1, state="done", cache="/c", manifest="/m", files=1,
                      files_copied=1, bytes=large, bytes_copied=large)  # fmt: skip
    add_all(records, [staging])
    with records.session() as session:
        assert session.scalars(select(Staging.bytes)).all() == [large]


def test_a_session_is_alone(records: RecordStore) -> None:
    """What reads and then writes in one session meets no other session in between."""
    add_all(records, [dataset(version=1)])

    def add_version(_number: int) -> None:
        with records.session() as session:
            newest = session.scalar(select(func.max(Dataset.version)))
            session.add(dataset(version=(newest or 0) + 1))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add_version, range(24)))
    assert [entry.version for entry in recorded_datasets(records)] == list(range(1, 26))


def test_migrating_waits_for_another_process(tmp_path: Path) -> None:
    """While another process migrates, this one waits and then says who."""
    with write_lock(tmp_path / "records.migrating", 0), pytest.raises(CatalogBusy, match="process"):
        RecordStore(tmp_path / "records.sqlite", lock_wait_s=0.05)
    assert recorded_sources(RecordStore(tmp_path / "records.sqlite")) == []
