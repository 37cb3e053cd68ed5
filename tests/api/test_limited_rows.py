"""Who sees some rows only sees those: against a catalog in which there are no others.

The reference is a home into which nothing but the allowed scenes was ever ingested; every answer
must be the same. Then what could get round it is tried.
"""

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from api.app import create_app
from api.settings import Settings
from catalog.accounts import row_collections, tokens, users
from catalog.errors import NotAllowed
from catalog.limited_store import LimitedStore
from catalog.records.store import RecordStore
from catalog.values import Owner
from tests.pipeline.homes import SAMPLE, copy_home, make_home

SCENES = ("20260311_130314", "20260507_155109")
RULES = {f"scene{n}": f"filename like '%/{scene}/%'" for n, scene in enumerate(SCENES)}
RULES["classes"] = "filename like '%/class_list.json'"
SQL = "/db2whrest/v1/sql_query"

STATEMENTS = [
    "select count(*) from metaocean",
    "select count(*) from bluadmin.metaocean",
    "select * from metaocean order by fkey",
    "select * from metaocean_view order by fkey",
    "select count(*), sum(int(value)), max(fkey), min(fkey) from t_car",
    "select m.filename, c.value from metaocean m, t_car c where m.fkey = c.fkey order by 1",
    """select filename from metaocean m, t_front f, t_center c, t_bicycle b where f.fkey = m.fkey
    and int(f.value) = 1 and c.fkey = m.fkey and int(c.value) = 1 and b.fkey = m.fkey order by 1""",
    """select m.filename from metaocean m left join t_car c on m.fkey = c.fkey
    where c.value is null order by 1""",
    "select count(*) from metaocean where fkey in (select fkey from t_sky)",
    "select count(*) from t_sky where exists (select 1 from metaocean m where m.fkey = t_sky.fkey)",
    "select (select count(*) from metaocean), count(*) from t_sky",
    "with metaocean as (select fkey from t_car) select count(*) from metaocean",
    "with files as (select * from metaocean) select count(*) from files",
    "with lake as (select * from metaocean) select count(*) from lake",
    "with stored as (select 1 as one from metaocean) select count(*) from stored",
    "with t_car as (select * from t_sky) select count(*) from t_car, metaocean",
    "select count(*) from metaocean union all select count(*) from t_car order by 1",
    "select fkey from metaocean except select fkey from t_car order by 1",
    "select path, count(*), sum(size) from metaocean group by path having count(*) > 0 order by 1",
    "select filename, rank() over (order by size desc) from metaocean order by 2, 1",
    "select count(*) from metaocean a, metaocean b where a.size < b.size",
    """select sum(int(t_rd_normal_street.value)) /
    ((count(t_rd_normal_street.value)*1920*1208)/100) from t_rd_normal_street with ur""",
    "select listagg(filename, ',') within group (order by filename) from metaocean",
    "select count(*) from metaocean where filename not like '%x%' or 1 = 1",
    "select tabschema, tabname, type, colcount from syscat.tables order by 2",
    "select * from SYSCAT.COLUMNS where tabname <> 'METAOCEAN' order by tabname, colno",
    "select count(*) from syscat.tables t, metaocean m where t.type = 'V'",
    "select fkey from metaocean tablesample bernoulli (50) repeatable (3) order by 1",
    "select fkey from metaocean order by rand(7) fetch first 5 rows only",
    """select m.fkey, l.value from metaocean m,
    lateral (select c.value from t_car c where c.fkey = m.fkey) as l order by 1""",
    """select m.fkey, l.n from metaocean m
    left join t_car tablesample system (40) repeatable (1) on t_car.fkey = m.fkey,
    table (select count(*) as n from metaocean) as l order by 1""",
    "select path, grouping(path), count(*) from metaocean group by rollup(path) order by 2, 1",
    """select regexp_replace(fkey, '^.*/', ''), lag(fkey, 1, '-') over (order by fkey),
    ntile(3) over (order by fkey) from metaocean order by fkey""",
    """select median(size), percentile_disc(0.9) within group (order by size), corr(size, size)
    from metaocean where fkey in (select fkey from metaocean_view where label_file is null)""",
    "select count(*) from metaocean where fkey like path || '%' or fkey like '%' || filename",
    "select v.n, m.fkey from (values 1, 2) as v(n), metaocean m order by 1, 2",
]


@dataclass
class Asked:
    """An application, and the header that lets a user in."""

    client: TestClient
    header: dict[str, str]

    def get(self, path: str, **more: Any) -> Any:
        """What a route answers, as JSON."""
        answer = self.client.get(path, headers=self.header, **more)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post(self, path: str, body: object) -> Any:
        """What a route answers to a body, as JSON."""
        answer = self.client.post(path, headers=self.header, json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def sql(self, statement: str) -> str:
        """A statement's answer as CSV."""
        answer = self.client.post(SQL, headers=self.header, content=statement)
        assert answer.status_code == 200, answer.text
        return str(answer.text)


def _user(home: Path, name: str, role: str) -> dict[str, str]:
    records = RecordStore(home / "records" / "records.sqlite")
    user = users.add(records, name, [role], None)
    return {"Authorization": f"Bearer {tokens.log_in(records, user)}"}


@pytest.fixture(scope="module", params=[0, 200], ids=["catalog", "memory"])
def limited(
    request: pytest.FixtureRequest, catalogued: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Asked]:
    """Every scene is catalogued, held in memory or not; the user's collections hold two."""
    home = copy_home(catalogued, tmp_path_factory.mktemp("limited"))
    header, all_rows = _user(home, "otto", "datauser"), _user(home, "root", "admin")
    records = RecordStore(home / "records" / "records.sqlite")
    for name, rule in RULES.items():
        row_collections.add(records, name, rule)
        row_collections.assign(records, name, "otto")
    app = create_app(Settings(home=home, cache=None, snapshot_memory_mb=request.param))
    with TestClient(app) as client:
        everything = Asked(client, all_rows)
        everything.sql("select 1 from metaocean")
        if request.param:
            assert app.state.workspace.catalog.memory.wait(300)
        yield Asked(client, header)


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    """A home that holds the two scenes and no other."""
    folder = tmp_path_factory.mktemp("reference")
    frames = "camera_lidar_semantic"
    for scene in SCENES:
        shutil.copytree(SAMPLE / frames / scene, folder / "source" / frames / scene)
    shutil.copy(SAMPLE / frames / "class_list.json", folder / "source" / frames)
    make_home(folder / "home", folder / "source")
    header = _user(folder / "home", "root", "admin")
    with TestClient(create_app(Settings(home=folder / "home", cache=None))) as client:
        yield Asked(client, header)


def test_the_whole_catalog_is_refused(limited: Asked) -> None:
    """A limited workspace gives no catalog that could be written, or that has other rows."""
    app = limited.client.app
    assert isinstance(app, FastAPI)
    workspace = app.state.workspace.limited_to(tuple(RULES.values()), Owner("otto", "1"))
    assert isinstance(workspace.catalog, LimitedStore)
    for refused in ("whole_catalog", "opened_catalog"):
        with pytest.raises(NotAllowed, match="every row"):
            getattr(workspace, refused)


UNSTABLE = {
    "inode", "mtime", "atime", "ctime", "inserttime", "updatedtime", "requesttime", "collection",
}  # fmt: skip
"""Columns that say when and where the copies were made; and the reference has no collections."""


@pytest.mark.parametrize("statement", STATEMENTS)
def test_statements_answer_as_if_there_were_no_other_rows(
    limited: Asked, reference: Asked, statement: str
) -> None:
    """Whatever its form: the answer is that of a catalog of those rows."""
    if "select *" in statement and "count" not in statement:
        answer, expected = (
            json.loads(
                caller.client.post(
                    SQL, headers=caller.header | {"Accept": "application/json"}, content=statement
                ).text
            )
            for caller in (limited, reference)
        )
        stable = [[{k: v for k, v in row.items() if k not in UNSTABLE} for row in rows]
                  for rows in (answer, expected)]  # fmt: skip
        assert stable[0] == stable[1]
        assert stable[0]
        return
    assert limited.sql(statement) == reference.sql(statement)


@pytest.mark.wide
def test_our_own_routes_answer_so_too(limited: Asked, reference: Asked) -> None:
    """Selections, classes, histograms, descriptions and Discover's search."""
    for question in (
        {}, {"ranges": [{"tag": "car", "lowest": 1}]}, {"where": "size > 0 or 1 = 1"},
        {"sample": 3, "seed": 5}, {"limit": 2, "order": ["car desc"]},
        {"scenes": [SCENES[0]]}, {"where": "fkey in (select fkey from t_car)"},
    ):  # fmt: skip
        ours, expected = (
            caller.post("/v1/selections", question) for caller in (limited, reference)
        )
        assert ours["frames"] == expected["frames"], question
        assert ours["class_pixels"] == expected["class_pixels"]
    for path, query in (
        ("/v1/classes", {}), ("/v1/classes", {"by": "scene", "quantiles": "true"}),
        ("/v1/statistics/histogram", {"tag": "car"}),
        ("/v1/statistics/histogram", {"tag": "scene"}),
    ):  # fmt: skip
        ours, expected = (caller.get(path, params=query) for caller in (limited, reference))
        for answer in (ours, expected):
            answer.pop("snapshot", None)
        assert ours == expected, path
    searched = [
        caller.post("/db2whrest/v1/search", {"query": "car >= 1 or 1 = 1", "limit": 1000})
        for caller in (limited, reference)
    ]
    assert searched[0]["count"] == searched[1]["count"] > 0
    grouped = [
        caller.post("/db2whrest/v1/search", {"query": "", "group_by": ["platform"], "limit": 9})
        for caller in (limited, reference)
    ]
    assert grouped[0]["rows"] == grouped[1]["rows"]


def test_counts_tags_and_explanations_are_of_what_is_seen(limited: Asked, reference: Asked) -> None:
    """As in a home that holds no more; a plan, which knows all rows, is not shown."""
    answer, expected = (caller.get("/v1/info") for caller in (limited, reference))
    assert [answer[k] for k in ("files", "frames", "tags")] == [
        expected[k] for k in ("files", "frames", "tags")
    ]
    assert (answer["sources"], expected["sources"]) == (0, 1)
    assert limited.get("/v1/tags?limit=1000") == reference.get("/v1/tags?limit=1000")
    assert limited.get("/v1/tags/car") == reference.get("/v1/tags/car")
    assert limited.get("/v1/tags/car/values") == reference.get("/v1/tags/car/values")
    for statement in (
        "select fkey from t_car", "select count(*) from metaocean where size > 1000",
        "select scene, car from metaocean_view where car > 100", "values 1",
        "with a as (select fkey from metaocean) select * from a, t_car b where a.fkey = b.fkey",
    ):  # fmt: skip
        body = {"statement": statement}
        answer, expected = (caller.post("/v1/sql/explain", body) for caller in (limited, reference))
        assert answer["sql"] == expected["sql"]
        assert answer["estimated_rows"] is None
        sizes = [
            {table["name"]: table["rows"] for table in each["tables"]}
            for each in (answer, expected)
        ]
        assert sizes[0].items() <= sizes[1].items(), statement
        assert all(table["estimated_rows"] is None for table in answer["tables"])
        assert "stored" not in str(answer)
        assert "scene" not in answer["sql"] or "scene" in statement
    wrong = limited.client.post(
        "/v1/sql/explain",
        headers=limited.header,
        json={"statement": "select * from stored.main.files"},
    )
    assert wrong.status_code == 400


def test_other_scenes_are_not_there(limited: Asked) -> None:
    """Asked by name, one that may not be seen is unknown."""
    hidden = "20260721_110506"
    assert (
        limited.sql(f"select count(*) from metaocean where filename like '%{hidden}%'") == "0,0\n"
    )
    answer = limited.client.post(
        "/v1/selections", headers=limited.header, json={"scenes": [hidden]}
    )
    assert answer.status_code == 400
    assert "20260721" not in json.dumps(answer.json().get("nearest"))


def test_errors_tell_nothing_of_other_rows(limited: Asked, reference: Asked) -> None:
    """A condition that fails on hidden rows only does not fail: it is never tried on them."""
    for hidden in ("20260721_110506", "20261112_164836"):
        for condition in (
            f"case when filename like '%{hidden}%' then int(filename) else 1 end = 1",
            f"int(case when filename like '%{hidden}%' then 'x' else '1' end) = 1",
            f"1 / (case when filename like '%{hidden}%' then 0 else 1 end) = 1",
        ):
            text = f"select count(*) from metaocean where {condition}"
            assert limited.sql(text) == reference.sql(text)
    text = "select count(*) from metaocean m, t_car c where c.fkey = m.fkey and 1 / (case when "
    text += "c.fkey like '%20260721%' then 0 else 1 end) = 1"
    assert limited.sql(text) == reference.sql(text)


REFUSED = [
    "select count(*) from stored.main.files", "select count(*) from stored.metaocean",
    "select count(*) from lake.main.files", "select count(*) from main.files",
    "select count(*) from files", 'select count(*) from "stored"."main"."files"',
    "select count(*) from memory.main.files", "select * from duckdb_tables()",
    "select * from lake.snapshots()", "select * from query('select 1')",
    "select count(*) from information_schema.tables", "select count(*) from sqlite_master",
    "select count(*) from __ducklake_metadata_stored.main.ducklake_data_file",
    "select * from read_parquet('*')", "select * from '/etc/passwd'",
]  # fmt: skip


@pytest.mark.parametrize("statement", REFUSED)
def test_other_names_are_refused(limited: Asked, statement: str) -> None:
    """Nothing but Discover's views has a name there."""
    answer = limited.client.post(SQL, headers=limited.header, content=statement)
    assert answer.status_code == 400


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/v1/scans"), ("POST", "/v1/scans"), ("GET", "/v1/sources"), ("POST", "/v1/tags"),
     ("POST", "/v1/datasets"), ("GET", "/db2whrest/v1/report"),
     ("GET", "/db2whrest/v1/summary_tables")],
)  # fmt: skip
def test_what_is_not_divided_into_collections_is_closed(
    limited: Asked, method: str, path: str
) -> None:
    """403, and not everything."""
    answer = limited.client.request(method, path, headers=limited.header, json={})
    assert answer.status_code == 403


@pytest.mark.wide
def test_collections_count_from_the_next_request_on(catalogued: Path, tmp_path: Path) -> None:
    """Without one there are no rows; assigned over REST, they are there at once, and gone again."""
    home = copy_home(catalogued, tmp_path)
    otto, root = _user(home, "otto", "datauser"), _user(home, "root", "admin")
    with TestClient(create_app(Settings(home=home, cache=None))) as client:
        caller = Asked(client, otto)
        assert caller.sql("select count(*) from metaocean") == "0,0\n"
        assert caller.post("/v1/selections", {})["frames"] == []
        body = {"name": "c", "rule": RULES["scene0"]}
        client.post("/v1/collections", headers=root, json=body)
        client.put("/v1/collections/c/users/otto", headers=root)
        seen = caller.sql("select count(*) from metaocean")
        assert seen not in ("0,0\n", Asked(client, root).sql("select count(*) from metaocean"))
        client.delete("/v1/collections/c/users/otto", headers=root)
        assert caller.sql("select count(*) from metaocean") == "0,0\n"


FIRST_DAYS = "int(substr(filename, 23, 8)) < 20260601"
"""Of files in camera_lidar_semantic's scenes; it fails for class_list.json beside them."""

ASKED = [
    ("POST", "/v1/sql", {"statement": "select count(*) from metaocean"}),
    ("POST", "/v1/sql", {"statement": "select fkey, value from t_car where int(value) > 0"}),
    ("POST", "/v1/selections", {}),
    ("GET", "/v1/info", None),
    ("GET", "/v1/classes", None),
    ("GET", "/v1/frames", None),
    ("GET", "/v1/datasets", None),
    ("POST", SQL, "select max(filename) from metaocean"),
    ("POST", "/db2whrest/v1/search", {"query": "", "limit": 10}),
]


def _limited_by(home: Path, rule: str) -> dict[str, str]:
    """A user of a collection with a rule that no check has seen."""
    header = _user(home, "zoe", "datauser")
    records = RecordStore(home / "records" / "records.sqlite")
    row_collections.add(records, "rr", rule)
    row_collections.assign(records, "rr", "zoe")
    return header


def _answer(
    client: TestClient, method: str, path: str, header: dict[str, str], body: object
) -> Any:
    if isinstance(body, str):
        return client.request(method, path, headers=header, content=body)
    return client.request(method, path, headers=header, json=body)


@pytest.mark.parametrize(
    "rule",
    [
        FIRST_DAYS,
        "1/0 = 1",
        *(
            pytest.param(rule, marks=pytest.mark.wide)
            for rule in (
                "int(filename) = 3",
                "100 / (size - size) = 1",
                "not filename",
                "mtime > '2026-13-45'",
            )
        ),
    ],
)
def test_a_rule_that_fails_tells_of_no_row(catalogued: Path, tmp_path: Path, rule: str) -> None:
    """Rows for which it does are not there: no error, and no name of theirs, by any route."""
    home = copy_home(catalogued, tmp_path)
    zoe = _limited_by(home, rule)
    with TestClient(create_app(Settings(home=home, cache=None))) as client:
        for method, path, body in ASKED:
            answer = _answer(client, method, path, zoe, body)
            assert answer.status_code == 200, (path, answer.text)
            for hidden in ("class_list", "20260721", "20261112"):
                assert hidden not in answer.text, path
        seen = Asked(client, zoe).sql("select count(*), count(distinct filename) from metaocean")
        assert (seen != "0,0,0\n") == (rule == FIRST_DAYS)


def test_a_rule_that_fails_sees_what_it_holds_for(catalogued: Path, tmp_path: Path) -> None:
    """As one that says the same and cannot fail."""
    home = copy_home(catalogued, tmp_path)
    zoe, root = _limited_by(home, FIRST_DAYS), _user(home, "root", "admin")
    same = " or ".join(f"filename like '%/20260{month}%'" for month in range(1, 6))
    with TestClient(create_app(Settings(home=home, cache=None))) as client:
        listed = "select fkey from metaocean {} order by 1"
        rows = Asked(client, zoe).sql(listed.format(""))
        assert rows == Asked(client, root).sql(listed.format(f"where {same}"))
        assert len(rows.splitlines()) > 10


@pytest.mark.parametrize(
    "rule",
    [
        "sum(size) > 3",
        pytest.param("rank() over (order by size) = 1", marks=pytest.mark.wide),
        pytest.param("max(size) over () = size", marks=pytest.mark.wide),
    ],
)
def test_a_stored_rule_that_is_none_is_said_to_be_so(
    catalogued: Path, tmp_path: Path, rule: str
) -> None:
    """Not with a path, the rule, or the advice to restore a backup."""
    home = copy_home(catalogued, tmp_path)
    zoe, root = _limited_by(home, rule), _user(home, "root", "admin")
    app = create_app(Settings(home=home, cache=None))
    with TestClient(app, raise_server_exceptions=False) as client:
        for method, path, body in ASKED:
            if path == "/v1/datasets":
                continue  # there are none, and so nothing of the catalog is asked
            answer = _answer(client, method, path, zoe, body)
            assert answer.status_code == 500, (path, answer.text)
            assert "the rule of one of your collections" in answer.text
            for word in (str(home), "backup", "Binder", rule):
                assert word not in answer.text, path
        assert Asked(client, zoe).get("/v1/me")["name"] == "zoe"
        assert Asked(client, zoe).get("/v1/collections")["collections"][0]["name"] == "rr"
        assert client.delete("/v1/collections/rr", headers=root).status_code == 204
        assert Asked(client, zoe).sql("select count(*) from metaocean") == "0,0\n"


@pytest.mark.wide
def test_a_new_rule_is_tried_on_the_rows_that_there_are(catalogued: Path, tmp_path: Path) -> None:
    """And refused with a file for which it fails, which an admin may know of."""
    home = copy_home(catalogued, tmp_path)
    root = _user(home, "root", "admin")
    with TestClient(create_app(Settings(home=home, cache=None))) as client:
        guarded = f"case when filename like '%/2026%' then {FIRST_DAYS.partition(' <')[0]} end < 1"
        for rule, status, said in (
            (FIRST_DAYS, 400, "class_list.json"),
            ("int(filename) = 3", 400, "it fails for a file, local:a2d2:"),
            ("100 / (size - size) = 1", 400, "it fails for a file"),
            ("not filename", 400, "it fails for a file"),
            ("rank() over (order by size) = 1", 400, "one with OVER, is not allowed"),
            ("sum(size) > 3", 400, "An aggregate function is not allowed"),
            ("size", 400, "of type BIGINT; expected a condition"),
            ("1/0 = 1", 400, "fails whatever the file"),
            ("mtime > '2026-13-45'", 400, "fails whatever the file"),
            (guarded, 201, guarded),
        ):
            body = {"name": "rr", "rule": rule}
            answer = client.post("/v1/collections", headers=root, json=body)
            assert answer.status_code == status, (rule, answer.text)
            assert said in (answer.json()["rule"] if status == 201 else answer.json()["detail"])
