"""Examples of our own answers that no model describes: rows as text, exports, probes, figures."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from query.run.result_format import MEDIA_TYPES, Format, encoded

_FKEY = "local:a2d2:camera_lidar_semantic/scene/camera/cam_front_center/x.png"
_FRAME = {
    "fkey": _FKEY,
    "scene": "20260311_130314",
    "camera": "front_center",
    "frame_number": 120,
    "image_width": 1920,
    "image_height": 1208,
}
_CLASS = {
    "group": "front_center",
    "tag": "bicycle",
    "name": "Bicycle",
    "frames": 5,
    "pixels": 80267,
    "share": 0.00192,
    "share_where_present": 0.00692,
    "presence": 0.278,
}
_BIN = {"car_kind": "range", "car_low": 0.0, "car_high": 249737.5, "car_value": "", "frames": 18}
_SCORE = {"tag": "bicycle", "name": "Bicycle", "frames": 31, "share": 0.0012, "iou": 0.41}
_GAP = {
    "kind": "class",
    "value": "bicycle",
    "name": "Bicycle",
    "frames": 0,
    "catalog_frames": 212,
    "new_frames": 212,
    "sentence": "no Bicycle in split validation of city@1; 212 frames of the catalog have it",
    "question": '{"ranges": [{"tag": "bicycle", "lowest": 1}], "snapshot": 12}',
    "command": "framesift select --range bicycle=1: --at 12",
}
_CHANGE = {"fkey": _FKEY, "change": "moved", "before": "train", "after": "validation"}
_LISTED = {"fkey": _FKEY, "split": "train", "scene": "20260311_130314", "image": "/data/x.png"}


def in_rows(rows: Sequence[Mapping[str, Any]], csv: Format) -> dict[str, dict[str, Any]]:
    """Rows in each media type that rows have, as OpenAPI tells of it; bytes have no example.

    Args:
        rows: All with the same keys, none with null.
        csv: With a line of names, or as Spectrum Discover's.
    """
    table = pa.Table.from_pylist(rows)
    found: dict[str, dict[str, Any]] = {}
    for media_type, format_ in MEDIA_TYPES.items():
        if format_ == "json":
            found[media_type] = {"schema": {"type": "array"}, "example": list(rows)}
        elif format_ in ("csv", "ndjson"):
            text = b"".join(
                encoded(csv if format_ == "csv" else format_, table.schema, table.to_batches())
            )
            found[media_type] = {"schema": {"type": "string"}, "example": text.decode()}
        else:
            found[media_type] = {"schema": {"type": "string", "format": "binary"}}
    return found


def _rows(row: Mapping[str, Any]) -> Mapping[str, Any]:
    told = in_rows([row], "csv-named")
    return {kind: told[kind]["example"] for kind in ("text/csv", "application/x-ndjson")}


_EXAMPLES: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("get", "/healthz"): {"application/json": {"status": "ok"}},
    ("get", "/readyz"): {"application/json": {"status": "ready", "snapshot": 3}},
    ("get", "/metrics"): {
        "text/plain": "# HELP framesift_requests_total Requests answered.\n"
        "# TYPE framesift_requests_total counter\n"
        'framesift_requests_total{method="GET",route="/v1/classes",status="200"} 3.0\n'
    },
    ("get", "/v1/classes"): _rows(_CLASS),
    ("get", "/v1/statistics/histogram"): _rows(_BIN),
    ("get", "/v1/statistics/correlation"): _rows(_SCORE),
    ("get", "/v1/datasets/{name}/gaps"): _rows(_GAP),
    ("get", "/v1/datasets/{name}/diff"): _rows(_CHANGE),
    ("get", "/v1/frames"): _rows(_FRAME),
    ("post", "/v1/selections"): _rows({**_FRAME, "car": 18614, "bicycle": 0}),
    ("post", "/v1/sql"): _rows({"filename": "camera_lidar_semantic/x.png", "car": 18614}),
    ("get", "/v1/datasets/{name}/export"): {
        "text/csv; charset=utf-8": f"{','.join(_LISTED)}\n{','.join(_LISTED.values())}\n",
        "application/x-ndjson": f"{json.dumps(_LISTED)}\n",
        "text/plain; charset=utf-8": f"{_LISTED['image']}\n",
    },
    ("get", "/v1/jobs/{name}/files/{path}"): {
        "text/html": "<!doctype html>\n<title>train-bikes-7</title>\n"
    },
}
"""By method and path, of each media type."""


def fill_texts(method: str, path: str, operation: dict[str, Any]) -> None:
    """Give an operation's answer that went well the examples that there are of it."""
    for media_type, example in _EXAMPLES.get((method, path), {}).items():
        operation["responses"]["200"]["content"][media_type].setdefault("example", example)
