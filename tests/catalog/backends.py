"""Catalogs in every place that a catalog can lie in, for the tests of the store's contract."""

import itertools
import shutil
from pathlib import Path
from uuid import uuid4

import pytest

from catalog.storage.location import CatalogLocation
from catalog.storage.postgres import Postgres
from catalog.storage.s3_prefix import S3Access, S3Prefix
from catalog.store import CatalogStore
from tests.ingest.s3_server import S3Server, moto
from tests.postgres_server import postgres

BACKENDS = ("sqlite-folder", "sqlite-s3", "postgres-folder", "postgres-s3")
"""Metadata and data."""

_WIDE = [pytest.param(backend, marks=pytest.mark.wide) for backend in BACKENDS]
EACH = [BACKENDS[0], _WIDE[-1]]
"""Parameters of most tests of the contract: both kinds of metadata, and both of data."""

WITH_MIXED = [BACKENDS[0], *_WIDE[1:]]
"""Also the other two: code that asks for one kind asks for the other nowhere near."""

_BUCKET = f"catalogs-{uuid4().hex[:8]}"
_numbers = itertools.count()


def new_prefix(server: S3Server) -> S3Prefix:
    """A prefix that nobody else uses."""
    client = server.client()
    if _BUCKET not in {bucket["Name"] for bucket in client.list_buckets()["Buckets"]}:
        client.create_bucket(Bucket=_BUCKET)
    return S3Prefix(_BUCKET, f"team/c{next(_numbers)}/", S3Access(server.endpoint))


def new_location(backend: str, folder: Path) -> CatalogLocation:
    """A place without a catalog; what is local lies in ``folder``."""
    metadata, _, data = backend.partition("-")
    return CatalogLocation(
        postgres().new() if metadata == "postgres" else folder / "catalog" / "catalog.sqlite",
        new_prefix(moto()) if data == "s3" else folder / "catalog" / "data",
    )


def clone(original: CatalogLocation, folder: Path) -> CatalogLocation:
    """A copy of a catalog that nobody has open, in a place of its own."""
    metadata: Path | Postgres
    data: Path | S3Prefix
    if isinstance(original.metadata, Postgres):
        metadata = postgres().new(str(original.metadata.keywords["dbname"]))
    else:
        metadata = folder / "catalog" / "catalog.sqlite"
        metadata.parent.mkdir(parents=True)
        shutil.copy(original.metadata, metadata)
    if isinstance(original.data, S3Prefix):
        data = new_prefix(moto())
        client = moto().client()
        for key, _ in original.data.objects():
            target = data.prefix + key.removeprefix(original.data.prefix)
            client.copy_object(
                Bucket=_BUCKET, Key=target, CopySource={"Bucket": _BUCKET, "Key": key}
            )
    else:
        data = folder / "catalog" / "data"
        shutil.copytree(original.data, data)
    return CatalogLocation(metadata, data)


def open_at(location: CatalogLocation, **options: float) -> CatalogStore:
    """The catalog at a place, made where there is none."""
    return CatalogStore(location, threads=1, **options)  # type: ignore[arg-type]


def variables(location: CatalogLocation, records: Path | Postgres) -> dict[str, str]:
    """The settings by which another process finds these stores."""
    variables_ = {
        "FRAMESIFT_CATALOG_METADATA": _text(location.metadata),
        "FRAMESIFT_CATALOG_DATA": str(location.data),
        "FRAMESIFT_RECORDS": _text(records),
    }
    if isinstance(location.data, S3Prefix):
        variables_["FRAMESIFT_CATALOG_S3_ENDPOINT"] = location.data.access.endpoint_url
    return variables_


def _text(database: Path | Postgres) -> str:
    if isinstance(database, Postgres):
        return postgres().url(str(database.keywords["dbname"]))
    return str(database)
