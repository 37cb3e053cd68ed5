"""docs/how-to-add: what its pages show is added, and works."""

import re
import sys
import types
import zipfile
from pathlib import Path

import numpy as np
import pytest

from catalog.errors import BadFile
from catalog.records.store import RecordStore
from ingest.sources import schemes
from ingest.sources.local_folder import LocalFolder
from pipeline.jobs import registry
from pipeline.jobs.follow import cancel, refresh
from pipeline.jobs.queue import JobQueue
from pipeline.jobs.request import JobPaths, Stage
from pipeline.jobs.submit import JobOrder, Plan, submit
from query.db2 import dialect, functions, semantics
from query.db2.names import Views
from query.question import operators
from query.run.read_only import check, parse
from query.sets import draw, methods
from query.sets.strata import Strata
from sample_data.regenerate import COMMITTED_SET
from tests.api.servers import wait_until
from tests.slurm_cluster import slurm_cluster

SCHEMA = {"t": {"a": "INTEGER"}}
PAGES = Path(__file__).parents[1] / "docs" / "how-to-add"


def blocks(page: str) -> list[str]:
    """The Python of a page, block by block."""
    text = (PAGES / page).read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def module(page: str, name: str, patch: pytest.MonkeyPatch) -> types.ModuleType:
    """The first block of a page as the module it is."""
    made = types.ModuleType(name)
    patch.setitem(sys.modules, name, made)
    exec(compile(blocks(page)[0], name, "exec"), made.__dict__)
    return made


@pytest.mark.parametrize("row", blocks("db2-function.md"))
def test_functions_of_db2(row: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each row makes its function known to parser, check and types."""
    found: functions.Function = eval(f"({row})", functions.__dict__)
    name = found.name
    with pytest.raises(Exception, match="No authorized routine"):
        check(parse(f"select {found.example[0]} as v from t", SCHEMA), SCHEMA)
    monkeypatch.setitem(functions.FUNCTIONS, name, found)
    monkeypatch.setitem(functions.BY_NODE, found.node, found)
    monkeypatch.setitem(dialect.Db2.Parser.FUNCTIONS, name, dialect._call(name, found))
    query = parse(f"select {name}('20') as v from t", SCHEMA)
    check(query, SCHEMA)
    assert name in semantics.to_duckdb(query, Views(SCHEMA))


def test_an_operator() -> None:
    """The row is one of the table's, with a pattern as its neighbours have."""
    row: operators.Operator = eval(f"({blocks('condition-operator.md')[0]})", operators.__dict__)
    assert row.types == operators.OPERATORS["contains"].types
    assert row.pattern.format("x") == "%x"


def test_a_sampling_method() -> None:
    """Data and frames: two of each of three strata."""
    data, chosen, *_ = blocks("sampling-method.md")
    space = {**methods.__dict__, **draw.__dict__}
    exec(compile(data + "\n\n" + chosen, "each", "exec"), space)
    scenes = np.repeat([0, 1, 2], [5, 1, 4])
    space["strata_of"] = lambda *_: Strata(scenes, (("a",), ("b",), ("c",)))
    space["hashes_of"] = lambda _: np.arange(10, dtype=np.uint64)
    frames = types.SimpleNamespace(fetch=lambda _: (None, 0), classes={})
    drawn = space["_each"](frames, space["Each"](tag="scene", frames=2), 7)
    assert np.bincount(scenes[drawn.hashes.astype(int)]).tolist() == [2, 1, 2]
    assert drawn.report["achieved"] == 5


def test_a_kind_of_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A zip of a folder lists and gives what the folder does; names that lead out are problems."""
    folder = LocalFolder(COMMITTED_SET)
    keys = [file.key for file in folder.list()]
    archive = tmp_path / "drive.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as made:
        for key in keys[:20]:
            made.writestr(key, folder.read(key))
        made.writestr("../outside", b"")
    module("source-kind.md", "ingest.sources.zip_source", monkeypatch)
    row: dict[str, dict[str, str]] = {}
    exec(blocks("source-kind.md")[1], {}, row)
    monkeypatch.setattr(schemes, "ARCHIVES", row["ARCHIVES"])
    source = schemes.open_source(str(archive))
    assert [file.key for file in source.list()] == keys[:20]
    assert source.read(keys[3]) == folder.read(keys[3])
    assert source.read_range(keys[3], 5, 7) == folder.read(keys[3])[5:12]
    assert [problem.key for problem in source.problems()] == ["../outside"]
    archive.write_bytes(archive.read_bytes()[:-30])
    with pytest.raises(BadFile, match="changed while it was read"):
        source.read(keys[0])
    with pytest.raises(BadFile, match="no whole zip"):
        schemes.open_source(str(archive))


@pytest.mark.slurm
def test_a_job_backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a real Slurm: a job that ends well, one that is cancelled, one whose command fails."""
    module("job-backend.md", "slurm_example", monkeypatch)
    monkeypatch.setitem(registry.BACKENDS, "slurm", "slurm_example:SlurmBackend")
    with slurm_cluster(nodes=1, cpus=2) as config:
        monkeypatch.setenv("SLURM_CONF", str(config))
        records, queue = RecordStore(tmp_path / "records.sqlite"), JobQueue(tmp_path / "jobs")

        def ended(*command: str, end: bool = False) -> tuple[str, Path]:
            plan = Plan((Stage("say", (command,)),))
            job = submit(records, queue, JobOrder("x", "x", backend="slurm"), lambda _: plan)
            if end:
                wait_until(lambda: refresh(records, job).state != "pending")
                cancel(records, job)
            wait_until(lambda: refresh(records, job).state not in ("pending", "running"))
            job = refresh(records, job)
            return job.state, JobPaths(Path(job.paths["folder"])).log("say", 0)

        state, log = ended("echo", "hello")
        assert (state, log.read_text()) == ("done", "hello\n")
        assert ended("sleep", "60", end=True)[0] == "cancelled"
        assert ended("false")[0] == "failed"


def test_a_route() -> None:
    """What the page shows is what stands in the code."""
    files = ("api/schemas/tags.py", "api/http/routes/tags.py", "api/cli/commands/tags.py")
    root = PAGES.parents[1]
    for block, file in zip(blocks("route.md"), files, strict=False):
        assert block.strip() in (root / file).read_text(encoding="utf-8")
