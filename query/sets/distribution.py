"""The distribution of frames, which others can be matched with."""

from collections.abc import Sequence

from catalog.errors import InvalidInput
from catalog.lake.catalog import Catalog
from query.frames.candidates import columns_of
from query.frames.sampling import hashes_of
from query.sets.draw import shares_of
from query.sets.stratifier import Stratifier


def distribution(
    store: Catalog,
    fkeys: Sequence[str],
    stratifiers: Sequence[str],
    at: int,
) -> dict[str, dict[str, float]]:
    """The shares that frames of a snapshot have, as the targets of a Match.

    Args:
        stratifiers: What to count by; camera and every class when empty.
    """
    with store.reading(at) as snapshot:
        relation = snapshot.relation
        by = list(stratifiers) or ["camera", *snapshot.classes]
        tags = [Stratifier.parse(text).tag for text in by]
        rows = columns_of(snapshot, relation, hashes_of(fkeys), tags).rows
        if not rows.num_rows:
            raise InvalidInput(f"none of the {len(fkeys):,} frames is in snapshot {at}")
        return shares_of(rows, by, snapshot.classes_and_groups)
