"""framesift run: by command, over REST, by the client; whose programs a server runs."""

import json
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

import framesift as client_package
from api.app import create_app
from api.services.accounts.callers import Caller
from api.services.call import Call
from api.services.jobs.programs import need_programs
from api.settings import Settings
from catalog.errors import NotAllowed
from tests.api.servers import framesift, serving
from tests.pipeline.homes import copy_home, open_home
from tests.pipeline.test_datasets import make

ODD = '"loss": 1.17, "step": "last", "miou": "good", "warnings": "none", "below": 3'
"""Metrics that a program may write."""

BODY = {"kind": "run", "dataset": "all@1", "command": "wc -l {files}"}


@pytest.mark.wide
def test_a_server_runs_no_programs_unless_it_is_told_to(catalogued: Path, tmp_path: Path) -> None:
    """Proves the default refuses everybody, resuming too, and what a program's job answers."""
    home = copy_home(catalogued, tmp_path)
    workspace = open_home(home)
    make(workspace, "all")
    workspace.close()
    with TestClient(create_app(Settings(home=home, cache=None), authenticates=False)) as client:
        refused = client.post("/v1/jobs", json=BODY)
        assert refused.status_code == 403
        assert "FRAMESIFT_RUN_PROGRAMS" in refused.json()["detail"]
        for wrong in ({"ranks": 0}, {"command": ""}, {"workers": 2}, {"start_after": 500}):
            assert client.post("/v1/jobs", json=BODY | wrong).status_code == 422
    settings = Settings(home=home, cache=None, run_programs="admins")
    with TestClient(create_app(settings, authenticates=False)) as client:
        answer = client.post("/v1/jobs", json=BODY | {"name": "lines", "ranks": 1})
        assert answer.status_code == 202, answer.text
        job = answer.json()
        assert (job["kind"], job["dataset"], job["state"]) == ("run", "all@1", "pending")
        assert job["settings"]["command"] == "wc -l '{files}'"
        assert job["paths"]["output"] == f"{job['paths']['folder']}/output"
        assert client.get("/v1/jobs", params={"kind": "run"}).json()["jobs"][0]["name"] == "lines"
        misspelled = client.post("/v1/jobs", json=BODY | {"command": "wc {flies}"})
        assert (misspelled.status_code, misspelled.json()["title"]) == (400, "UnknownName")
        client.post("/v1/jobs/lines/cancel")


@pytest.mark.parametrize(
    ("allowed", "roles", "scope", "may"),
    [
        ("nobody", "admin", "admin", False),
        ("admins", "admin", "admin", True),
        ("admins", "admin", "write", False),
        ("admins", "dataadmin", "admin", False),
        ("users", "dataadmin", "write", True),
        ("users", "dataadmin", "read", False),
        ("users", "collectionadmin", "write", False),
        ("users", "datauser", "admin", False),
    ],
)
def test_whose_programs_run(
    allowed: str, roles: str, scope: str, may: bool, catalogued: Path
) -> None:
    """Proves the setting by role and token; a command on the home asks nobody."""
    settings = Settings(home=catalogued, cache=None, run_programs=allowed)
    workspace = open_home(catalogued).__class__(settings)
    caller = Caller("eve", frozenset({roles}), scope, logged_in=True, rules=())
    if may:
        need_programs(Call(workspace, caller))
    else:
        with pytest.raises(NotAllowed):
            need_programs(Call(workspace, caller))
    need_programs(Call(workspace, is_command=True))
    workspace.close()


@pytest.mark.wide
def test_a_program_measures_what_it_likes(catalogued: Path, tmp_path: Path) -> None:
    """Proves that a loss without a step, as the PyTorch example writes it, is followed and shown.

    A text of a megabyte is cut in the job's metrics, and whole in result.json.
    """
    home = copy_home(catalogued, tmp_path)
    workspace = open_home(home)
    make(workspace, "all")
    workspace.close()
    metrics = {"loss": 1.17, "steps": 6, "frames": 20, "note": "é" * 500_000, "car iou": 0.5}
    (tmp_path / "metrics.json").write_text(json.dumps(metrics))
    command = f"cp {tmp_path}/metrics.json {{job}}"
    ran = framesift(home, "run", "all", "--command", command, "--name", "mine")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "loss          1.17" in ran.stdout
    waited = framesift(home, "jobs", "wait", "mine", "--json")
    assert (waited.returncode, waited.stderr) == (0, "")
    job = json.loads(waited.stdout)
    kept = {name: value for name, value in job["metrics"].items() if name in metrics}
    assert kept == metrics | {"note": "é" * 4096}
    result = json.loads((Path(job["paths"]["folder"]) / "result.json").read_text())
    assert result["note"] == metrics["note"]


@pytest.mark.wide
def test_by_command_and_client(catalogued: Path, tmp_path: Path) -> None:
    """Proves home, server and client run the same program alike, and give its outputs.

    Its metrics have names of ours, and other values.
    """
    home = copy_home(catalogued, tmp_path)
    workspace = open_home(home)
    frames = make(workspace, "all").frames
    workspace.close()
    program = tmp_path / "count.sh"
    program.write_text(
        f'wc -l < "$1" > "$2/lines-$RANK"; echo \'{{"seen": {frames}, {ODD}}}\' > "$2/metrics.json"'
    )
    command = "sh count.sh {files} {job}"
    done = framesift(
        home, "run", "all", "--command", command, "--ranks", "2", "--folder", tmp_path, "--json"
    )
    assert done.returncode == 0, done.stderr
    job = json.loads(done.stdout)
    assert (job["state"], job["metrics"]["seen"], job["metrics"]["output_files"]) == (
        "done",
        frames,
        3,
    )
    wrong = framesift(home, "run", "all", "--command", "sh {flies}")
    assert (wrong.returncode, "did you mean {files}" in wrong.stderr) == (1, True)
    variables = {"FRAMESIFT_RUN_PROGRAMS": "admins"}
    with serving(home, variables=variables) as (url, _), client_package.connect(url) as client:
        options = {"ranks": 2, "folder": str(tmp_path), "name": "by-client"}
        ran = client.datasets.get("all").run(["sh", "count.sh", "{files}", "{job}"], **options)
        ran.wait()
        assert ran.metrics["seen"] == frames
        assert int(ran.file("output/lines-1")) == frames
        assert ran.result()["lineage"]["dataset"] == "all@1"
        told = framesift(
            home, "run", "all", "--command", f"sh {program} {{files}} {{job}}",
            variables={"FRAMESIFT_SERVER": url, "FRAMESIFT_HOME": str(tmp_path / "none")},
        )  # fmt: skip
        assert (told.returncode, told.stderr) == (0, "")
        assert "done" in told.stdout
