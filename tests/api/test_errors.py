"""Which error is which status: the table, and that nothing escapes it."""

import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

import catalog.errors as errors
from api.app import create_app
from api.http.errors import STATUSES, status_of
from api.settings import Settings

EXAMPLES: dict[type[errors.FramesiftError], errors.FramesiftError] = {
    errors.FramesiftError: errors.FramesiftError("something"),
    errors.InvalidInput: errors.InvalidInput("bad"),
    errors.NothingToAdd: errors.NothingToAdd("no frame is left"),
    errors.UnknownName: errors.UnknownName("class", "cra", ["car"]),
    errors.ClassListMissing: errors.ClassListMissing("no list"),
    errors.NotFound: errors.NotFound("job", "x"),
    errors.NotMade: errors.NotMade("catalog", "/x", "FRAMESIFT_HOME"),
    errors.AlreadyExists: errors.AlreadyExists("job", "x"),
    errors.PreconditionFailed: errors.PreconditionFailed("user", "x"),
    errors.InUse: errors.InUse("tag", "x", "it is a class's"),
    errors.RemovalRefused: errors.RemovalRefused("a2d2", 300, 400, 0.05),
    errors.NotAuthenticated: errors.NotAuthenticated("who"),
    errors.NotAllowed: errors.NotAllowed("no"),
    errors.LoginThrottled: errors.LoginThrottled(3.5),
    errors.TooManyJobs: errors.TooManyJobs("anna", 20),
    errors.TooManyStreams: errors.TooManyStreams(100),
    errors.ServerBusy: errors.ServerBusy(5.0),
    errors.BodyTooLarge: errors.BodyTooLarge(10),
    errors.BadFile: errors.BadFile("cut", "a.png"),
    errors.UnreadableFile: errors.UnreadableFile("cannot be read", "a.png"),
    errors.ArchivedFile: errors.ArchivedFile("is archived", "a.png"),
    errors.OtherVersion: errors.OtherVersion("another version is there", "a.png"),
    errors.SqlError: errors.SqlError(-206, "42703", "no"),
    errors.StorageError: errors.StorageError("full", "/x"),
    errors.StoreAway: errors.StoreAway("no answer", "postgresql://db/x"),
    errors.CacheFull: errors.CacheFull("full", "/x", ("streets@2, which job t reads",)),
    errors.SourceFails: errors.SourceFails("no answer"),
    errors.CatalogBusy: errors.CatalogBusy("busy"),
    errors.CatalogDamaged: errors.CatalogDamaged("damaged"),
    errors.CollectionFails: errors.CollectionFails(),
    errors.JobFailed: errors.JobFailed("x", "failed"),
    errors.StagingCancelled: errors.StagingCancelled("cancelled"),
    errors.EngineFailed: errors.EngineFailed("x"),
    errors.ProviderFails: errors.ProviderFails("https://id.example.com", "does not answer"),
}
EXPECTED = {
    "FramesiftError": 500, "InvalidInput": 400, "NothingToAdd": 400, "UnknownName": 400,
    "ClassListMissing": 400,
    "NotFound": 404, "NotMade": 404, "AlreadyExists": 409, "InUse": 409,
    "RemovalRefused": 409, "PreconditionFailed": 412,
    "NotAuthenticated": 401, "NotAllowed": 403, "LoginThrottled": 429,
    "TooManyJobs": 429, "TooManyStreams": 429,
    "ServerBusy": 503, "BodyTooLarge": 413,
    "BadFile": 422, "UnreadableFile": 422, "ArchivedFile": 422, "OtherVersion": 422,
    "SqlError": 400, "StorageError": 507, "StoreAway": 503, "CacheFull": 507, "SourceFails": 502,
    "CatalogBusy": 503, "CatalogDamaged": 500, "CollectionFails": 500,
    "JobFailed": 500, "StagingCancelled": 409, "EngineFailed": 502, "ProviderFails": 503,
}  # fmt: skip


def _all(kind: type[errors.FramesiftError]) -> Iterator[type[errors.FramesiftError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from _all(below)


OURS = sorted({k for k in _all(errors.FramesiftError) if k.__module__ == "catalog.errors"}, key=str)


@pytest.mark.parametrize("kind", OURS)
def test_errors_come_back_from_another_process(kind: type[errors.FramesiftError]) -> None:
    """An error that a worker pickled is the same error: class, message and attributes."""
    error = EXAMPLES[kind]
    copied = pickle.loads(pickle.dumps(error))
    assert type(copied) is kind
    assert (str(copied), copied.args, vars(copied)) == (str(error), error.args, vars(error))


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """An application with one route that raises what it is told."""
    app = create_app(Settings(home=tmp_path_factory.mktemp("home")), authenticates=False)

    @app.get("/raise/{name}")
    async def _raise(name: str) -> None:
        if name == "RuntimeError":
            raise RuntimeError("secret path /home/somebody")
        raise next(example for kind, example in EXAMPLES.items() if kind.__name__ == name)

    with TestClient(app, raise_server_exceptions=False) as opened:  # refusals are noted
        yield opened


@pytest.mark.parametrize("kind", OURS, ids=lambda kind: kind.__name__)
def test_every_error_has_its_status(client: TestClient, kind: type[errors.FramesiftError]) -> None:
    """Each class of the tree, found along its MRO, as a problem document that repeats it."""
    assert set(STATUSES) <= set(OURS)
    answer = client.get(f"/raise/{kind.__name__}")
    assert answer.status_code == status_of(EXAMPLES[kind]) == EXPECTED[kind.__name__]
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert (body["title"], body["detail"]) == (kind.__name__, str(EXAMPLES[kind]))


def test_a_new_subclass_needs_no_entry() -> None:
    """The nearest known class above it decides."""

    class Later(errors.BadFile):
        pass

    assert status_of(Later("x")) == 422


def test_the_unexpected_is_a_problem_too(client: TestClient) -> None:
    """A bug of ours: the same shape, and nothing of its message."""
    answer = client.get("/raise/RuntimeError")
    assert answer.status_code == 500
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["title"] == "InternalError"
    assert "secret" not in answer.text


def test_discovers_routes_answer_in_discovers_shape(tmp_path: Path) -> None:
    """A store that cannot be opened is no Db2 error, and has the same two keys."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "catalog").touch()
    with TestClient(create_app(Settings(home=tmp_path / "home"), authenticates=False)) as client:
        answer = client.post("/db2whrest/v1/sql_query", content="select 1 from metaocean")
    assert answer.status_code == 507
    assert answer.json()["status"] == "error"
    assert "catalog" in answer.json()["reason"]
