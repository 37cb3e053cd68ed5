"""The parts of a split: tags of few values by value, numbers by ranges, and what has none."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from api.schemas.new_datasets import NewDataset
from api.services.datasets.new_dataset import make_dataset, stores_of
from api.workspace import Workspace
from catalog.errors import UnknownName
from ingest.imports.tag_import import import_tags
from pipeline.datasets.slice_values import slice_values
from pipeline.manifest import Manifest
from query.question.question import Question
from tests.pipeline.synthetic import synthetic


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """15,000 drawn rows; of half of them the weather and the speed are known."""
    workspace = synthetic(tmp_path_factory.mktemp("many"))
    yield workspace
    workspace.close()


@pytest.mark.wide
def test_parts_by_tags(many: Workspace, tmp_path: Path) -> None:
    """Of the split's frames, in its order, as the catalog knows them now."""
    question = Question(where="car > 0", sample=400)
    request = NewDataset(name="few", question=question, split="train=0.5,validation=0.5")
    dataset = make_dataset(many, request)
    manifest = Manifest.read(Path(dataset.manifest))
    fkeys = manifest.split("validation").frames["fkey"].to_pylist()
    known, rain = fkeys[::2], [n % 3 == 0 for n in range(len(fkeys[::2]))]
    table = pa.table(
        {
            "fkey": known,
            "weather": ["rain" if wet else "dry" for wet in rain],
            "speed": np.arange(len(known), dtype=float),
        }
    )
    pq.write_table(table, tmp_path / "drive.parquet")
    import_tags(many.whole_catalog, tmp_path / "drive.parquet", "drive")
    parts = slice_values(stores_of(many), manifest, "validation", ["speed", "weather", "camera"])
    assert parts.column_names == ["speed", "weather", "camera"]
    assert len(parts) == len(fkeys)
    weather = parts["weather"].to_pylist()
    assert weather[::2] == ["rain" if wet else "dry" for wet in rain]
    assert set(weather[1::2]) == {"unknown"}
    speeds = parts["speed"].to_pylist()[::2]
    assert len(set(speeds)) == 4
    quarter = len(known) / 4
    assert all(abs(speeds.count(one) - quarter) <= 1 for one in set(speeds))
    assert speeds[0].startswith("0 to ")
    every = slice_values(stores_of(many), manifest, "validation", ["all"])
    assert "weather" in every.column_names
    assert "speed" not in every.column_names
    assert "car" not in every.column_names
    six = make_dataset(
        many, NewDataset(name="six", question=question.model_copy(update={"sample": 6}))
    )
    few = slice_values(stores_of(many), Manifest.read(Path(six.manifest)), "all", ["all"])
    assert few.column_names
    assert all(len(set(few[name].to_pylist()) - {"unknown"}) < 6 for name in few.column_names)
    with pytest.raises(UnknownName, match="unknown column 'wether'"):
        slice_values(stores_of(many), manifest, "validation", ["wether"])
