"""/v1/tags/map: tags of how near the features of a map are."""

from functools import partial
from typing import Annotated, Any

from fastapi import Query, Request

from api.http.dependencies import CurrentSession
from api.http.disconnect_watcher import run_while_connected
from api.http.routing import Router
from api.http.rules import WRITE_ALL_ROWS
from api.http.sent_file import sent_file
from api.schemas.tags import MapJoinBody
from ingest.imports.options import LATITUDE, LONGITUDE

router = Router(prefix="/v1/tags/map", tags=["tags"], examples={"tag": "street"})

_MEDIA_TYPE = "application/geo+json"
"""Not GeoParquet: a few bytes of it may stand for any number of features."""
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
    names: dict[str, Any] = {"tag": tag, "latitude": latitude, "longitude": longitude}
    async with sent_file(request, {_MEDIA_TYPE: ".geojson"}) as file:
        joined = partial(session.tags.import_map, file, family, within, **names, is_sent=True)
        return await run_while_connected(request.receive, joined)
