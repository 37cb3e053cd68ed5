"""A model's scores of frames as tags of one family, and beside them its confusion cells."""

import hashlib
import re
from dataclasses import dataclass

import pyarrow as pa

from catalog.errors import InvalidInput
from catalog.lake import views as discover_views
from catalog.lake.catalog import WritableCatalog
from catalog.lake.connection import LAKE
from catalog.lake.schema import FILES, FRAME_TAGS, LABELLED
from catalog.tags import confusion_cells
from catalog.tags.confusion_cells import SCORES, ScoredModel, scored_models
from catalog.tags.families import NAME_CHARACTERS, define, put_rows, table_of

_NO_CELLS = pa.table(
    {
        **{name: pa.array([], pa.string()) for name in ("fkey", "truth", "predicted")},
        "pixels": pa.array([], pa.int32()),
    }
)

_FAMILY = "scores_"
_LONGEST = NAME_CHARACTERS - len("_uncertainty")
_DIGEST = 8
"""Digits of a digest that tells names apart that would be one."""


@dataclass(frozen=True, slots=True)
class WrittenScores:
    """Counts of a write."""

    scored: ScoredModel
    """The model, as it is now in the catalog."""
    scores: tuple[str, ...]
    """What was written: some of SCORES."""
    frames: int
    """Frames whose scores were written."""
    unknown: int
    """Frames that the catalog does not have."""
    unlabelled: int
    """Frames without a label among those that were written."""
    cells: int
    """Cells of confusion matrices; of frames that were only predicted, classes found."""


def write_scores(
    store: WritableCatalog, model: str, sha256: str, scores: pa.Table, cells: pa.Table | None
) -> WrittenScores:
    """Make scores of frames tags of a model, and keep what it took for what, in one commit.

    A frame's former scores are replaced. Those of other weights of the model go, of every frame.

    Args:
        model: The model's name.
        sha256: Digest of its weights.
        scores: fkey, and some of SCORES.
        cells: fkey, truth, predicted (class tags), pixels. Where truth is null, nothing was
            compared with it: such cells replace such ones alone, and a frame that has others keeps
            them. None where nothing is known, and what was known of the frames stays.

    Raises:
        InvalidInput: Another model's tags have these names, or an fkey comes twice.
    """
    prefix = _prefix(model)
    scored = ScoredModel(model, _FAMILY + prefix, prefix, sha256)
    names = {name: f"{prefix}_{name}" for name in SCORES if name in scores.column_names}
    rows = scores.select(["fkey", *names]).rename_columns(["fkey", *names.values()])
    with store.writing(f"scores of model {model}", author="scores") as connection:
        known, is_first = scored_models(connection), not confusion_cells.tables(connection)
        for other in known.values():
            if other.family == scored.family and other.model != model:
                raise InvalidInput(
                    f"model {model}: the tags of model {other.model} have the names that its "
                    f"scores would have; drop those first: framesift tags drop {other.family}"
                )
        define(connection, scored.family, dict.fromkeys(names.values(), "DOUBLE"))
        if model in known and known[model].sha256 != sha256:
            connection.execute(f"DELETE FROM {LAKE}.main.{table_of(scored.family)}")
            confusion_cells.forget(connection, scored.family)
        written = put_rows(connection, scored.family, rows)
        frames = rows.select(["fkey"])
        connection.register("given_frames", frames)
        unlabelled = connection.execute(
            f"SELECT count(*) FROM given_frames JOIN {LAKE}.main.{FRAME_TAGS} USING (fkey) "
            f"WHERE {LABELLED} = 0"
        ).fetchall()[0][0]
        connection.unregister("given_frames")
        if cells is None:
            frames, cells = frames.slice(0, 0), _NO_CELLS
        confusion_cells.make_tables(connection)
        compares = cells["truth"].null_count < max(len(cells), 1)
        connection.register("given_cells", cells)
        connection.register("given_frames", frames)
        connection.execute(
            "CREATE OR REPLACE TEMP TABLE scored_frames AS SELECT fkey FROM given_frames "
            f"SEMI JOIN {LAKE}.main.{FILES} USING (fkey)"
            + ("" if compares else f" WHERE fkey NOT IN ({confusion_cells.COMPARED})"),
            [] if compares else [model],
        )
        try:
            count = confusion_cells.put(connection, scored, "temp.scored_frames", "given_cells")
        finally:
            for name in ("given_cells", "given_frames"):
                connection.unregister(name)
        if is_first:  # what changes a view is loaded into memory as a whole
            discover_views.create(connection)
    return WrittenScores(
        scored, tuple(names), written.rows, len(written.unknown), unlabelled, count
    )


def _prefix(model: str) -> str:
    """The beginning of a model's tags; unlike that of every other name but for "-" and "_"."""
    text = re.sub(r"[^a-z0-9]", "_", model.lower())
    if not text[:1].isalpha():
        text = f"m_{text}"
    if text == model.replace("-", "_") and len(text) <= _LONGEST:
        return text
    digest = hashlib.sha256(model.encode()).hexdigest()[:_DIGEST]
    return f"{text[: _LONGEST - _DIGEST - 1]}_{digest}"
