"""What Spectrum Discover's routes answer when all goes well, for the OpenAPI document.

Their answers are texts that clients grep, and no models, so FastAPI finds neither type nor shape.
"""

import json
from collections.abc import Mapping
from typing import Any

from api.http.callers import LOGIN
from api.http.openapi.texts import in_rows
from query.discover.buckets import BUCKETS

_JSON = "application/json"

Told = Mapping[str, Mapping[str, Any]]
"""Media type -> what OpenAPI says of it."""


def _json(example: dict[str, Any] | list[Any]) -> Told:
    kind = "array" if isinstance(example, list) else "object"
    return {_JSON: {"schema": {"type": kind}, "example": example}}


def _text(example: str, media_type: str = "text/plain") -> Told:
    return {media_type: {"schema": {"type": "string"}, "example": example}}


_FILE = {"platform": "IBM COS", "datasource": "a2d2", "filename": "camera_lidar_semantic/x.png"}
_ROWS: Told = in_rows([_FILE], "csv")
_SEARCH = {
    "rows": json.dumps([{"path": "a2d2/", "filename": "camera_lidar_semantic/x.png", "car": "1"}]),
    "facet_tree": {},
    "table": "metaocean_view",
    "query_time_secs": 5.945647,
    "count": 258,
    "doc_count": 258,
}
_REPORT = {
    "name": "Files by datasource",
    "query": json.dumps({"name": "Files by datasource", "group_by": ["datasource"]}),
    "size": 39,
    "report": "8a8cd99b-b72c-4297-8d16-7dc2746f76fc",
    "duration": 0,
    "filename": "Files by datasource-2020-03-27_11:12:10.csv",
    "lastrun": "2020-03-27T11:12:10.000Z",
    "status": "complete",
    "schedule": None,
}
_TABLE = {
    "enabled": True,
    "last_duration": None,
    "last_updated_time": "2020-03-27T11:12:10.000Z",
    "schedule": {"minute": "*/5"},
    "update_running": False,
    "update_start_time": None,
}
_TAG = {"tag": "chargeback", "type": "Restricted", "value": json.dumps(["dept1", "dept2"])}
_COUNTS = {
    "total_count": 15000,
    "completed_count": 14000,
    "failed_count": 0,
    "submitted_count": 15000,
    "start_time": "2020-03-27_11:12:10",
}
_POLICY = {
    "pol_id": "pol2",
    "action_id": "AUTOTAG",
    "action_params": {"tags": {"tag4": "val4"}},
    "schedule": "NOW",
    "pol_filter": "filetype='jpg'",
    "pol_state": "active",
    "pol_status": "running",
    "explicit": "true",
    "collections": [],
    "execution_info": json.dumps(_COUNTS),
    "policy_owner": "sdadmin",
    "last_updated_by": "sdadmin",
    "last_updated": "2020-03-27_11:12:10",
}
_REGEX = {"regex_id": "digits", "pattern": "[0-9]+", "description": "A number."}
_APPLICATION = {"agent": "image", "action_id": "DEEPINSPECT", "action_params": ["extract_tags"]}
_CONNECTION = {
    "name": "nfs1",
    "type": "general",
    "cluster": "192.168.1.1",
    "datasource": "A2D2_NFS",
    "site": "munich",
    "platform": "NFS",
    "host": "192.168.1.1",
    "mount_point": "/mnt/a2d2",
    "user": "",
    "online": True,
    "total_records": 82554,
    "additional_info": {"uri": "/mnt/a2d2"},
}
_SCAN = {
    "connection": "nfs1",
    "status": "Running",
    "scanned_records": 75,
    "indexed_records": 75,
    "start_time": "2020-03-27_11:12:10",
}
_DONE = _json({"status": "success"})
_BEGUN = _text("null")
_RUNNING = _json({"status": "running"})
_REFUSED: Told = {}

_SCHEDULED = _text(json.dumps({"status": "work scheduled"}), "text/html")
_WHERE = {
    "Location": {
        "description": "Where to ask for the result.",
        "schema": {"type": "string"},
        "example": "http://127.0.0.1:8008/db2whrest/v1/task_status/"
        "d7dfc824-ea4b-4c95-8b46-db822554a7d1",
    }
}
_TOKEN = {
    "X-Auth-Token": {
        "description": "To be sent as Authorization: Bearer TOKEN.",
        "schema": {"type": "string"},
        "example": "fs_...",
    }
}
_TASK = "/db2whrest/v1/task_status/{task}"
_BECOME_TASKS = frozenset(
    {
        ("get", "/db2whrest/v1/sql_query"), ("post", "/db2whrest/v1/sql_query"),
        ("get", "/db2whrest/v1/sql_query_json"), ("post", "/db2whrest/v1/sql_query_json"),
        ("post", "/db2whrest/v1/search"), ("post", "/db2whrest/v1/report"),
        ("put", "/db2whrest/v1/report/{report}"),
    }
)  # fmt: skip
"""What is answered with a task where it takes long."""

ANSWERS: Mapping[tuple[str, str], Told] = {
    ("get", LOGIN): {},
    ("get", "/auth/v1/roles"): _json(
        {"roles": [{"domain_id": None, "id": "f9cacd949cce580d9fabf7ccabb97cda", "name": "admin"}]}
    ),
    ("get", "/db2whrest/v1/sql_query"): _ROWS,
    ("post", "/db2whrest/v1/sql_query"): _ROWS,
    ("get", "/db2whrest/v1/sql_query_json"): {_JSON: _ROWS[_JSON]},
    ("post", "/db2whrest/v1/sql_query_json"): {_JSON: _ROWS[_JSON]},
    ("get", "/db2whrest/v1/sql_query_async"): _SCHEDULED,
    ("post", "/db2whrest/v1/sql_query_async"): _SCHEDULED,
    # What the task's request would have been answered: rows, a search's reply, a report.
    ("get", "/db2whrest/v1/task_status/{task}"): {**_ROWS, _JSON: {"example": [_FILE]}},
    ("get", "/db2whrest/v1/task_status/{task}/peek"): _json({"status": "complete"}),
    ("post", "/db2whrest/v1/search"): _json(_SEARCH),
    ("get", "/db2whrest/v1/report"): _json([_REPORT]),
    ("post", "/db2whrest/v1/report"): _json(_REPORT),
    ("get", "/db2whrest/v1/report/{report}"): _json(_REPORT),
    ("put", "/db2whrest/v1/report/{report}"): _json(_REPORT),
    ("delete", "/db2whrest/v1/report/{report}"): _DONE,
    ("get", "/db2whrest/v1/report/{report}/download"): _text(
        "datasource,count,sum\na2d2,75.0,5513478\n", "text/csv"
    ),
    ("get", "/db2whrest/v1/buckets/{bucket}"): _json(BUCKETS["sizerange"].document),
    ("get", "/db2whrest/v1/summary_tables"): _json({"duplicates": _TABLE, "mrcapacity": _TABLE}),
    ("get", "/db2whrest/v1/summary_tables/{table}"): _json(_TABLE),
    ("put", "/db2whrest/v1/summary_tables/{table}"): _DONE,
    ("put", "/db2whrest/v1/summary_tables/{table}/start"): _DONE,
    ("get", "/policyengine/v1/tags"): _json([_TAG]),
    ("post", "/policyengine/v1/tags"): _text("Tag department added"),
    ("get", "/policyengine/v1/tags/{tag}"): _json(_TAG),
    ("put", "/policyengine/v1/tags/{tag}"): _text("Tag department updated"),
    ("get", "/policyengine/v1/policies"): _json([_POLICY]),
    ("post", "/policyengine/v1/policies"): _text("Policy 'pol2' added"),
    ("get", "/policyengine/v1/policies/{policy}"): _json(_POLICY),
    ("post", "/policyengine/v1/policies/{policy}"): _text("Policy 'pol2' added"),
    ("put", "/policyengine/v1/policies/{policy}"): _text("Policy 'pol2' updated"),
    ("delete", "/policyengine/v1/policies/{policy}"): _text("Policy 'pol2' deleted"),
    ("get", "/policyengine/v1/policies/{policy}/status"): _json({"status": "running", **_COUNTS}),
    ("get", "/policyengine/v1/policies/{policy}/history"): _json(
        [{"status": "complete", **_COUNTS}]
    ),
    ("post", "/policyengine/v1/policies/{policy}/{action}"): _text("Accepted"),
    ("get", "/policyengine/v1/regex"): _json([_REGEX]),
    ("post", "/policyengine/v1/regex"): _text("Created"),
    ("put", "/policyengine/v1/regex"): _text("Accepted"),
    ("get", "/policyengine/v1/regex/{regex}"): _json(_REGEX),
    ("put", "/policyengine/v1/regex/{regex}"): _text("Accepted"),
    ("delete", "/policyengine/v1/regex/{regex}"): _text("Accepted"),
    ("get", "/policyengine/v1/action_ids"): _json(["AUTOTAG", "DEEPINSPECT", "IMPORT_TAGS"]),
    ("get", "/policyengine/v1/applications"): _json([_APPLICATION]),
    ("post", "/policyengine/v1/applications"): _REFUSED,
    ("patch", "/policyengine/v1/applications/{application}"): _REFUSED,
    ("delete", "/policyengine/v1/applications/{application}"): _REFUSED,
    ("get", "/policyengine/v1/applications/{application}/schema"): _json(
        {"type": "object", "properties": {"extract_tags": {"type": "array"}}}
    ),
    ("get", "/policyengine/v1/tlscert"): _REFUSED,
    ("get", "/connmgr/v1/internal/connections"): _REFUSED,
    ("get", "/api/application/v1/cipherkey"): _REFUSED,
    ("get", "/connmgr/v1/connections"): _json([_CONNECTION]),
    ("post", "/connmgr/v1/connections"): _text("Connection 'nfs1' added"),
    ("get", "/connmgr/v1/connections/{connection}"): _json(_CONNECTION),
    ("put", "/connmgr/v1/connections/{connection}"): _text("Connection 'nfs1' updated"),
    ("delete", "/connmgr/v1/connections/{connection}"): _text("Connection 'nfs1' deleted"),
    ("get", "/connmgr/v1/scan"): _json([_SCAN]),
    ("post", "/connmgr/v1/scan"): _REFUSED,
    ("get", "/connmgr/v1/scan/{connection}"): _json(_SCAN),
    ("post", "/connmgr/v1/scan/{connection}"): _BEGUN,
    ("put", "/connmgr/v1/scan/{connection}"): _REFUSED,
    ("post", "/connmgr/v1/scan/{connection}/partial"): _BEGUN,
    ("put", "/connmgr/v1/scan/{connection}/{action}"): _BEGUN,
}
"""What each route answers, by method and path; _REFUSED where it always refuses."""


def tell_answers(method: str, path: str, answers: dict[str, Any]) -> None:
    """Write into an operation what it answers when all goes well, if it ever does."""
    (status,) = (status for status in answers if status[0] == "2")
    told = ANSWERS[method, path]
    if told is _REFUSED:
        del answers[status]
        return
    answers[status]["content"] = told
    if status == "202" and told is _SCHEDULED:
        answers[status]["headers"] = _WHERE
    if path == LOGIN:
        answers[status] = {"description": "The token, and no body.", "headers": _TOKEN}
    if (method, path) in _BECOME_TASKS:
        answers["202"] = {
            "description": "It takes long: the rest is a task.",
            "headers": _WHERE,
            "content": _SCHEDULED,
        }
    if path.startswith(_TASK):
        answers["303"] = {"description": "The task runs: ask again.", "content": _RUNNING}
