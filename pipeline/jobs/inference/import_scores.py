"""Scores of frames by a validation or a prediction, brought into the catalog."""

import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from catalog.errors import InvalidInput, StorageError
from catalog.lake.catalog import WritableCatalog
from catalog.records.tables import Job
from catalog.tags.confusion_cells import SCORES
from catalog.tags.model_scores import WrittenScores, write_scores
from pipeline.jobs.request import JobPaths

_SAYS_MODEL = {"validate": "report.json", "predict": "metrics.json"}
"""The file of a job by its kind that says which model it is of."""

_CELLS = ("fkey", "truth", "predicted", "pixels")
_NAME = pa.dictionary(pa.int32(), pa.string())
_NO_CELLS = pa.schema(
    {"fkey": _NAME, "truth": pa.string(), "predicted": _NAME, "pixels": pa.int32()}
).empty_table()


def import_scores(store: WritableCatalog, job: Job) -> WrittenScores:
    """Write the scores of a job's frames, and what the model took for what in each.

    A prediction knows no truth: of its frames, what was taken for each class.

    Args:
        store: The catalog.
        job: The validation or prediction, as it stands now.

    Raises:
        InvalidInput: The job is none that is done.
        StorageError: Its files cannot be read.
        CatalogBusy: The write lock was not free in time.
    """
    if job.kind not in _SAYS_MODEL or job.state != "done":
        raise InvalidInput(
            f"job {job.name}: is of kind {job.kind}, and {job.state}; scores come from a "
            "validation or a prediction that is done"
        )
    report = JobPaths(Path(job.paths["folder"])).report
    files = [report / name for name in (_SAYS_MODEL[job.kind], "frame_scores.parquet")]
    try:
        document = json.loads(files[0].read_text(encoding="utf-8"))
        scores = pq.read_table(files[1])
        classes = list(document.get("predicted_pixels", ()))  # of a prediction
        if job.kind == "validate":
            cells = pq.read_table(report / "frame_cells.parquet", columns=[*_CELLS])
        else:
            cells = _predicted_cells(scores, classes)
        model = document["model"]
        name, sha256 = str(model["name"]), str(model["sha256"])
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        raise StorageError(f"job {job.name}: its report cannot be read: {error}") from error
    known = [
        column
        for column in SCORES
        if column in scores.column_names
        and column not in classes
        # One that no frame has was not asked for: an earlier validation's stays.
        and scores[column].null_count < max(len(scores), 1)
    ]
    return write_scores(store, name, sha256, scores.select(["fkey", *known]), cells)


def _predicted_cells(scores: pa.Table, classes: Sequence[str]) -> pa.Table:
    """The pixels that were taken for each class, as cells without truth."""
    fkeys = scores["fkey"].combine_chunks().dictionary_encode()
    parts = [_NO_CELLS]
    for tag in classes:
        pixels = scores[tag].combine_chunks().cast(pa.int32())
        has = pc.greater(pixels, 0)
        pixels = pixels.filter(has)
        columns = [
            fkeys.filter(has),
            pa.nulls(len(pixels), pa.string()),
            pa.repeat(tag, len(pixels)).dictionary_encode(),
            pixels,
        ]
        parts.append(pa.Table.from_arrays(columns, names=list(_CELLS)).cast(_NO_CELLS.schema))
    return pa.concat_tables(parts)
