"""The command line against a server: the same words as on the home itself."""

import json
import re
import shutil
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

from api.cli.own_machine import REASONS
from catalog.policies import policies as policy_records
from catalog.records.policy_tables import Policy
from tests.api.servers import framesift, serving, several
from tests.api.test_command_line import COMMANDS as ALL
from tests.pipeline.homes import FRAMES, REPOSITORY, open_home

pytestmark = pytest.mark.wide

COMMANDS = [
    ["source", "list"],
    ["classes"],
    ["classes", "--by", "camera", "--range", "car=1:"],
    ["classes", "--quantiles", "--camera", "front_center"],
    ["histogram", "car", "--zero", "car", "--bins", "5"],
    ["histogram", "camera", "car", "--edges", "car=0,1,1000000"],
    ["facets", "--range", "car=10000:", "--camera", "front_center"],
    ["tags", "list"],
    ["sql", "select count(*) from metaocean"],
    [
        "sql",
        "select scene, car from metaocean_view where car > 100 order by fkey",
        "--format",
        "table",
    ],
    ["sql", "select fkey from metaocean order by fkey", "--format", "ndjson", "--at", "3"],
    ["sql", "select car from metaocean_view", "--explain"],
    ["sql", "select nope from metaocean"],
    ["select", "--range", "car=10000:", "--order", "car desc"],
    ["select", "--range", "car=9000000:"],
    ["select", "--range", "car=10000:", "--explain"],
    ["select", "--has", "bicycle", "--format", "csv"],
    ["select", "--range", "cra=1:"],
    ["dataset", "diff", "city@1", "city@2"],
    ["dataset", "export", "city"],
    ["dataset", "export", "city@1", "--format", "jsonl", "--split", "train"],
    ["dataset", "export", "city", "--format", "parquet"],
    ["dataset", "list"],
    ["dataset", "show", "city@1"],
    ["dataset", "show", "nope"],
    ["gaps", "city", "--at-least", "30", "--split", "validation"],
    ["gaps", "city"],
    ["duplicates"],
    ["jobs", "list"],
    ["jobs", "show", "nope"],
    ["jobs", "logs", "nope"],
]
"""Commands that only read: asked of one home, by both ways."""


@pytest.fixture(scope="module")
def served(shared_home: Path) -> Iterator[tuple[Path, str]]:
    """A home with datasets, and a server of it."""
    ended = several(
        shared_home,
        ["dataset", "create", "city", "--split", "train=0.5,validation=0.5"],
        ["dataset", "split", "city", "--split", "train=0.75,validation=0.25"],
        ["dataset", "create", "few", "--cover", "bicycle=2"],
    )
    assert [status for status, _, _ in ended] == [0, 0, 0]
    with serving(shared_home) as (url, _):
        yield shared_home, url


MEMORY = re.compile(r'; the newest snapshot is not in memory[^\n]*|"(in_memory|note)": [^\n]*')
"""What facets say of where frames were counted."""


@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
def test_the_same_answers(served: tuple[Path, str], tmp_path: Path, as_json: bool) -> None:
    """Output, errors and exit codes: of the home, and of its server from an empty home."""
    home, url = served
    commands = [
        [
            *command,
            *(["--json"] if as_json and command[:2] != ["dataset", "export"] else []),
        ]
        for command in COMMANDS
        if not (as_json and command[:2] == ["jobs", "logs"])
    ]
    here = several(home, *commands)
    there = several(tmp_path / "empty", *[["--server", url, *command] for command in commands])
    for command, one, other in zip(commands, here, there, strict=True):
        if command[0] == "facets":  # which the server counts in files until it has them in memory
            assert other[0] == one[0] == 0, command
            assert MEMORY.sub("", other[1]) == MEMORY.sub("", one[1]), command
        else:
            assert other == one, command
    assert not (tmp_path / "empty").exists()


def test_files_are_the_same(served: tuple[Path, str], tmp_path: Path) -> None:
    """Selections, statements and datasets written to files, in every form."""
    home, url = served
    commands = [
        ["select", "--range", "car=1:", "--format", "parquet", "--out", "a.parquet"],
        ["select", "--range", "car=9000000:", "--format", "arrow", "--out", "b.arrow"],
        ["sql", "select * from metaocean order by fkey", "--format", "arrow", "--out", "c.arrow"],
        ["dataset", "export", "city", "--format", "parquet", "--out", "d.parquet"],
        ["dataset", "export", "city", "--format", "files", "--with-labels", "--out", "e.txt"],
    ]
    for name, before in (("here", []), ("there", ["--server", url])):
        (tmp_path / name).mkdir()
        commands_into = [
            [*before, *command[:-1], str(tmp_path / name / command[-1])] for command in commands
        ]
        assert [status for status, _, _ in several(home, *commands_into)] == [0] * len(
            commands_into
        )
    for file in (tmp_path / "here").iterdir():
        other = tmp_path / "there" / file.name
        if file.suffix == ".arrow":  # with other padding
            one, two = (pa.ipc.open_file(path).read_all() for path in (file, other))
            assert two.equals(one), file.name
            assert two.schema.equals(one.schema), file.name
        else:
            assert other.read_bytes() == file.read_bytes(), file.name
    assert len(list((tmp_path / "there").iterdir())) == len(commands)


def test_what_changes_changes_the_server(home: Path, tmp_path: Path) -> None:
    """Datasets, tags, sources, stagings and scans are made there, with a home's own words."""
    table = tmp_path / "weather.csv"
    fkey = json.loads(framesift(home, "select", "--limit", "1", "--json").stdout)["frames"][0][
        "fkey"
    ]
    table.write_text(f"fkey,weather\n{fkey},rain\nnowhere,sun\n")
    commands = [
        ["dataset", "create", "cars", "--range", "car=1:", "--split", "train=1", "--seed", "3"],
        ["dataset", "create", "m", "--match", "dataset:cars", "--frames", "6", "--tolerance", "1"],
        ["dataset", "create", "s", "--sample", "6", "--stratify", "camera", "--allow-leakage"],
        ["dataset", "extend", "m", "--gap", "bicycle=3"],
        ["dataset", "reduce", "m", "--frames", "4", "--seed", "1"],
        ["select", "--has", "bicycle", "--save", "bikes"],
        ["tags", "add", "weather", "--kind", "Restricted", "--values", "sun,rain"],
        ["tags", "import", str(table), "--family", "w2", "--key", "fkey", "--prefix", "w_",
         "--rejected", str(tmp_path / "rejected.csv")],
        ["tags", "import", str(tmp_path / "none.csv"), "--family", "w3"],
        ["source", "add", "docs", str(REPOSITORY / "docs")],
        ["source", "add", "docs", str(REPOSITORY / "docs")],
        ["source", "remove", "docs", "--yes"],
        ["ingest", "a2d2", "--errors"],
        ["ingest", "none"],
    ]  # fmt: skip
    other = tmp_path / "other"
    shutil.copytree(home, other)
    here = several(home, *commands)
    rejected = (tmp_path / "rejected.csv").read_text()
    with serving(other) as (url, _):
        remote = ["--server", url]
        there = several(tmp_path / "empty", *[[*remote, *command] for command in commands])
        staged = json.loads(framesift(tmp_path, *remote, "stage", "cars", "--json").stdout)
        scanned = framesift(tmp_path, *remote, "ingest", "a2d2", "--full")
        jobs = json.loads(framesift(tmp_path, *remote, "jobs", "list", "--json").stdout)
        staging = next(job["name"] for job in jobs if job["kind"] == "stage")
        log = framesift(tmp_path, *remote, "jobs", "logs", staging).stdout
    for command, one, two in zip(commands, here, there, strict=True):
        assert [str(word).replace(str(other), str(home)) for word in two] == [
            str(word) for word in one
        ], command
    assert (tmp_path / "rejected.csv").read_text() == rejected
    assert staged["files"] == staged["files_copied"] > 0
    assert staged["cache"] == str(other / "cache")
    assert '"files_copied"' in log
    assert f"counted {FRAMES} frames" in scanned.stdout
    listed = json.loads(framesift(other, "dataset", "list", "--json").stdout)
    assert [row["name"] for row in listed] == ["bikes", "cars", "m", "m", "m", "s"]


ASKED = {
    "info": [], "show": ["f"], "ingest": ["a2d2"], "sql": ["select 1 from metaocean"], "select": [],
    "classes": [], "histogram": ["car"], "facets": [],
    "correlate": ["v"], "gaps": ["d"], "stage": ["d"],
    "cache verify": ["d"], "cache status": [], "cache limit": [],
    "cache pin": ["d"], "cache unpin": ["d"], "cache evict": ["d"], "cache contents": ["d"],
    "scans list": [], "stagings list": [], "stagings running": [], "stagings cancel": ["s"],
    "duplicates": [],
    "train": ["d"], "validate": ["m", "d"], "predict": ["m", "d"],
    "improve": ["m"], "audit": [],
    "source add": ["s", "/"], "source list": [], "source remove": ["s", "--yes"],
    "tags list": [], "tags add": ["t"], "tags group": ["t = a + b"],
    "tags set": ["t", "--kind", "Open"],
    "tags extract": ["a2d2", "image"], "tags import": ["FILE.csv", "--family", "f"],
    "tags import-map": ["FILE.geojson", "--family", "f", "--within", "5"], "tags families": [],
    "tags import-scores": ["j"], "tags drop": ["f"], "tags remove": ["t"],
    "dataset create": ["d"], "dataset list": [], "dataset show": ["d"],
    "dataset split": ["d", "--split", "a=1"], "dataset extend": ["d", "--gap", "car=1"],
    "dataset diff": ["d", "e"], "dataset export": ["d"], "dataset rename": ["d", "e"],
    "dataset describe": ["d", "words"], "dataset remove": ["d"],
    "dataset reduce": ["d", "--frames", "5"], "dataset rebuild": ["d"],
    "run": ["d", "--command", "true"], "preflight": [], "scaling": ["d"],
    "jobs compare": ["j", "k"], "jobs timeline": ["j"],
    "jobs remove": ["j"],
    "source set": ["s", "/x"], "source show": ["s"], "tags values": ["t"],
    "jobs list": [], "jobs usage": [], "jobs show": ["j"], "jobs logs": ["j"], "jobs wait": ["j"],
    "jobs cancel": ["j"],
    "jobs resume": ["j"], "models list": [], "models show": ["m"],
    "user add": ["u", "--role", "admin", "--no-password"], "user list": [], "user passwd": ["u"],
    "user disable": ["u"], "user remove": ["u"], "user roles": ["u", "admin"],
    "user quota": ["u", "--jobs", "1"],
    "token create": ["t", "--user", "u"], "token list": [], "token revoke": ["1"],
    "collection add": ["c", "size > 1"], "collection list": [], "collection assign": ["c", "u"],
    "collection remove": ["c"],
    "labels check": ["a2d2"], "policy list": [], "policy run": ["p"], "policy due": [],
    "trigger add": ["t", "--when", "car > 0", "--then", "train"], "trigger list": [],
    "trigger show": ["t"], "trigger remove": ["t"], "trigger enable": ["t"],
    "trigger disable": ["t"],
    "webhook add": ["w", "https://x/"], "webhook list": [], "webhook show": ["w"],
    "webhook remove": ["w"],
    "question save": ["q", "--has", "car"], "question list": [], "question show": ["q"],
    "question seen": ["q"], "question remove": ["q"],
}  # fmt: skip
"""Every command that asks a server, with arguments that it can be asked with."""

DRIVE_JOBS = {"jobs daemon", "jobs run-once"}
"""What a server does by itself; the command refuses to ask one."""
OF_NO_HOME = {
    "login", "logout", "context", "sample-data", "layout list", "layout show", "layout check",
    "labels convert",
}  # fmt: skip


def test_every_command_asks_the_server_or_says_why_not(tmp_path: Path) -> None:
    """None works on the home of this machine by mistake, or is left out of the page."""
    leaves = {
        name for name in ALL if name and not any(other.startswith(f"{name} ") for other in ALL)
    }
    own = {name for name in leaves if name.split()[0] in REASONS} | DRIVE_JOBS
    assert set(ASKED) | OF_NO_HOME | own == leaves
    assert not own & set(ASKED)
    (tmp_path / "FILE.csv").write_text("fkey,x\n1,2\n")
    (tmp_path / "FILE.geojson").write_text('{"type": "Point", "coordinates": [11, 48]}')
    commands = [
        [*name.split(), *(a.replace("FILE", str(tmp_path / "FILE")) for a in arguments)]
        for name, arguments in ASKED.items()
    ]
    remote_commands = [["--server", "http://127.0.0.1:9", *command] for command in commands]
    parts = [remote_commands[begin : begin + 8] for begin in range(0, len(remote_commands), 8)]
    with ThreadPoolExecutor(len(parts)) as pool:  # each command waits a while and tries again
        ended = pool.map(lambda match: several(tmp_path / "home", *match), parts)
        answers = [answer for answered in ended for answer in answered]
    for command, (status, out, err) in zip(commands, answers, strict=True):
        assert (status, out) == (1, ""), command
        assert "http://127.0.0.1:9: no answer: " in err, command
        assert err.count("\n") == 1, command
    page = " ".join((REPOSITORY / "docs" / "remote.md").read_text(encoding="utf-8").split())
    for word, reason in REASONS.items():
        assert f"`{word}" in page, word
        assert reason.split(":")[0] in page, reason
    assert not (tmp_path / "home").exists()


def test_the_page_lists_every_command_that_asks_a_server() -> None:
    """The table of docs/remote.md names each, as `jobs list`, or its group alone, as `user`."""
    page = (REPOSITORY / "docs" / "remote.md").read_text(encoding="utf-8")
    listed = set()
    for words in re.findall(r"`([^`]+)`", " ".join(re.findall(r"^\| (.+?) \| ", page, re.M))):
        *group, names = words.split()
        listed |= {" ".join((*group, name)) for name in names.split(r"\|")}
    assert {name for name in ASKED if listed.isdisjoint((name, name.split()[0]))} == set()


@pytest.mark.parametrize(
    "command", [["compact"], ["catalog", "backup", "x"], ["serve"], ["watch", "a2d2"], ["demo"]]
)
def test_what_needs_a_home_says_so(tmp_path: Path, command: list[str]) -> None:
    """Nothing is done on the home of this machine by mistake; and why."""
    for variables, before in (
        ({}, ["--server", "http://127.0.0.1:9"]),
        ({"FRAMESIFT_SERVER": "http://127.0.0.1:9"}, []),
    ):
        run = framesift(tmp_path / "home", *before, *command, variables=variables)
        assert (run.returncode, run.stdout) == (1, "")
        assert "works on a home on its own machine" in run.stderr
        assert REASONS[command[0]] in run.stderr
    assert not (tmp_path / "home").exists()


def without_numbers_of_the_run(ended: tuple[int, str, str]) -> list[str]:
    """What a command said, without times, progress, names of jobs and runs, and secrets."""
    text = [re.sub(r'(?m)^({"family": |tags of a2d2: ).*\n', "", str(output)) for output in ended]
    for pattern in (
        r"\d{4}-\d\d-\d\dT[\d:]+Z", r"fs_[\w-]+", r'"run": "\w+"', r'"job": "[\w-]*"',
        r"in [\d.]+ s \(\d+ frames/s\)", r'"seconds": [\d.]+',
    ):  # fmt: skip
        text = [re.sub(pattern, "*", piece) for piece in text]
    return text


def test_tags_policies_and_people_are_the_server_s(home: Path, tmp_path: Path) -> None:
    """The same words and documents, for what is done and what is refused; noted by the server."""
    workspace = open_home(home)
    for name, state in (("left", "active"), ("off", "inactive")):
        policy_records.add(
            workspace.records,
            Policy(
                name=name, action="AUTOTAG", parameters={"tags": {"turn": "left"}},
                condition="filename like '%front_left%'", schedule="NOW", state=state,
                collections=[], owner="", updated_by="",
            ),
        )  # fmt: skip
    workspace.close()
    frames = json.loads(framesift(home, "select", "--limit", "2", "--json").stdout)["frames"]
    places_csv, bridges, broken = (
        tmp_path / n for n in ("places.csv", "b.geojson", "broken.geojson")
    )
    places_csv.write_text(
        "fkey,latitude_deg,longitude_deg\n"
        f"{frames[0]['fkey']},48.0,11.0\n{frames[1]['fkey']},49.0,11.0\n"
    )
    point = {"type": "Feature", "geometry": {"type": "Point", "coordinates": [11.0, 48.0]}}
    bridges.write_text(json.dumps({"type": "FeatureCollection", "features": [point, point]}))
    broken.write_text('{"type": "Point"')
    near = ["--family", "bridge", "--within", "100"]
    commands = [
        ["tags", "add", "mood", "--kind", "Restricted", "--values", "good,bad"],
        ["tags", "set", "mood", "--kind", "restricted", "--values", "good,bad,odd"],
        ["tags", "set", "mood", "--kind", "Open", "--json"],
        ["tags", "set", "moo", "--kind", "Open"],
        ["tags", "add", "gone"],
        ["tags", "remove", "gone"],
        ["tags", "remove", "gone", "--json"],
        ["tags", "remove", "car"],
        ["tags", "extract", "a2d2", "image", "lidar"],
        ["tags", "extract", "a2d2", "image", "--full", "--json"],
        ["tags", "extract", "a2d2", "image", "--errors"],
        ["tags", "extract", "a2d2", "imag"],
        ["tags", "extract", "nope", "image"],
        ["tags", "extract", "a2d2"],
        ["tags", "import", str(places_csv), "--family", "place", "--key", "fkey"],
        ["tags", "import-map", str(bridges), *near],
        ["tags", "import-map", str(bridges), *near, "--tag", "gate", "--json"],
        ["tags", "import-map", str(bridges), *near, "--latitude", "nope"],
        ["tags", "import-map", str(broken), *near],
        ["tags", "import-map", str(tmp_path / "none"), *near],
        ["tags", "families"],
        ["tags", "drop", "place", "--json"],
        ["tags", "drop", "place"],
        ["tags", "families", "--json"],
        ["tags", "list"],
        ["policy", "list"],
        ["policy", "run", "left"],
        ["policy", "run", "left", "--json"],
        ["policy", "run", "off"],
        ["policy", "run", "nope"],
        ["policy", "due"],
        ["policy", "list", "--json"],
        ["user", "add", "anna", "--role", "admin", "--no-password"],
        ["user", "add", "otto", "--role", "datauser", "--no-password", "--json"],
        ["user", "add", "otto", "--role", "datauser", "--no-password"],
        ["user", "add", "ada", "--role", "king", "--no-password"],
        ["user", "roles", "otto", "dataadmin", "datauser"],
        ["user", "disable", "otto", "--json"],
        ["user", "disable", "otto", "--undo"],
        ["user", "disable", "anna"],
        ["user", "passwd", "nobody"],
        ["user", "list"],
        ["token", "create", "nightly", "--user", "otto", "--scope", "write", "--days", "30"],
        ["token", "create", "nightly", "--user", "otto"],
        ["token", "create", "other", "--user", "otto", "--json"],
        ["token", "list", "--user", "otto"],
        ["token", "revoke", "1"],
        ["token", "revoke", "7"],
        ["token", "list", "--json"],
        ["collection", "add", "big", "size > 1000 and datasource = 'a2d2'"],
        ["collection", "add", "bad", "car > 1"],
        ["collection", "assign", "big", "otto"],
        ["collection", "list"],
        ["collection", "assign", "big", "otto", "--undo", "--json"],
        ["collection", "remove", "big"],
        ["collection", "remove", "big"],
        ["user", "remove", "otto"],
        ["user", "remove", "otto"],
    ]  # fmt: skip
    other = tmp_path / "other"
    shutil.copytree(home, other)
    here = several(home, *commands)
    with serving(other) as (url, _):
        remote = ["--server", url]
        there = several(tmp_path / "empty", *[[*remote, *command] for command in commands])
        password = "a sentence is a good one\n"
        add = [*remote, "user", "passwd", "anna", "--password-stdin"]
        changed = framesift(tmp_path, *add, stdin=password)
        noted = json.loads(framesift(tmp_path, *remote, "audit", "--limit", "3", "--json").stdout)
        before = ["audit", "--before", str(noted[1]["id"]), "--limit", "1", "--json"]
        (earlier,) = json.loads(framesift(tmp_path, *remote, *before).stdout)
        own = framesift(tmp_path, *remote, "tags", "extract", "a2d2", "--extractor", "x.py:X")
    told = [
        (command, without_numbers_of_the_run(one), without_numbers_of_the_run(two))
        for command, one, two in zip(commands, here, there, strict=True)
    ]
    assert [each for each in told if each[1] != each[2]] == []
    assert (changed.returncode, changed.stdout) == (0, "user anna has another password\n")
    assert [(one["what"], one["target"], one["outcome"]) for one in noted] == [
        ("PATCH", "/v1/users/anna", "200"), ("DELETE", "/v1/users/otto", "404"),
        ("DELETE", "/v1/users/otto", "204"),
    ]  # fmt: skip
    assert earlier == noted[2]
    assert "a server runs no code of its clients" in own.stderr


def test_options_of_a_home_are_refused(served: tuple[Path, str]) -> None:
    """A scan's engine and a stage's cache are the server's affair."""
    home, url = served
    for command in (["ingest", "a2d2", "--workers", "2"], ["stage", "city", "--cache", "/tmp/x"]):
        run = framesift(home, "--server", url, *command)
        assert run.returncode == 1
        assert "server" in run.stderr
        assert run.stderr.count("\n") == 1


def test_no_server_is_one_line(tmp_path: Path) -> None:
    """Nothing listens there; no URL at all."""
    for url in ("http://127.0.0.1:9", "gopher://x", "http://127.0.0.1:port"):
        run = framesift(tmp_path, "--server", url, "classes")
        assert (run.returncode, run.stdout) == (1, "")
        assert run.stderr.startswith("error: ")
        assert run.stderr.count("\n") == 1


def test_tokens_are_sent_to_their_server_and_kept_apart(home: Path, tmp_path: Path) -> None:
    """By option, by environment, by login; the environment's only to the environment's server."""
    framesift(home, "user", "add", "anna", "--role", "dataadmin", "--no-password")
    token_run = framesift(
        home, "token", "create", "t", "--user", "anna", "--scope", "read", "--json"
    )
    token = json.loads(token_run.stdout)["token"]
    config = tmp_path / "config" / "framesift"
    own = {"FRAMESIFT_CONFIG": str(config)}
    with serving(home, authenticates=True) as (url, _):
        command = ["--server", url, "classes", "--json"]
        refused = framesift(tmp_path, *command, variables=own)
        assert "send 'Authorization: Bearer TOKEN'" in refused.stderr
        assert framesift(tmp_path, "--token", token, *command, variables=own).returncode == 0
        for server, status in ((url, 0), ("http://127.0.0.1:9", 1)):
            variables = own | {"FRAMESIFT_TOKEN": token, "FRAMESIFT_SERVER": server}
            assert framesift(tmp_path, *command, variables=variables).returncode == status

        wrong = framesift(tmp_path, "login", url, stdin=f"{token}x\n", variables=own)
        assert wrong.returncode == 1
        assert not config.exists()
        run = framesift(tmp_path, "login", url, stdin=f"{token}\n", variables=own)
        assert (run.returncode, run.stderr) == (0, "")
        assert token not in run.stdout
        file = config / "tokens.json"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(config.stat().st_mode) == 0o700
        assert framesift(tmp_path, *command, variables=own).returncode == 0
        forbidden = framesift(tmp_path, "--server", url, "tags", "add", "weather", variables=own)
        assert "may read with this token" in forbidden.stderr
        file.chmod(0o644)
        assert (
            "other users may read these tokens"
            in framesift(tmp_path, *command, variables=own).stderr
        )
        file.chmod(0o600)
        assert framesift(tmp_path, "logout", url, variables=own).returncode == 0
        assert framesift(tmp_path, *command, variables=own).returncode == 1
        for words in (["login", url, "--token", token], ["--token", token, "login", url]):
            assert framesift(tmp_path, *words, variables=own).returncode == 0
            assert framesift(tmp_path, *command, variables=own).returncode == 0
            assert framesift(tmp_path, "logout", url, variables=own).returncode == 0
        wrong = framesift(tmp_path, "login", url, "--token", f"{token}x", variables=own)
        assert (wrong.returncode, "no token" in wrong.stderr) == (1, False)
        both = framesift(tmp_path, "login", url, "--token", token, "--user", "anna", variables=own)
        assert "--token and --user: a token needs no password" in both.stderr
    assert json.loads(file.read_text()) == {}


def test_a_password_gives_a_token_that_makes_another(home: Path, tmp_path: Path) -> None:
    """For FRAMESIFT_SERVER where no URL is given; a wrong password keeps nothing."""
    password = "a sentence is a good one"
    add = ["user", "add", "anna", "--role", "datauser", "--password-stdin"]
    assert framesift(home, *add, stdin=password).returncode == 0
    own = {"FRAMESIFT_CONFIG": str(tmp_path / "config")}
    with serving(home, authenticates=True) as (url, _):
        there = own | {"FRAMESIFT_SERVER": url}
        none = framesift(tmp_path, "login", stdin="x", variables=own)
        assert "no server: give its URL" in none.stderr
        wrong = framesift(tmp_path, "login", "--user", "anna", stdin="wrong\n", variables=there)
        assert (wrong.returncode, wrong.stdout) == (1, "")
        assert wrong.stderr == "error: no such user and password\n"
        assert not (tmp_path / "config").exists()
        asks = framesift(tmp_path, "token", "list", variables=there)
        assert asks.stderr.endswith("; framesift login URL keeps one\n")
        login = framesift(tmp_path, "login", "--user", "anna", stdin=password, variables=there)
        assert (login.returncode, login.stderr) == (0, "")
        assert login.stdout.splitlines()[0].endswith(" for an hour")
        assert "is the default, but FRAMESIFT_SERVER or FRAMESIFT_HOME is set" not in login.stdout
        context = framesift(tmp_path, "context", "--json", variables=there)
        assert json.loads(context.stdout)["default_server"] == url
        created = framesift(
            tmp_path, "token", "create", "laptop", "--user", "anna", variables=there
        )
        assert created.returncode == 0, created.stderr
        again = framesift(tmp_path, "login", stdin=created.stdout, variables=there)
        assert again.returncode == 0, again.stderr
        refused = framesift(tmp_path, "token", "create", "more", "--user", "anna", variables=there)
        assert "a token makes no tokens" in refused.stderr
        listed = json.loads(framesift(tmp_path, "token", "list", "--json", variables=there).stdout)
        assert [(one["name"], one["state"]) for one in listed] == [("laptop", "valid")]
        assert framesift(tmp_path, "logout", variables=there).returncode == 0
