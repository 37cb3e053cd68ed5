"""Polars with the same frames, for query_speed; `make bench-setup` installs it in .venv-bench."""

from collections.abc import Sequence
from pathlib import Path

import duckdb
import polars as pl

from benchmarks.query_peers import Peer, Rows
from benchmarks.query_statements import SAMPLE


class Polars(Peer):
    """Polars, one data frame in memory."""

    name = "Polars"

    def __init__(self, data: Path) -> None:
        """Read the frames."""
        with duckdb.connect(str(data), read_only=True) as connection:
            self.frame = pl.DataFrame(connection.execute("FROM wide").to_arrow_table())

    def ranges(self) -> Rows:
        """A filter."""
        between = {"car": (10000, 20000), "bicycle": (3000, 5000), "pedestrian": (5000, 6000)}
        condition = (pl.col("front") == 1) & (pl.col("center") == 1)
        for tag, ends in between.items():
            condition &= pl.col(tag).is_between(*ends)
        chosen = self.frame.lazy().filter(condition).select("platform", "datasource", "filename")
        return list(chosen.collect().rows())

    def share(self) -> Rows:
        """Sum and count of a column."""
        tag = pl.col("rd_normal_street")
        share = tag.cast(pl.Int64).sum() / (tag.count() * 1920.0 * 1208 / 100)
        return list(self.frame.select(share).rows())

    def classes(self, tags: Sequence[str]) -> Rows:
        """Two sums of each column."""
        measures = self.frame.select(
            [
                measure.alias(f"{tag}{number}")
                for tag in tags
                for number, measure in enumerate(
                    ((pl.col(tag) > 0).sum(), pl.col(tag).cast(pl.Int64).sum())
                )
            ]
        )
        return list(measures.rows())

    def sample(self) -> Rows:
        """The lowest hashes of each camera."""
        drawn = (
            self.frame.lazy()
            .select("fkey", "camera", place=pl.col("fkey").hash(7))
            .with_columns(
                wanted=(SAMPLE * pl.len().over("camera") / pl.len()).round(),
                rank=pl.col("place").rank("ordinal").over("camera"),
            )
            .filter(pl.col("rank") <= pl.col("wanted"))
            .select("fkey", "camera")
        )
        return list(drawn.collect().rows())

    def rows(self, statement: str) -> Rows:
        """Polars has no need of SQL here."""
        raise NotImplementedError(statement)
