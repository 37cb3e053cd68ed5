"""Attacks by files that are sent to be imported."""

import csv
import json

from tests.attacks.arena import Server
from tests.attacks.conftest import Watched
from tests.ingest.lying_parquet import lying_parquet

VALUES = "/v1/tags/values"
PARQUET = {"Content-Type": "application/vnd.apache.parquet"}


def test_a_parquet_whose_footer_lies(attacked: Server, watched: Watched) -> None:
    """Pages of 1.9 GB in 60 kB are refused, and the next import is taken."""
    with attacked.client("dataadmin") as client, watched(attacked, most_mb=2200):
        body = lying_parquet()
        assert len(body) < 68_000
        for _ in range(2):
            answer = client.post(VALUES, params={"family": "x"}, content=body, headers=PARQUET)
            assert answer.status_code == 400, answer.text
            assert "the body: reading it takes more than" in answer.text
        answer = client.post(
            VALUES, params={"family": "good"}, content="filename,good\nx,1\n",
            headers={"Content-Type": "text/csv"},
        )  # fmt: skip
        assert answer.status_code == 200, answer.text


def test_a_map_of_many_features(attacked: Server, watched: Watched) -> None:
    """15 MB of GeoJSON are read beside the server, which answers others meanwhile."""
    point = {"type": "Point", "coordinates": [11, 48]}
    feature = json.dumps({"type": "Feature", "properties": {}, "geometry": point})
    body = '{"type":"FeatureCollection","features":[' + ",".join([feature] * 150_000) + "]}"
    with attacked.client("dataadmin") as client, watched(attacked, most_mb=1600):
        rows = client.post("/db2whrest/v1/sql_query", content="select fkey from t_car").text
        keys = [key for _, key in csv.reader(rows.splitlines())]
        table = "fkey,latitude_deg,longitude_deg\n" + "".join(f"{key},48,11\n" for key in keys)
        placed = client.post(
            VALUES, params={"family": "bus"}, content=table, headers={"Content-Type": "text/csv"}
        )
        assert placed.status_code == 200, placed.text
        answer = client.post(
            "/v1/tags/map", params={"family": "bridge", "within": 100}, content=body,
            headers={"Content-Type": "application/geo+json"},
        )  # fmt: skip
    assert answer.status_code == 200, answer.text
    assert answer.json()["features"] == 150_000
    assert answer.json()["near"] == len(keys) > 0
