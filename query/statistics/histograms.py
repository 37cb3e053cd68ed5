"""Histograms: frames by the values of one tag, or of two at once."""

from collections.abc import Sequence

import numpy as np

from catalog.lake.catalog import Catalog
from query.statistics.histogram_axis import make_axis, position_sql, value_sql
from query.statistics.histogram_report import AxisRequest, Histogram
from query.statistics.population import POPULATION, Frames, population


def histogram(
    store: Catalog,
    axes: Sequence[AxisRequest],
    frames: Frames | None = None,
) -> Histogram:
    """Count the frames by the values of one or two tags.

    Args:
        frames: Which frames; all of the newest snapshot when None.
    """
    with population(store, frames or Frames()) as members:
        binned = [make_axis(members, request) for request in axes]
        values: list[object] = []
        positions = ", ".join(
            f"{position_sql(axis, f'v{index}', values)} AS b{index}"
            for index, axis in enumerate(binned)
        )
        columns = ", ".join(
            f"{value_sql(axis.tag, axis.type)} AS v{i}" for i, axis in enumerate(binned)
        )
        rows = members.ask(
            f", chosen AS (SELECT {columns} FROM {POPULATION}),"
            f" placed AS (SELECT {positions} FROM chosen)"
            " SELECT *, count(*)::BIGINT AS frames FROM placed GROUP BY ALL",
            tuple(values),
        )
        counts = np.zeros([len(axis.bins) for axis in binned], dtype=np.int64)
        for row in rows:
            counts[tuple(row[f"b{index}"] for index in range(len(binned)))] = row["frames"]
        return Histogram(
            snapshot=members.snapshot,
            frames=int(counts.sum()),
            axes=tuple(binned),
            counts=counts.tolist(),
        )
