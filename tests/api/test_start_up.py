"""What commands import: starting is most of what a short one does."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from api.cli.exit_codes import ExitCode
from api.services.session import Session
from pipeline.jobs.follow import wait
from tests.api.servers import environment, serving
from tests.api.test_command_line import COMMANDS
from tests.pipeline.homes import REPOSITORY, copy_home, open_home
from tests.pipeline.jobs import submit_commands
from tests.pipeline.test_local_jobs import shell

pytestmark = pytest.mark.wide

CATALOG = {"duckdb", "sqlglot"}
RECORDS = {"sqlalchemy"}
ARROW = {"pyarrow", "numpy"}
OTHERS = {
    "tensorflow",
    "fastapi",
    "starlette",
    "uvicorn",
    "alembic",
    "matplotlib",
    "numba",
    "PIL",
    "pandas",
    "pydantic_settings",
    "pyarrow.compute",
    "pyarrow.dataset",
    "pyarrow.parquet",
    "catalog.memory.keeper",
    "catalog.memory.wide_tables",
}
REQUESTS = {
    "api.schemas.new_jobs",
    "api.schemas.new_datasets",
    "api.schemas.automation.new_triggers",
    "pipeline.runs.orders",
}
"""Models of what is sent, which those of answers do without."""

IMPORTED = """
import contextlib, io, json, sys
from api.cli.main import main
seen = []
for arguments in json.loads(sys.argv[1]):
    sys.argv, status = ["framesift", *arguments], 0
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as stop:
            status = stop.code or 0
    assert status == 0, (arguments, out.buffer.getvalue(), err.buffer.getvalue())
    seen.append(list(sys.modules))
print(json.dumps(seen))
"""
"""A program that runs commands one after another, and tells what is imported after each."""

_CSV = ["--limit", "1", "--format", "csv"]

HEAVY = CATALOG | RECORDS | ARROW | OTHERS


def imported(
    home: Path, *commands: list[str], among: set[str] = HEAVY, **variables: str
) -> list[set[str]]:
    """What of ``among`` is imported once each command, and those before it, have run."""
    run = subprocess.run(
        [sys.executable, "-P", "-c", IMPORTED, json.dumps(commands)],
        cwd=REPOSITORY, env=environment(home, variables),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    return [among & set(names) for names in json.loads(run.stdout)]


def test_help_imports_nothing_heavy(tmp_path: Path) -> None:
    """--version, and --help of every command: no database, no Arrow, no web framework."""
    commands = [["--version"], *([*name.split(), "--help"] for name in COMMANDS)]
    for command, modules in zip(commands, imported(tmp_path, *commands), strict=True):
        assert modules == set(), command


def test_version_imports_no_settings(tmp_path: Path) -> None:
    """Nor any command: it says one line."""
    code = (
        "import contextlib, sys\nfrom api.cli.main import main\n"
        "sys.argv = ['framesift', '--version']\n"
        "with contextlib.suppress(SystemExit):\n    main()\n"
        "print(*sys.modules)"
    )
    run = subprocess.run(
        [sys.executable, "-P", "-c", code],
        cwd=REPOSITORY, env=environment(tmp_path), capture_output=True, text=True, check=True,
    )  # fmt: skip
    names = run.stdout.split()
    assert "api.cli.main" in names
    assert "pydantic" not in names
    assert [name for name in names if name.startswith("api.cli.commands.")] == []


def test_asking_a_server_imports_no_database(home: Path, tmp_path: Path) -> None:
    """Neither the catalog's nor the records'; Arrow where rows come as Arrow or go to a file."""
    plain = [
        ["info"], ["source", "list"], ["tags", "list"], ["tags", "families"],
        ["classes"], ["classes", "--by", "camera", "--quantiles"], ["histogram", "car", "camera"],
        ["select", "--has", "car"], ["select", "--has", "car", "--json"],
        ["select", "--has", "car", "--explain"], ["sql", "select * from t_car", "--explain"],
        ["dataset", "create", "started", "--has", "car", "--split", "a=0.5,b=0.5"],
        ["dataset", "list"], ["dataset", "show", "started"], ["dataset", "export", "started"],
        ["dataset", "diff", "started", "started"], ["gaps", "started"], ["jobs", "list"],
        ["ingest", "a2d2"], ["user", "list"], ["token", "list"], ["collection", "list"],
        ["audit"], ["policy", "list"], ["policy", "due"],
    ]  # fmt: skip
    arrow = [
        ["sql", "select count(*) from metaocean"],
        ["select", "--has", "car", "--format", "csv"],
    ]
    commands = [*plain, *arrow]
    with serving(home) as (url, _):
        seen = imported(tmp_path / "none", *commands, FRAMESIFT_SERVER=url)
    for command, modules in zip(commands, seen, strict=True):
        assert modules <= (set() if command in plain else ARROW | {"pyarrow.compute"}), command
    assert not (tmp_path / "none").exists()


def test_a_home_is_asked_with_what_the_command_needs(catalogued: Path) -> None:
    """A statement without the records' database, records without the catalog's."""
    selected = ["select", "--has", "car"]
    written = [["sql", "select count(*) from metaocean"], [*selected, *_CSV], [*selected, "--json"]]
    table, count, rows, document = imported(catalogued, selected, *written)
    assert table == count == rows == CATALOG | {"pyarrow"}
    assert document == CATALOG | {"pyarrow", "pyarrow.compute"}
    assert imported(catalogued, written[0], among={"pydantic"}) == [set()]
    listed = [["info"], ["tags", "list"], ["tags", "families"]]
    assert imported(catalogued, *listed) == [{"duckdb"}] * 3
    assert imported(catalogued, ["classes"]) == [{"duckdb"} | ARROW]
    page, _ = Session(open_home(catalogued)).frames.page("", limit=1)
    fkey = page.frames[0]["fkey"]
    assert imported(catalogued, ["show", fkey], ["show", fkey, "--json"]) == [CATALOG | ARROW] * 2


@pytest.mark.parametrize("options", [["--sample", "1"], ["--sample=1"], ["--save", "begun"]])
def test_samples_and_datasets_have_numpy(home: Path, options: list[str]) -> None:
    """Which a plain selection does without."""
    assert imported(home, ["select", "--has", "car", *options])[0] >= ARROW


LISTS = [
    ["audit"], ["collection", "list"], ["dataset", "list"], ["jobs", "list"], ["models", "list"],
    ["policy", "list"], ["question", "list"], ["scans", "list"], ["source", "list"],
    ["stagings", "list"], ["token", "list"], ["trigger", "list"], ["user", "list"],
    ["webhook", "list"], ["jobs", "usage"], ["stagings", "running"],
]  # fmt: skip


def test_lists_import_no_database(catalogued: Path, tmp_path: Path) -> None:
    """Neither the catalog's, nor SQLAlchemy, nor Arrow: records are read by sqlite3 alone."""
    home = copy_home(catalogued, tmp_path)
    Session(open_home(home)).datasets.create("listed", question={"where": "car>0"})
    shown = [["dataset", "show", "listed"], ["dataset", "show", "listed", "--json"]]
    commands = [*LISTS, *([*one, "--json"] for one in LISTS), *shown]
    among = HEAVY | REQUESTS
    for command, modules in zip(commands, imported(home, *commands, among=among), strict=True):
        assert modules == set(), command


def test_logs_and_the_caches_status_open_no_records_store(catalogued: Path, tmp_path: Path) -> None:
    """They are records that are read, and files."""
    workspace = open_home(copy_home(catalogued, tmp_path))
    records = workspace.records
    job = wait(records, submit_commands(records, workspace.job_queue, shell("echo said")))
    commands = [["jobs", "logs", job.name], ["cache", "status"], ["cache", "status", "--json"]]
    for command, modules in zip(commands, imported(workspace.home, *commands), strict=True):
        assert modules & (CATALOG | RECORDS) == set(), command


def test_completion_and_help_import_no_pydantic(tmp_path: Path) -> None:
    """What a user waits for with a finger on the key: words of commands, and their options."""
    code = (
        "import contextlib, sys\nfrom api.cli.main import main\n"
        "sys.argv = ['framesift', *sys.argv[1:]]\n"
        "with contextlib.suppress(SystemExit):\n    main()\n"
        "print(*sys.modules)"
    )
    words = {"_FRAMESIFT_COMPLETE": "complete_bash", "COMP_CWORD": "2"}
    completed = {**words, "COMP_WORDS": "framesift select --cam"}
    for arguments, variables, answer in (
        ([], completed, "--camera"),
        ([], {**words, "COMP_WORDS": "framesift jobs li"}, "list"),
        (["select", "--help"], {}, "Usage: "),
    ):
        run = subprocess.run(
            [sys.executable, "-P", "-c", code, *arguments],
            cwd=REPOSITORY, env=environment(tmp_path, variables),
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        *lines, names = run.stdout.splitlines()
        assert any(answer in line for line in lines), run.stdout
        assert "api.cli.main" in names.split()
        assert "pydantic" not in names.split()


def test_the_program_ends_with_its_command(catalogued: Path) -> None:
    """With its status, and what it wrote is there; so with an error and a reader that left."""

    def run(*arguments: str, out: int = subprocess.PIPE) -> tuple[int, str, str]:
        code = "import sys; from api.cli.program import run; sys.argv[0] = 'framesift'; run()"
        ended = subprocess.run(
            [sys.executable, "-P", "-c", code, *arguments], cwd=REPOSITORY,
            env=environment(catalogued), stdout=out, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
        return ended.returncode, ended.stdout, ended.stderr

    status, out, _ = run("sql", "select fkey from metaocean")
    assert status == 0
    assert len(out.splitlines()) > 10
    assert run("select", "--range", "car=999999999:", "--strict")[0] == ExitCode.NOTHING_FOUND
    status, out, err = run("sql", "select nothing from metaocean")
    assert (status, out) == (1, "")
    assert err.startswith("error: ")
    assert run("select", "--nothing")[0] == 2
    reads, writes = os.pipe()
    os.close(reads)
    status, _, err = run("sql", "select fkey from metaocean", out=writes)
    os.close(writes)
    assert status != 0
    assert "Traceback" not in err
