"""Attacks by servers that sources name, and on servers that only this one reaches."""

import time
from pathlib import Path

from tests.attacks.arena import arena
from tests.attacks.conftest import Watched
from tests.ingest.redirecting_server import redirecting


def test_an_endpoint_that_redirects_into_the_network(home: Path, watched: Watched) -> None:
    """A dataadmin's S3 server sends IMPORT_TAGS to another: it is asked nothing, nothing shows."""
    with redirecting() as inside, redirecting() as named:
        host = named.endpoint.removeprefix("http://")
        variables = {"FRAMESIFT_SOURCE_HOSTS": host, "AWS_EC2_METADATA_DISABLED": "true"}
        with arena(home, variables=variables) as server, server.client("dataadmin") as client:
            source = {"name": "evil", "uri": "s3://bucket", "anonymous": True, "region": "r"}
            for endpoint in (inside.endpoint, "http://169.254.169.254", "http://8.8.8.8"):
                refused = client.post("/v1/sources", json=source | {"endpoint_url": endpoint})
                assert refused.status_code == 403, refused.text
            added = client.post("/v1/sources", json=source | {"endpoint_url": named.endpoint})
            assert added.status_code == 201, added.text
            named.target = inside.endpoint
            with watched(server):
                policy = {
                    "name": "steal",
                    "action": "IMPORT_TAGS",
                    "parameters": {"source_connection": "evil", "tag_file_path": "bucket/a.csv"},
                }
                response = client.post("/v1/policies", json=policy)
                assert response.status_code == 201, response.text
                started = client.post("/v1/policies/steal/runs")
                assert started.status_code == 202, started.text
                job = client.get(started.headers["location"])
                while job.json()["state"] not in ("done", "failed", "cancelled"):
                    time.sleep(0.3)
                    job = client.get(started.headers["location"])
            runs = client.get("/v1/policies/steal/runs").text
            assert job.json()["state"] == "failed"
            assert "redirects to another server" in job.text + runs
            assert "swordfish" not in job.text + runs + "".join(server.log)
        assert inside.asked == []
        assert any("a.csv" in path for path in named.asked)
