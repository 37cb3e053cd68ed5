"""/v1/tags/map: tags of how near the features of a map are."""

import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from fastapi import HTTPException, Query, Request
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, ConfigDict, Field

from api.http.dependencies import CurrentWorkspace
from api.http.routing import Router
from api.http.rules import WRITE_ALL_ROWS
from catalog.errors import InvalidInput
from ingest.imports.map_join import import_map
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


class MapJoinBody(BaseModel):
    """What a join with a map did."""

    model_config = ConfigDict(extra="forbid")

    features: int = Field(description="Of the map.", examples=[214])
    frames: int = Field(description="With a position, whose tags were written.", examples=[41277])
    near: int = Field(description="Those within the distance of a feature.", examples=[1630])
    columns: dict[str, str] = Field(
        description="The tags and their types.",
        examples=[{"near_bridge": "INTEGER", "bridge_distance_m": "DOUBLE"}],
    )


@router.post("", rule=WRITE_ALL_ROWS.but(body="map"), openapi_extra=_MAP)
async def post_map(
    request: Request,
    workspace: CurrentWorkspace,
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
                done = import_map(
                    workspace.catalog,
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
        return MapJoinBody(**asdict(done))

    return await run_in_threadpool(joined)
