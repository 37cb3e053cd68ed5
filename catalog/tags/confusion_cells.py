"""Confusions of models in each frame: a row for each cell of a frame's confusion matrix.

    scored_models      a row for each model whose scores were imported: its tag family, and which
                       weights they are of
    confusion_cells    fkey, model, truth and prediction (class tags), pixels (never 0); truth is
                       null in a frame that was predicted and not validated

A frame has 40 to 200 of the 1,444 cells of 38 classes. They lie in order of model and cell, so that
a question about one cell reads some row groups of one Parquet file, and not all.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import duckdb

from catalog.lake.connection import LAKE
from catalog.lake.cursor import Cursor
from catalog.lake.schema import CONFUSION_CELLS

if TYPE_CHECKING:
    import pyarrow as pa

SCORED_MODELS = "scored_models"

SCORES = ("accuracy", "disagreement", "loss", "margin", "miou", "uncertainty")
"""Scores that a model may have of a frame, each a number."""

_CELLS = {
    "fkey": "VARCHAR",
    "model": "VARCHAR",
    "truth": "VARCHAR",
    "predicted": "VARCHAR",
    "pixels": "INTEGER",
}
_MODELS = {"model": "VARCHAR", "family": "VARCHAR", "prefix": "VARCHAR", "sha256": "VARCHAR"}


COMPARED = f"SELECT fkey FROM main.{CONFUSION_CELLS} WHERE model = ? AND truth IS NOT NULL"
"""Of the fkeys whose prediction by a model was compared with truth."""


@dataclass(frozen=True, slots=True)
class ScoredModel:
    """A model whose scores are in the catalog."""

    model: str
    """Its name."""
    family: str
    """The tag family that they are."""
    prefix: str
    """What its tags begin with: prefix "demo", score "miou", tag "demo_miou"."""
    sha256: str
    """Digest of the weights that they are of."""


def scored_models(cursor: Cursor) -> dict[str, ScoredModel]:
    """The models whose scores the cursor's snapshot has, by name."""
    if not _has_table(cursor, SCORED_MODELS):
        return {}
    rows = cursor.execute(
        f"SELECT {', '.join(_MODELS)} FROM main.{SCORED_MODELS} ORDER BY model"
    ).fetchall()
    return {row[0]: ScoredModel(*row) for row in rows}


def predicted_pixels(cursor: Cursor, model: str, fkeys: Sequence[str]) -> "pa.Table":
    """Pixels that a model took for each class in frames: fkey, predicted (class tag), pixels."""
    if not _has_table(cursor, CONFUSION_CELLS):
        import pyarrow as pa

        return pa.table({"fkey": [], "predicted": [], "pixels": []})
    return cursor.execute(
        f"SELECT fkey, predicted, sum(pixels)::BIGINT AS pixels FROM main.{CONFUSION_CELLS} "
        "WHERE model = ? AND fkey IN (SELECT unnest(?)) GROUP BY ALL ORDER BY ALL",
        [model, list(fkeys)],
    ).to_arrow_table()


def tables(cursor: Cursor) -> list[str]:
    """The table of cells, where there is one."""
    return [CONFUSION_CELLS] if _has_table(cursor, CONFUSION_CELLS) else []


def make_tables(connection: duckdb.DuckDBPyConnection) -> None:
    """Make the tables of models and cells that are not there, in the caller's transaction."""
    for table, columns in ((SCORED_MODELS, _MODELS), (CONFUSION_CELLS, _CELLS)):
        if not _has_table(connection, table):
            body = ", ".join(f"{name} {kind}" for name, kind in columns.items())
            connection.execute(f"CREATE TABLE {LAKE}.main.{table} ({body})")


def put(connection: duckdb.DuckDBPyConnection, scored: ScoredModel, frames: str, cells: str) -> int:
    """Set the cells of a model's frames inside the caller's transaction; how many there are.

    Args:
        connection: A writer's.
        scored: The model; the tables are made, and rows of other weights are gone already.
        frames: Table with the fkeys of frames that the catalog has; their former cells go.
        cells: Table with fkey, truth, predicted and pixels.
    """
    connection.execute(
        f"DELETE FROM {LAKE}.main.{CONFUSION_CELLS} "
        f"WHERE model = ? AND fkey IN (SELECT fkey FROM {frames})",
        [scored.model],
    )
    connection.execute(
        f"INSERT INTO {LAKE}.main.{CONFUSION_CELLS} BY NAME "
        f"SELECT c.fkey, ?::VARCHAR AS model, c.truth, c.predicted, c.pixels FROM {cells} AS c "
        f"SEMI JOIN {frames} AS f ON f.fkey = c.fkey ORDER BY truth, predicted, c.fkey",
        [scored.model],
    )
    connection.execute(f"DELETE FROM {LAKE}.main.{SCORED_MODELS} WHERE model = ?", [scored.model])
    connection.execute(
        f"INSERT INTO {LAKE}.main.{SCORED_MODELS} VALUES (?, ?, ?, ?)",
        [scored.model, scored.family, scored.prefix, scored.sha256],
    )
    row = connection.execute(
        f"SELECT count(*) FROM {cells} AS c SEMI JOIN {frames} AS f ON f.fkey = c.fkey"
    ).fetchone()
    return int(row[0]) if row else 0


def forget(connection: duckdb.DuckDBPyConnection, family: str) -> None:
    """Remove what belongs to a model's tag family inside the caller's transaction, if it is one."""
    for scored in scored_models(connection).values():
        if scored.family == family:
            for table in (CONFUSION_CELLS, SCORED_MODELS):
                connection.execute(
                    f"DELETE FROM {LAKE}.main.{table} WHERE model = ?", [scored.model]
                )


def _has_table(cursor: Cursor, table: str) -> bool:
    # Of duckdb_columns: a catalog limited to some rows has views in place of tables.
    return bool(
        cursor.execute(
            "SELECT 1 FROM duckdb_columns() WHERE database_name = ? AND schema_name = 'main' "
            "AND table_name = ? LIMIT 1",
            [LAKE, table],
        ).fetchall()
    )
