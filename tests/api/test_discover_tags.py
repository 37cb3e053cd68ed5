"""Tags of Spectrum Discover's policy engine, as its documentation and scripts send them."""

import json
import subprocess
from pathlib import Path

import httpx
import pytest

from tests.api.servers import framesift
from tests.needed_programs import needs

KIND = r"""
curl -k -H "Authorization: Bearer t" $1/tags/$2 -X GET 2>/dev/null \
  | grep -o '"type": "[^"]*' | cut -d'"' -f4
"""
"""How the tape scripts look whether a tag is of kind Characteristics."""


@pytest.fixture(scope="module")
def url(shared_url: str) -> str:
    """The address of its policy engine."""
    return f"{shared_url}/policyengine/v1"


def curl(url: str, method: str, body: str) -> str:
    """A change as the documentation prints it."""
    needs("curl")
    return subprocess.run(
        ["curl", "-s", "-k", "-H", "Authorization: Bearer <token>", url, "-d", body,
         "-X", method, "-H", "Content-Type: application/json"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip


@pytest.mark.wide
def test_the_documented_commands(url: str, shared_home: Path) -> None:
    """Each kind is added, listed in its place with its values as JSON in a string, and used."""
    before = httpx.get(f"{url}/tags").json()
    assert before[0] == {"tag": "front", "type": "Characteristics", "value": "[]"}
    for body in (
        '{"tag": "project", "type": "Open"}',
        '{"tag": "department", "type": "Restricted", "value": ["Finance", "HR", "IT"]}',
        '{"tag": "annotations", "type": "Characteristics"}',
    ):
        assert curl(f"{url}/tags", "POST", body) == f"Tag {json.loads(body)['tag']} added"
    listed = httpx.get(f"{url}/tags")
    assert listed.text.endswith(
        '{"tag": "project", "type": "Open", "value": "[]"}, '
        r'{"tag": "department", "type": "Restricted", "value": "[\"Finance\", \"HR\", \"IT\"]"}, '
        '{"tag": "annotations", "type": "Characteristics", "value": "[]"}]'
    )
    assert listed.json()[: len(before)] == before
    changed = curl(f"{url}/tags/department", "PUT", '{"value": ["dept1", "dept2"]}')
    assert changed == "Tag department updated"
    assert httpx.get(f"{url}/tags/Department").text == (
        r'{"tag": "department", "type": "Restricted", "value": "[\"dept1\", \"dept2\"]"}'
    )
    for tag, kind in (("annotations", "Characteristics"), ("project", "Open"), ("nope", "")):
        run = subprocess.run(
            ["bash", "-c", KIND, "kind", url, tag], capture_output=True, text=True, check=False
        )
        assert run.stdout.strip() == kind
    # The command line sees them, and searches have them as columns.
    assert "department" in framesift(shared_home, "tags", "families", "--json").stdout
    search = url.replace("policyengine", "db2whrest") + "/search"
    response = httpx.post(search, content='{"query": "project is null", "limit": 1}', timeout=300)
    assert json.loads(response.json()["rows"])[0]["annotations"] is None


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/nope", "", 404),
        ("PUT", "/nope", '{"value": ["a"]}', 404),
        ("POST", "", '{"tag": "car", "type": "Open"}', 409),
        ("POST", "", '{"tag": "owner", "type": "Open"}', 400),
        ("POST", "", '{"tag": "select", "type": "Open"}', 400),
        ("POST", "", '{"tag": "a b", "type": "Open"}', 400),
        ("POST", "", '{"tag": "x", "type": "Other"}', 400),
        ("POST", "", '{"tag": "x", "type": "Restricted"}', 400),
        ("POST", "", '{"tag": "x", "type": "Restricted", "value": [1]}', 400),
        ("POST", "", '{"tag": "x", "type": "Restricted", "value": "[1]"}', 400),
        ("POST", "", '{"tag": "x", "type": "Open", "value": "["}', 400),
        ("POST", "", '{"tag": "x", "type": "Open", "value": ""}', 400),
        ("POST", "", '{"tag": "x"}', 400),
        ("POST", "", "", 400),
        ("PUT", "/car", '{"value": ["a"]}', 400),
        ("PUT", "/car", '{"value": [], "type": "Open"}', 400),
        ("PUT", "/car", "{}", 400),
    ],
)
def test_what_is_refused(url: str, method: str, path: str, body: str, status: int) -> None:
    """In the documented form, and nothing has changed."""
    before = httpx.get(f"{url}/tags").text
    answer = httpx.request(method, f"{url}/tags{path}", content=body, timeout=300)
    assert answer.status_code == status, answer.text
    assert list(answer.json()) == ["reason", "status"]
    assert httpx.get(f"{url}/tags").text == before


@pytest.mark.wide
def test_what_is_listed_can_be_sent(url: str) -> None:
    """A tag as it is answered, its values JSON in a string, makes and changes one."""
    for name, kind, values in (("again", "Open", []), ("once_more", "Restricted", ["a", "b"])):
        tag = {"tag": name, "type": kind, "value": json.dumps(values)}
        assert curl(f"{url}/tags", "POST", json.dumps(tag)) == f"Tag {name} added"
        assert httpx.get(f"{url}/tags/{name}").json() == tag
        assert curl(f"{url}/tags/{name}", "PUT", json.dumps(tag)) == f"Tag {name} updated"
        assert httpx.get(f"{url}/tags/{name}").json() == tag
    changed = {"value": json.dumps(["c"])}
    curl(f"{url}/tags/once_more", "PUT", json.dumps(changed))
    assert httpx.get(f"{url}/tags/once_more").json()["value"] == '["c"]'


def test_names_are_kept_in_lower_case(url: str) -> None:
    """As the documentation's chargeBack: answered as it was sent, found in any case."""
    body = '{"tag": "chargeBack", "type": "Open"}'
    assert curl(f"{url}/tags", "POST", body) == "Tag chargeBack added"
    assert httpx.get(f"{url}/tags/chargeBack").json()["tag"] == "chargeback"
