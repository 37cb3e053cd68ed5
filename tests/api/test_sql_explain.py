"""What a statement becomes: `framesift sql --explain` and /v1/sql/explain."""

import json
from pathlib import Path

import httpx

from tests.api.servers import framesift
from tests.query.test_golden import FIVE_TAGS, SHARE


def test_the_command(catalogued: Path) -> None:
    """Framesift sql --explain, as text and as one JSON document."""
    run = framesift(catalogued, "sql", SHARE, "--explain")
    assert run.returncode == 0, run.stderr
    assert "FROM" in run.stdout
    assert "class_pixels" in run.stdout
    assert "1 rows expected" in run.stdout
    explanation = json.loads(framesift(catalogued, "sql", SHARE, "--explain", "--json").stdout)
    assert [table["name"] for table in explanation["tables"]] == ["class_pixels"]
    assert explanation["estimated_rows"] == 1
    assert framesift(catalogued, "sql", SHARE, "--explain", "--out", "x").returncode == 1


def test_the_route(server: str) -> None:
    """POST /v1/sql/explain; a wrong statement is a problem document with SQLCODE."""
    url = f"{server}/v1/sql/explain"
    answer = httpx.post(url, json={"statement": FIVE_TAGS}, timeout=300)
    assert answer.status_code == 200, answer.text
    assert {table["name"] for table in answer.json()["tables"]} == {"class_pixels", "files"}
    wrong = httpx.post(url, json={"statement": "select x from metaocean"}, timeout=300)
    assert (wrong.status_code, wrong.json()["sqlcode"]) == (400, -206)
