"""docs/how-to-add: what its pages show is added, and works."""

import json
import re
import sys
import textwrap
import types
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from catalog.errors import BadFile
from ingest.sources import schemes
from ingest.sources.local_folder import LocalFolder
from pipeline.manifest import Manifest
from query.db2 import dialect, functions, semantics
from query.db2.names import Views
from query.db2.read_only import check, parse
from query.question import operators
from query.sets import draw, methods
from query.sets.strata import Strata
from sample_data.regenerate import COMMITTED_SET
from tests.training.commands import SMALL, run_several_importing
from tests.training.drawn_frames import draw_frames, every_fourth, write_manifest
from training.merge_scores import merge
from training.validation.metrics.metric import ScoredFrame

SCHEMA = {"t": {"a": "INTEGER"}}
PAGES = Path(__file__).parents[1] / "docs" / "how-to-add"


def blocks(page: str, languages: str = "python") -> list[str]:
    """The Python of a page, or what is in one of these languages (a|b), block by block."""
    text = (PAGES / page).read_text(encoding="utf-8")
    found = re.findall(rf"^```(?:{languages})\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return list(found)


def module(page: str, name: str, patch: pytest.MonkeyPatch) -> types.ModuleType:
    """The first block of a page as the module it is."""
    module_ = types.ModuleType(name)
    patch.setitem(sys.modules, name, module_)
    exec(compile(blocks(page)[0], name, "exec"), module_.__dict__)
    return module_


def test_a_metric(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page's metric counts frames with a class that their truth lacks, in any order."""
    metric = module("metric.md", "strays", monkeypatch).Strays
    first, second = metric.empty(3), metric.empty(3)
    ids = np.zeros((2, 2), np.uint8)
    for matrix in ([[1, 2, 0], [0, 0, 0], [0, 0, 4]], [[4, 0, 0], [0, 0, 0], [0, 0, 0]]):
        frame = ScoredFrame(
            ids, ids, np.array(matrix), ids, ids.astype(np.int64), ids.astype(np.float32)
        )
        second.update(frame)
    first.merge(metric.from_state(second.state(), 3))
    assert first.result() == {"frames": [0, 1, 0]}


@pytest.mark.parametrize("row", blocks("db2-function.md"))
def test_functions_of_db2(row: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each row makes its function known to parser, check and types."""
    function: functions.Function = eval(f"({row})", functions.__dict__)
    name = function.name
    with pytest.raises(Exception, match="No authorized routine"):
        check(parse(f"select {function.example[0]} as v from t", SCHEMA), SCHEMA)
    monkeypatch.setitem(functions.FUNCTIONS, name, function)
    monkeypatch.setitem(functions.BY_NODE, function.node, function)
    monkeypatch.setitem(dialect.Db2.Parser.FUNCTIONS, name, dialect._call(name, function))
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
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as writer:
        for key in keys[:20]:
            writer.writestr(key, folder.read(key))
        writer.writestr("../outside", b"")
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


@pytest.mark.training
def test_a_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page's network is trained with merged classes, and validated by who names it alone."""
    (tmp_path / "my_nets.py").write_text(blocks("network.md")[0], encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{PAGES.parents[1]}")
    write_manifest(tmp_path / "manifest", tmp_path, every_fourth(draw_frames(tmp_path, 8)))
    place = ["--manifest", str(tmp_path / "manifest"), "--model_dir", str(tmp_path / "model")]
    classes = {"Ground": ["RD normal street"], "Vehicle": ["Car", "Bicycle"]}
    map_ = json.dumps({"classes": classes, "ignored": ["Sky"], "name": "two"})
    own = ["--model", "my_nets:two_scales"]
    train = ["--exec_mode", "train", *place, *SMALL, "--max_steps", "4", "--classes"]
    use = [*place, "--threads", "1", "--results_dir", str(tmp_path / "results"), "--exec_mode"]
    # A new process: PYTHONPATH is read as Python begins.
    trained, other, uncovered, refused, validated, predicted = run_several_importing(
        [*train, map_, *own],
        [*train, "a2d2-8", *own],
        [*train, '{"classes": {"Ground": ["Sky"]}}', *own],
        [*use, "evaluate"],
        [*use, "evaluate", *own],
        [*use, "predict", *own],
    )[0]
    assert trained.status == 0, trained.err
    assert "classes of two: Ground, Vehicle" in trained.out
    assert re.search(r"--classes two \(\w+\) there, a2d2-8 \(\w+\) here", other.error)
    assert "the label classes RD normal street, Car, Bicycle, which it neither" in uncovered.error
    assert "give --model my_nets:two_scales to have it built" in refused.error
    assert (validated.status, predicted.status) == (0, 0), validated.err + predicted.err
    report = merge(tmp_path / "results", 1, tmp_path / "report")
    assert report["classes"] == ["Ground", "Vehicle"]
    assert report["class_map"] == {"name": "two", "classes": classes, "ignored": ["Sky"]}
    labels = Manifest.read(tmp_path / "manifest").split("validation").frames["class_pixels"]
    sky, street, car, bicycle = np.sum(labels.to_pylist(), axis=0).tolist()
    assert np.sum(report["confusion_matrix"], axis=1).tolist() == [street, car + bicycle]
    assert report["ignored_pixels"] == sky
    picture = np.asarray(Image.open(tmp_path / "results" / "scene/label/003.png").convert("RGB"))
    drawn = {tuple(colour) for colour in picture.reshape(-1, 3).tolist()}
    assert drawn <= {(0xFF, 0, 0xFF), (0xFF, 0, 0)}


@pytest.mark.parametrize(
    ("page", "files"),
    [
        (
            "route.md",
            (
                "api/schemas/tags.py",
                "api/http/routes/tags.py",
                "api/cli/commands/tags.py",
                "framesift/tags.py",
            ),
        ),
        (
            "noun.md",
            (
                "api/schemas/stagings.py",
                "api/services/stagings.py",
                "api/http/routes/stagings.py",
                "framesift/stagings.py",
                "api/cli/commands/staging/stagings.py",
            ),
        ),
        (
            "job-backend.md",
            (
                "pipeline/jobs/backends/lsf/settings.py",
                *["pipeline/jobs/backends/lsf/dialect.py"] * 4,
                "pipeline/jobs/backends/lsf/words.sh",
                "pipeline/jobs/backends/registry.py",
                "pipeline/jobs/backends/lsf/backend.py",
                "tests/pipeline/test_batch_backends.py",
            ),
        ),
    ],
)
def test_what_stands_in_the_code(page: str, files: tuple[str, ...]) -> None:
    """What the pages of a route, a noun and a backend show is what stands in the code."""
    for block, file in zip(blocks(page, "python|sh"), files, strict=True):
        lines = textwrap.dedent((PAGES.parents[1] / file).read_text("utf-8"))
        assert block in lines or textwrap.indent(block, "    ") in lines, block


def test_a_job_option() -> None:
    """The row that the page shows stands in the code."""
    (row,) = blocks("job-option.md")
    assert row.strip() in (PAGES.parents[1] / "pipeline/runs/orders.py").read_text(encoding="utf-8")
