"""/db2whrest/v1/buckets: the ranges and groups that searches count by."""

from fastapi import Response

from api.discover.replies import discover_router, in_json
from api.http.openapi.discover import json_answer
from api.http.rules import READ
from catalog.errors import NotFound
from query.discover.buckets import BUCKETS

router = discover_router("db2whrest")


@router.get("/buckets/{bucket}", rule=READ, answers=json_answer(BUCKETS["sizerange"].document))
async def get_bucket(bucket: str) -> Response:
    """SizeRange, TimeSinceAccess or FileGroup."""
    definition = BUCKETS.get(bucket.lower())
    if definition is None:
        names = ", ".join(known.name for known in BUCKETS.values())
        raise NotFound("bucket", bucket[:40], f"there are {names}")
    return in_json(definition.document)
