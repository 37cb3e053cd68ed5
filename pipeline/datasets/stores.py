"""The stores that datasets are made with."""

from dataclasses import dataclass

from catalog.lake.catalog import Catalog
from catalog.records.store import RecordStore


@dataclass(frozen=True)
class Stores:
    """Catalog and records that datasets are made of and recorded in."""

    catalog: Catalog
    records: RecordStore
