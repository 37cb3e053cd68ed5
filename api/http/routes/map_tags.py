"""/v1/tags/map: tags of how near the features of a map are."""

import tempfile
from pathlib import Path
from typing import Annotated, Any

from fastapi import HTTPException, Query, Request
from fastapi.concurrency import run_in_threadpool

from api.http.dependencies import CurrentSession
from api.http.routing import Router
from api.http.rules import WRITE_ALL_ROWS
from api.schemas.tags import MapJoinBody
from catalog.errors import InvalidInput
from ingest.imports.options import LATITUDE, LONGITUDE

router = Router(prefix="/v1/tags/map", tags=["tags"], examples={"tag": "street"})

_MEDIA_TYPE = "application/geo+json"
_BRIDGE = {
    "type": "Feature",
    "properties": {},
    "geometry": {"type": "Point", "coordinates": [11, 48]},
}
_MAP: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            _MEDIA_TYPE: {
                "schema": {"type": "object"},
                "example": {"type": "FeatureCollection", "features": [_BRIDGE]},
            },
        },
    }
}


@router.post("", rule=WRITE_ALL_ROWS.but(body="map"), openapi_extra=_MAP)
async def post_map(
    request: Request,
    session: CurrentSession,
    family: Annotated[str, Query(description="Tag family to write.", examples=["bridge"])],
    within: Annotated[
        float, Query(allow_inf_nan=False, description="How near counts [m].", examples=[100])
    ],
    tag: Annotated[
        str | None,
        Query(description="near_<TAG> and <TAG>_distance_m; else the family's name."),
    ] = None,
    latitude: Annotated[str, Query(description="Tag of the latitude [degrees].")] = LATITUDE,
    longitude: Annotated[str, Query(description="Tag of the longitude [degrees].")] = LONGITUDE,
) -> MapJoinBody:
    """Tag the frames that were taken near features of a map, in WGS 84; one commit."""
    sent = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if sent != _MEDIA_TYPE:
        raise HTTPException(415, f"Content-Type '{sent[:80]}': expected {_MEDIA_TYPE}")
    # Not GeoParquet: a few bytes of it may stand for any number of features.
    body = await request.body()

    def joined() -> MapJoinBody:
        with tempfile.TemporaryDirectory(prefix="framesift-") as folder:
            file = Path(folder, "body.geojson")
            file.write_bytes(body)
            try:
                return session.tags.import_map(
                    file,
                    family,
                    within,
                    tag=tag,
                    latitude=latitude,
                    longitude=longitude,
                    is_sent=True,
                )
            except InvalidInput as error:
                if str(file) not in str(error):
                    raise
                raise InvalidInput(str(error).replace(str(file), "the body")) from error

    return await run_in_threadpool(joined)
