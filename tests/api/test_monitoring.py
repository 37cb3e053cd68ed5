"""What deploy/prometheus and deploy/grafana name is in /metrics, documented, and understood.

`curl .../metrics | python -m tests.api.test_monitoring` writes the table into docs/serving.md; of a
server with TLS and a cache, which has all of them.
"""

import json
import re
import shutil
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Any

import httpx
import pytest
import yaml
from cryptography import x509

from api.server.self_signed import self_signed
from catalog.accounts import tokens, users
from catalog.maintenance.backup import Backup
from catalog.maintenance.last_backup import record_backup
from catalog.records.sources import add_source, recorded_source
from catalog.records.tables import Job, Source
from ingest.scan import scan_record
from ingest.scan.scan_counts import ScanCounts
from pipeline.jobs.request import write_json
from tests.api.servers import serving, wait_until
from tests.api.test_abuse import ENDLESS
from tests.ingest.s3_server import free_port
from tests.pipeline.homes import copy_home, open_home

ROOT = Path(__file__).parents[2]
PROMETHEUS, GRAFANA = ROOT / "deploy" / "prometheus", ROOT / "deploy" / "grafana"
DASHBOARDS = sorted(GRAFANA.glob("*.json"))
RULES: list[dict[str, Any]] = [
    rule
    for group in yaml.safe_load((PROMETHEUS / "rules.yml").read_text("utf-8"))["groups"]
    for rule in group["rules"]
]
ALERTS = [rule for rule in RULES if "alert" in rule]
_METRIC = re.compile(r"(?<![\w:])((?:framesift|process)_\w+)")

OF_DCGM = frozenset(
    "DCGM_FI_DEV_" + name
    for name in (
        "SM_CLOCK", "MEM_CLOCK", "MEMORY_TEMP", "GPU_TEMP", "POWER_USAGE",
        "TOTAL_ENERGY_CONSUMPTION", "PCIE_REPLAY_COUNTER", "GPU_UTIL", "MEM_COPY_UTIL", "ENC_UTIL",
        "DEC_UTIL", "XID_ERRORS", "FB_FREE", "FB_USED",
    )
)  # fmt: skip
"""Metrics that dcgm-exporter has without settings of its own: etc/default-counters.csv of
https://github.com/NVIDIA/dcgm-exporter, at commit 00d6d34."""

needs_prometheus = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="Prometheus (Debian: prometheus) is not installed"
)


def panels_of(dashboard: Path) -> list[dict[str, Any]]:
    """A dashboard's panels."""
    panels: list[dict[str, Any]] = json.loads(dashboard.read_text("utf-8"))["panels"]
    return panels


def asked_by(panel: dict[str, Any]) -> list[str]:
    """A panel's expressions, with Grafana's variables replaced."""
    return [
        target["expr"]
        .replace("$__rate_interval", "5m")
        .replace("$instance", ".*")
        .replace("$name", ".*")
        for target in panel["targets"]
    ]


def asked_by_dashboards() -> list[str]:
    """The expressions of all panels."""
    return [
        expression
        for dashboard in DASHBOARDS
        for panel in panels_of(dashboard)
        for expression in asked_by(panel)
    ]


def asked_by_variables() -> list[str]:
    """What the dashboards' variables ask for their values, as Grafana and as a reader sees it."""
    return [
        asked
        for dashboard in DASHBOARDS
        for variable in json.loads(dashboard.read_text("utf-8"))["templating"]["list"]
        if variable["type"] == "query"
        for asked in (variable["definition"], variable["query"]["query"])
    ]


def families(metrics: str) -> set[str]:
    """Names of the metrics in an answer of /metrics."""
    names = re.findall(r"^# TYPE (\w+) ", metrics, re.MULTILINE)
    return {name for name in names if not name.endswith("_created")}


def samples(metrics: str, name: str) -> dict[str, float]:
    """Values of a metric by its labels as they are written."""
    pattern = rf"^{name}(?:\{{(.*)\}})? (\S+)$"
    return {labels: float(value) for labels, value in re.findall(pattern, metrics, re.MULTILINE)}


def run(*command: str | Path) -> str:
    """What a program writes; it must succeed."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def home(catalogued: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a cache, scans of two sources, a watch of one, a backup, and trainings."""
    home = copy_home(catalogued, tmp_path_factory.mktemp("monitored"))
    (home / "cache").mkdir()
    workspace = open_home(home)
    add_source(
        workspace.records,
        Source(
            name="a2d2-more",
            uri="/more",
            platform="NFS",
            cluster="local",
            datasource="more",
            site="",
        ),
    )
    for name, kind, counts in (
        ("a2d2", scan_record.SCAN, ScanCounts(files=7, seconds=3.5)),
        ("a2d2", scan_record.WATCH, ScanCounts(files=9, seconds=4.5)),
        ("a2d2-more", scan_record.SCAN, ScanCounts(files=11, seconds=5.5)),
    ):
        source = recorded_source(workspace.records, name)
        scan_record.update(
            workspace.records, scan_record.begin(workspace.records, source, kind), counts
        )
    with workspace.records.session() as session:
        session.add_all(jobs_in(home))
    workspace.close()
    record_backup(home, Backup(7, MADE, 3, 4711), Path("/backups/monday.tar"))
    return home


MADE = datetime.now(UTC).replace(tzinfo=None, microsecond=0) - timedelta(hours=1)


def jobs_in(home: Path) -> list[Job]:
    """Records and folders of jobs of a backend that nobody asks."""
    jobs = []
    for name, state, backend, metrics in (
        ("city", "running", "slurm", {"loss": 0.5, "miou": 0.25, "images_per_s": 12.5, "step": 40}),
        ("city-2", "running", "local", {"loss": float("nan"), "step": 3, "miou": "good"}),
        ("old", "done", "local", {"loss": 0.1, "miou": 0.9, "images_per_s": 99.0, "step": 100}),
    ):
        folder = home / "jobs" / name
        (folder / "model").mkdir(parents=True)
        begun = [{"host": "node-0"}, {"host": f"of-{name}"}]
        write_json(folder / "model" / "run.json", {"begun": begun})
        if backend == "local":
            write_json(folder / "status.json", {"state": state, "hosts": ["here"]})
        jobs.append(
            Job(
                name=name, kind="train", backend=backend, state=state, metrics=metrics,
                request={}, paths={"folder": str(folder)}, handle="framesift-1:4711,4712",
                owner="", user="anna", account="", created=MADE,
            )
        )  # fmt: skip
    return jobs


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate and its key."""
    return self_signed(tmp_path_factory.mktemp("tls"), "127.0.0.1")


@pytest.fixture(scope="module")
def metrics(home: Path, certificate: tuple[Path, Path]) -> str:
    """/metrics of a server with TLS."""
    options = ("--tls-cert", str(certificate[0]), "--tls-key", str(certificate[1]))
    with serving(home, *options) as (url, _):
        return httpx.get(f"{url}/metrics", verify=False, timeout=120).text


PAGE, BEGIN, END = (
    ROOT / "docs" / "serving.md",
    "<!-- metrics: begin -->\n",
    "<!-- metrics: end -->",
)


def listed(metrics: str) -> str:
    """The table of docs/serving.md: name, kind and words of each metric that a server has."""
    words = dict(re.findall(r"^# HELP (framesift_\w+) (.*)$", metrics, re.MULTILINE))
    kinds = dict(re.findall(r"^# TYPE (framesift_\w+) (\w+)$", metrics, re.MULTILINE))
    rows = [
        f"| `{name}` | {kinds[name]} | {words[name]} |\n"
        for name in sorted(words)
        if not name.endswith("_created")
    ]
    return "".join(["| metric | | |\n|---|---|---|\n", *rows])


def test_every_metric_is_documented(metrics: str) -> None:
    """docs/serving.md has the words of the metrics that a server has, and no others."""
    table = listed(metrics)
    assert len(re.findall("^.*`framesift_", table, re.MULTILINE)) == len(
        [name for name in families(metrics) if name.startswith("framesift_")]
    )
    between = PAGE.read_text("utf-8").partition(BEGIN)[2].partition(END)[0]
    assert between == table, "run: curl .../metrics | python -m tests.api.test_monitoring"


def test_rules_and_dashboards_name_metrics_that_exist(metrics: str) -> None:
    """And series that the rules record."""
    known = families(metrics)
    recorded = {rule["record"] for rule in RULES if "record" in rule}
    expressions = [*(rule["expr"] for rule in RULES), *asked_by_dashboards()]
    assert len(expressions) > 90
    dcgm = {name for each in expressions for name in re.findall(r"\bDCGM_\w+", each)}
    assert len(dcgm) > 4
    assert dcgm <= OF_DCGM
    for expression in expressions:
        named = {name.removesuffix("_bucket") for name in _METRIC.findall(expression)}
        assert named <= known, expression
        assert set(re.findall(r"\w+:\w+:\w+", expression)) <= recorded, expression


def test_variables_name_labels_that_exist(metrics: str) -> None:
    """Of metrics that the server has; `instance` is Prometheus' own."""
    asked = asked_by_variables()
    assert len(asked) == 8
    assert asked[::2] == asked[1::2]
    for each in asked:
        match = re.fullmatch(r"label_values\((\w+), (\w+)\)", each)
        assert match, each
        labels = samples(metrics, match[1])
        assert labels, each
        for series in labels:
            assert match[2] in {"instance", *re.findall(r'(\w+)="', series)}, each


def test_figures_of_scans_disk_certificate_and_compactions(
    metrics: str, home: Path, certificate: tuple[Path, Path]
) -> None:
    """Those that alerts look at: a watch beside a scan is told from it; 0 before the first."""
    assert samples(metrics, "framesift_scan_seconds") == {
        'kind="scan",source="a2d2"': 3.5,
        'kind="watch",source="a2d2"': 4.5,
        'kind="scan",source="a2d2-more"': 5.5,
    }
    assert set(samples(metrics, "framesift_scan_files").values()) == {7, 9, 11}
    (free,) = samples(metrics, "framesift_home_free_bytes").values()
    assert free == pytest.approx(shutil.disk_usage(home).free, rel=0.05)
    (expiry,) = samples(metrics, "framesift_certificate_expiry_timestamp_seconds").values()
    written = x509.load_pem_x509_certificate(certificate[0].read_bytes())
    assert expiry == written.not_valid_after_utc.timestamp()
    (backup,) = samples(metrics, "framesift_last_backup_timestamp_seconds").values()
    assert backup == MADE.replace(tzinfo=UTC).timestamp()
    compactions = samples(metrics, "framesift_compactions_total")
    assert compactions == {'end="done"': 0, 'end="failed"': 0}


def test_gauges_of_running_jobs(metrics: str) -> None:
    """Figures that are numbers, of jobs that run; machines by runner or record, Slurm's numbers."""
    city, city_2 = 'kind="train",name="city"', 'kind="train",name="city-2"'
    assert samples(metrics, "framesift_job_loss") == {city: 0.5}
    assert samples(metrics, "framesift_job_miou") == {city: 0.25}
    assert samples(metrics, "framesift_job_images_per_second") == {city: 12.5}
    assert samples(metrics, "framesift_job_step") == {city: 40, city_2: 3}
    assert samples(metrics, "framesift_job_host").keys() == {
        'host="of-city",name="city"', 'host="here",name="city-2"',
    }  # fmt: skip
    assert samples(metrics, "framesift_job_scheduler_id").keys() == {
        'hpc_job="4711",name="city"', 'hpc_job="4712",name="city"',
    }  # fmt: skip


def test_alerts_say_what_to_do() -> None:
    """Each has a summary, a test of its own, and a row of docs/monitoring.md with its runbook."""
    page = (ROOT / "docs" / "monitoring.md").read_text("utf-8")
    tested = yaml.safe_load((PROMETHEUS / "rules.test.yml").read_text("utf-8"))["tests"]
    fired = {
        (case["alertname"], alert["exp_labels"]["severity"])
        for test in tested
        for case in test.get("alert_rule_test", ())
        for alert in case["exp_alerts"]
    }
    assert fired == {(alert["alert"], alert["labels"]["severity"]) for alert in ALERTS}
    rows = dict(re.findall(r"^\| `(\w+)` (\|.*)$", page, re.MULTILINE))
    assert list(rows) == list(dict.fromkeys(alert["alert"] for alert in ALERTS))
    for alert in ALERTS:
        assert alert["annotations"]["summary"].endswith(".")
        runbook = alert["annotations"]["runbook"]
        assert f"({runbook.removeprefix('docs/')})" in rows[alert["alert"]], runbook


def test_dashboards_can_be_imported() -> None:
    """Their names differ, panels have ids and places of their own, the datasource is a variable."""
    boards = [json.loads(path.read_text("utf-8")) for path in DASHBOARDS]
    assert len({board["uid"] for board in boards}) == len(boards) == 3
    assert len({board["title"] for board in boards}) == 3
    jobs = json.loads((GRAFANA / "jobs.json").read_text("utf-8"))["uid"]
    for board in boards:
        assert board["schemaVersion"] == 38
        kinds = {variable["name"]: variable["type"] for variable in board["templating"]["list"]}
        of_jobs = {"name": "query"} if board["uid"] == jobs else {}
        assert kinds == {"datasource": "datasource", "instance": "query", **of_jobs}
        ids = [panel["id"] for panel in board["panels"]]
        assert len(set(ids)) == len(ids) > 10
        cells: list[tuple[int, int]] = []
        for panel in board["panels"]:
            at = panel["gridPos"]
            assert at["x"] + at["w"] <= 24
            cells += [(x, y) for x in range(at["x"], at["x"] + at["w"])
                      for y in range(at["y"], at["y"] + at["h"])]  # fmt: skip
            sources = [panel["datasource"], *(target["datasource"] for target in panel["targets"])]
            assert all(source["uid"] == "${datasource}" for source in sources)
            assert all("$instance" in target["expr"] for target in panel["targets"])
            refs = [target["refId"] for target in panel["targets"]]
            assert len(set(refs)) == len(refs) > 0
        assert len(set(cells)) == len(cells)


@pytest.mark.wide
@needs_prometheus
def test_promtool_understands_rules_and_dashboards(tmp_path: Path) -> None:
    """The rules do what their tests say; what panels ask is PromQL."""
    assert f"{len(RULES)} rules found" in run(
        "promtool", "check", "rules", PROMETHEUS / "rules.yml"
    )
    run("promtool", "test", "rules", PROMETHEUS / "rules.test.yml")
    run("promtool", "check", "config", "--syntax-only", PROMETHEUS / "prometheus.yml")
    panels = [
        {"record": f"panel:{number}", "expr": expression}
        for number, expression in enumerate(asked_by_dashboards())
    ]
    written = tmp_path / "panels.yml"
    written.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": panels}]}), "utf-8")
    assert f"{len(panels)} rules found" in run("promtool", "check", "rules", written)


@contextmanager
def prometheus(config: dict[str, Any], folder: Path) -> Iterator[httpx.Client]:
    """A Prometheus, asked by its API."""
    file, address = folder / "prometheus.yml", f"127.0.0.1:{free_port()}"
    file.write_text(yaml.safe_dump(config), "utf-8")
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            ["prometheus", f"--config.file={file}", f"--storage.tsdb.path={folder / 'data'}",
             f"--web.listen-address={address}"], stdout=log, stderr=log,
        )  # fmt: skip
    try:
        with httpx.Client(base_url=f"http://{address}/api/v1", timeout=120) as client:
            yield client
    finally:
        process.terminate()
        process.wait(120)


_ROUTES = {"/v1/sql", "/v1/selections", "/v1/frames", "/v1/overlays/{fkey:path}", "/datasets"}
_UNDER_LOAD = {
    "Reachable": ("job", {"framesift"}),
    "Free on the home's disk": ("job", {"framesift"}),
    "Requests by route": ("route", _ROUTES),
    "Requests by status": ("status", {"200"}),
    "95th percentile by route": ("route", _ROUTES),
    "Questions: time to the first rows": ("kind", {"sql", "selection", "picture"}),
    "Statements and tasks": ("state", {"running"}),
    "Memory": ("job", {"framesift"}),
    "Made pictures on disk": ("job", {"framesift"}),
    "Made pictures: hits": ("", {""}),
}
"""Panels of serving.json, a label of their series, and its values that must be above 0."""


@contextmanager
def load(url: str, certificate: Path, token: str) -> Iterator[None]:
    """SQL, selections, made pictures and pages that threads ask of a server until the block's end.

    Each answer must be 200; one statement runs at each moment, and ends with its client.
    """
    end = Event()
    context = ssl.create_default_context(cafile=str(certificate))
    headers = {"Authorization": f"Bearer {token}", "Accept": "*/*"}
    with httpx.Client(base_url=url, headers=headers, verify=context, timeout=120) as client:
        fkey = client.get("/v1/frames", params={"limit": 1}).json()["frames"][0]["fkey"]

        def statements() -> None:
            with suppress(httpx.ReadTimeout):
                client.post("/v1/sql", json={"statement": ENDLESS}, timeout=3)

        def questions() -> None:
            for answer in (
                client.post("/v1/sql", json={"statement": "select count(*) from t_car"}),
                client.post("/v1/selections", json={"ranges": [{"tag": "car", "lowest": 1}]}),
            ):
                assert answer.status_code == 200, answer.text

        def pages() -> None:
            for path in ("/v1/frames?limit=5", f"/v1/overlays/{fkey}?width=100", "/datasets"):
                answer = client.get(path)
                assert answer.status_code == 200, answer.text

        def repeated(ask: Callable[[], None]) -> None:
            while not end.wait(0.1):
                ask()

        with ThreadPoolExecutor() as threads:
            running = [threads.submit(repeated, ask) for ask in (statements, questions, pages)]
            try:
                yield
            finally:
                end.set()
            for each in running:
                each.result()


@pytest.mark.wide
@needs_prometheus
def test_a_prometheus_scrapes_a_server(
    home: Path, certificate: tuple[Path, Path], tmp_path: Path
) -> None:
    """By the example's configuration, with a token over TLS; it evaluates every rule and panel.

    Others ask meanwhile, and panels show what they ask.
    """
    workspace = open_home(home)
    users.add(workspace.records, "prometheus", ["dataadmin"], None)
    users.add(workspace.records, "anna", ["dataadmin"], None)
    day = timedelta(days=1)
    _, token = tokens.create(workspace.records, "prometheus", "scrapes", "read", day)
    _, annas = tokens.create(workspace.records, "anna", "asks", "write", day)
    workspace.close()
    (tmp_path / "token").write_text(token)
    config = yaml.safe_load((PROMETHEUS / "prometheus.yml").read_text("utf-8"))
    config["global"] = {"scrape_interval": "3s", "evaluation_interval": "1s"}
    config["rule_files"] = [str(PROMETHEUS / "rules.yml")]
    (job,) = config["scrape_configs"]
    job["authorization"]["credentials_file"] = str(tmp_path / "token")
    job["tls_config"] = {"ca_file": str(certificate[0])}
    options = ("--tls-cert", str(certificate[0]), "--tls-key", str(certificate[1]))
    with serving(home, *options, authenticates=True) as (url, _):
        job["static_configs"] = [{"targets": [url.removeprefix("https://")]}]
        with prometheus(config, tmp_path) as ask, load(url, certificate[0], annas):

            def values(expression: str) -> list[Any]:
                try:
                    answer = ask.get("/query", params={"query": expression})
                except httpx.TransportError:  # it starts
                    return []
                if answer.status_code == 503:  # it reads its folder
                    return []
                assert answer.json()["status"] == "success", answer.text
                result: list[Any] = answer.json()["data"]["result"]
                return result

            def unlike_ok() -> list[str]:
                groups = ask.get("/rules").json()["data"]["groups"]
                rules = [rule for group in groups for rule in group["rules"]]
                assert len(rules) == len(RULES)
                assert [rule["name"] for rule in rules if rule.get("state") == "firing"] == []
                return [rule["health"] for rule in rules if rule["health"] != "ok"]

            def unlike_loaded() -> dict[str, set[str]]:
                panels = {panel["title"]: panel for panel in panels_of(GRAFANA / "serving.json")}
                absent = {}
                for title, (label, needed) in _UNDER_LOAD.items():
                    series = [one for asked in asked_by(panels[title]) for one in values(asked)]
                    above = {
                        one["metric"].get(label, "") for one in series if float(one["value"][1]) > 0
                    }
                    absent[title] = needed - above
                return {title: each for title, each in absent.items() if each}

            # Of two scrapes at least; whatever the machine does meanwhile to one of them.
            wait_until(lambda: values("route:framesift_requests:rate5m") != [])
            wait_until(lambda: unlike_ok() == [])
            wait_until(lambda: unlike_loaded() == {})
            assert [series["value"][1] for series in values("max_over_time(up[5m])")] == ["1"]
            scans = values('last_over_time(framesift_scan_seconds{kind="scan"}[5m])')
            assert sorted(series["value"][1] for series in scans) == ["3.5", "5.5"]
            for expression in asked_by_dashboards():
                values(expression)


if __name__ == "__main__":
    before, begin, rest = PAGE.read_text("utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{begin}{listed(sys.stdin.read())}{END}{after}", "utf-8")
