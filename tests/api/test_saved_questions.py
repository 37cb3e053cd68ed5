"""Saved questions: whose they are, who sees them, and how many frames they had and have."""

import json
from collections.abc import Iterator
from datetime import timedelta
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest
from fastapi.testclient import TestClient
from typer.testing import CliRunner

from api.app import create_app
from api.cli.commands.questions import question_app
from api.settings import Settings
from api.web.find.url_question import UrlQuestion
from catalog.accounts import row_collections, tokens, users
from catalog.records.question_tables import QuestionLook, SavedQuestion
from catalog.records.store import RecordStore
from query.question.question import Question
from tests.pipeline.homes import copy_home

HERE = {"Sec-Fetch-Site": "same-origin", "Accept": "text/html"}
CARS = {"ranges": [{"tag": "car", "lowest": 1000}]}
ROLES = {
    "root": "admin", "dora": "dataadmin", "dora2": "dataadmin", "otto": "dataadmin",
    "carl": "collectionadmin",
}  # fmt: skip
SCOPES = {"root": "admin", "otto": "read"}


class House:
    """A served home, and its users' tokens."""

    def __init__(self, client: TestClient, home: Path, made: dict[str, str]) -> None:
        self.client, self.home, self.made = client, home, made

    def ask(self, user: str, method: str, path: str = "", body: Any = None) -> tuple[int, Any]:
        """Status and JSON of an answer of /v1/questions."""
        headers = {"Authorization": f"Bearer {self.made[user]}"}
        answer = self.client.request(method, f"/v1/questions{path}", headers=headers, json=body)
        return answer.status_code, answer.json() if answer.content else None

    def names(self, user: str) -> list[str]:
        """The questions that a user sees."""
        return [one["name"] for one in self.ask(user, "GET")[1]["questions"]]

    def page(self, user: str, path: str, **form: str) -> tuple[int, str, str]:
        """Status, location and text of a page, or of a form's answer."""
        self.client.cookies.set("framesift", self.made[user])
        method = "POST" if form else "GET"
        answer = self.client.request(method, path, data=form or None, headers=HERE)
        self.client.cookies.clear()
        return answer.status_code, answer.headers.get("location", ""), unescape(answer.text)


@pytest.fixture
def house(catalogued: Path, tmp_path: Path) -> Iterator[House]:
    """Dora, another whose name begins so, otto who may only read, carl who sees a camera."""
    home = copy_home(catalogued, tmp_path)
    records = RecordStore(home / "records" / "records.sqlite")
    made = {}
    for name, role in ROLES.items():
        users.add(records, name, [role], None)
        scope = SCOPES.get(name, "write")
        made[name] = tokens.create(records, name, "tests", scope, timedelta(days=1))[1]
    row_collections.add(records, "front", "filename like '%frontcenter%'")
    row_collections.assign(records, "front", "carl")
    app = create_app(Settings(home=home, cache=None), authenticates=True)
    with TestClient(app, follow_redirects=False) as client:
        yield House(client, home, made)


def test_questions_are_their_users_or_shared(house: House) -> None:
    """A private one is there for its owner and admins; a shared one for all to see."""
    assert house.ask("dora", "POST", body={"name": "mine", "question": CARS})[0] == 201
    shared = {"name": "ours", "question": CARS, "shared": True}
    status, saved = house.ask("dora", "POST", body=shared)
    assert (status, saved["owner"], saved["frames"]) == (201, "dora", saved["seen_frames"])
    assert 0 < saved["frames"] < 24
    assert house.names("dora") == house.names("root") == ["mine", "ours"]
    assert house.names("dora2") == house.names("otto") == house.names("carl") == ["ours"]
    assert house.ask("dora2", "GET", "/mine")[0] == 404
    assert house.ask("dora2", "POST", "/mine/see")[0] == 404
    assert house.ask("dora2", "DELETE", "/mine")[0] == 404
    assert house.ask("dora2", "DELETE", "/ours")[0] == 403
    assert house.ask("otto", "POST", body={"name": "his", "question": {}})[0] == 403
    assert house.ask("dora2", "POST", body={"name": "mine", "question": {}})[0] == 409
    assert house.ask("root", "DELETE", "/mine")[0] == 204
    assert house.names("dora") == ["ours"]


def test_numbers_are_of_the_rows_that_a_user_sees(house: House) -> None:
    """Carl counts his camera's frames, and is not told how many the owner saw."""
    _, saved = house.ask("dora", "POST", body={"name": "ours", "question": {}, "shared": True})
    status, his = house.ask("carl", "GET", "/ours")
    assert (status, his["seen_frames"], his["seen"]) == (200, None, None)
    assert 0 < his["frames"] < saved["frames"] == 24
    _, own = house.ask("carl", "POST", body={"name": "carls", "question": {}})
    assert own["seen_frames"] == his["frames"]


def test_a_question_counts_since_its_owner_looked(house: House) -> None:
    """The number stays until the owner says so; what cannot be counted so is refused."""
    house.ask("dora", "POST", body={"name": "cars", "question": CARS})
    records = RecordStore(house.home / "records" / "records.sqlite")
    with records.session() as session:
        session.query(SavedQuestion).update({"frames": 1})
    _, shown = house.ask("dora", "GET", "/cars")
    assert (shown["seen_frames"], shown["frames"] > 1) == (1, True)
    assert house.ask("dora", "GET", "/cars")[1]["seen_frames"] == 1
    assert house.ask("dora", "POST", "/cars/see")[1]["seen_frames"] == shown["frames"]
    assert looks(house) == {}  # hers is the question's own
    for part in ({"limit": 3}, {"sample": 3}, {"snapshot": 1}, {"order": ["car desc"]}):
        status, problem = house.ask("dora", "POST", body={"name": "part", "question": part})
        assert (status, "leave out order" in problem["detail"]) == (400, True), part
    unknown = {"name": "no", "question": {"where": "no_such_tag > 1"}}
    assert house.ask("dora", "POST", body=unknown)[0] == 400
    assert house.names("dora") == ["cars"]


def looks(house: House) -> dict[tuple[int, str], int]:
    """The frames that users saw last of others' questions, by the question and the user."""
    records = RecordStore(house.home / "records" / "records.sqlite")
    with records.reading() as session:
        return {(one.question_id, one.name): one.frames for one in session.query(QuestionLook)}


def test_each_user_counts_a_shared_question_since_they_looked(house: House) -> None:
    """Also one with a token to read, on the rows that each sees; one row each, until removed."""
    for name in ("ours", "ours2"):
        house.ask("dora", "POST", body={"name": name, "question": {}, "shared": True})
    _, first = house.ask("otto", "GET", "/ours")
    assert (first["own"], first["seen_frames"], first["seen"]) == (False, None, None)
    assert looks(house) == {}
    front = house.ask("carl", "GET", "/ours")[1]["frames"]
    for _ in range(2):
        for user, frames in (("otto", 24), ("carl", front), ("dora2", 24)):
            status, seen = house.ask(user, "POST", "/ours/see")
            assert (status, seen["own"], seen["seen_frames"]) == (200, False, frames), seen
    assert house.ask("otto", "POST", "/ours2/see")[0] == 200
    expected = {(1, "otto"): 24, (1, "carl"): front, (1, "dora2"): 24, (2, "otto"): 24}
    assert looks(house) == expected
    records = RecordStore(house.home / "records" / "records.sqlite")
    with records.session() as session:
        session.query(QuestionLook).filter_by(name="otto", question_id=1).update({"frames": 20})
        session.query(SavedQuestion).update({"frames": 21})
    listed = {user: house.ask(user, "GET")[1]["questions"] for user in ROLES}
    assert {user: [one["seen_frames"] for one in rows] for user, rows in listed.items()} == {
        "otto": [20, 24], "carl": [front, None], "dora2": [24, None], "dora": [21, 21],
        "root": [None, None],
    }  # fmt: skip
    rows = house.page("otto", "/questions")[2].split("<tr>")
    assert ["<strong>+4</strong> since" in row for row in rows[2:]] == [True, False]
    assert ["the same as on" in row for row in rows[2:]] == [False, True]
    assert ["Count from now" in row for row in rows[2:]] == [True, False]
    assert house.page("otto", "/questions/ours/see", x="1")[:2] == (303, "/questions")
    assert "<strong>+" not in house.page("otto", "/questions")[2]
    assert "<strong>+3</strong>" in house.page("dora", "/questions")[2]
    page = house.page("root", "/questions")[2]
    assert (page.count("Count from now"), "since" in page.partition("<tbody>")[2]) == (2, False)
    users.remove(records, "dora2")
    assert house.ask("dora", "DELETE", "/ours2")[0] == 204
    assert looks(house) == {(1, "otto"): 24, (1, "carl"): front}
    users.remove(records, "dora")  # nobody's from here on, and still shared
    assert house.ask("otto", "GET", "/ours")[1]["seen_frames"] == 24


def test_the_page_saves_lists_and_opens_questions(house: House) -> None:
    """A question of Find comes back as its fields; the list has its difference, for its owner."""
    asked = "min.car=1000&camera=front_center"
    assert "Save the question" in house.page("dora", f"/?{asked}")[2]
    assert "Save the question" not in house.page("otto", f"/?{asked}")[2]
    saved = house.page("dora", "/questions", name="front cars", asked=asked, shared="1")
    assert saved[0] == 400
    assert house.page("dora", "/questions", name="cars", asked=asked, shared="1")[:2] == (
        303, "/questions",
    )  # fmt: skip
    assert house.page("dora", "/questions", name="at", asked=f"{asked}&at=1")[0] == 400
    assert house.page("dora", "/questions/cars")[1] == f"/?{asked}"
    assert 'href="/questions/cars"' in house.page("otto", "/")[2]
    assert 'aria-label="Saved questions"' not in house.page("otto", f"/?{asked}")[2]
    records = RecordStore(house.home / "records" / "records.sqlite")
    with records.session() as session:
        session.query(SavedQuestion).update({"frames": 1})
    _, _, listed = house.page("dora", "/questions")
    assert "1,000 car pixels" in listed
    assert "<strong>+" in listed
    _, _, seen = house.page("otto", "/questions")
    assert "1,000 car pixels" in seen
    assert "<strong>+" not in seen
    assert 'action="/questions/cars/remove"' not in seen
    assert house.page("dora", "/questions/cars/see", x="1")[:2] == (303, "/questions")
    assert "the same as on" in house.page("dora", "/questions")[2]
    assert house.page("dora2", "/questions/cars/remove", x="1")[0] == 403
    assert house.page("dora", "/questions/cars/remove", x="1")[0] == 303
    assert "No question is saved yet" in house.page("dora", "/questions")[2]


@pytest.mark.parametrize(
    ("query", "fields"),
    [
        ("min.car=1&max.car=9&has.sky=1&without.bicycle=1", True),
        ("camera=a&camera=b&scene=s&where=speed+%3E+3", True),
        ("is.weather=rain&is.weather=snow&not.quality=bad&is.road=wet", True),
        ("min.speed=1.5&max.speed=30", True),
        ("question=%7B%22model%22%3A+%22m%22%7D&min.car=1", True),
        ("min.car=5&question=%7B%22ranges%22%3A+%5B%7B%22tag%22%3A+%22car%22%2C+%22lowest%22%3A+1%7D%5D%7D",
         False),
    ],
)  # fmt: skip
def test_a_question_becomes_its_fields(query: str, fields: bool) -> None:
    """The URL that is made of a question asks it; what has no field is JSON, never left out."""
    classes = ("car", "sky", "bicycle")
    question = UrlQuestion.of(parse_qsl(query)).question(classes)
    made = UrlQuestion.of_question(question, classes)
    assert made.question(classes).model_dump() == question.model_dump()
    assert sorted(made.pairs) == sorted(parse_qsl(query)) or not fields
    odd = {"kind": "share", "tag": "car", "lowest": 0.5}
    (pair,) = UrlQuestion.of_question(Question.model_validate({"condition": odd}), classes).pairs
    assert (pair[0], json.loads(pair[1])) == ("question", {"condition": odd})


def test_commands_save_show_and_remove(
    catalogued: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the options of select; the list has what was saved."""
    monkeypatch.setenv("FRAMESIFT_HOME", str(copy_home(catalogued, tmp_path)))

    def run(*words: str) -> str:
        result = CliRunner().invoke(question_app, list(words), catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return str(result.output)

    assert "saved question cars: " in run("save", "cars", "--range", "car=1000:", "--shared")
    assert "cars" in run("list")
    assert "(+0 since " in run("show", "cars")
    assert "question cars: " in run("seen", "cars")
    assert "removed question cars" in run("remove", "cars")
    assert "cars" not in run("list")
