"""A server's first answers while it loads the newest snapshot, and how much memory the load takes.

    .venv/bin/python -m benchmarks.cold_start [--frames 1000000] [--home HOME] [--rounds 3]
        [--beside PROGRAM]

Drawn frames as catalog_scale has them, or those of a home, which is copied. As soon as the server
listens, three clients ask at once: Find's first page, a range of pixels and a count in SQL. Seconds
are from then to the answer; CPU is the server's, user and system, to that answer and until the
snapshot is in memory with what is prepared after it. Memory is resident: the peak until then, and
what is held after the page and the questions have been asked again. --beside names another
version's `framesift`, which is asked in turn over the same home.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import httpx

from benchmarks.catalog_scale import CLASS_LIST, fill_home
from ingest.labels.class_list import ClassList
from tests.api.servers import FRAMESIFT, environment
from tests.ingest.s3_server import free_port
from tests.pipeline.homes import open_home

_TICK = os.sysconf("SC_CLK_TCK")
_RANGE = {
    "ranges": [
        {"tag": "car", "lowest": 10_000, "highest": 12_000},
        {"tag": "bicycle", "lowest": 1_000},
    ],
    "cameras": ["front_center"],
    "limit": 100,
}
_COUNT = "select count(*) from t_car where int(value) between 10000 and 20000"

Ask = Callable[[httpx.Client], httpx.Response]
_ASKED: dict[str, Ask] = {
    "Find's first page": lambda client: client.get("/"),
    "a range": lambda client: client.post("/v1/selections", json=_RANGE),
    "a count in SQL": lambda client: client.post("/db2whrest/v1/sql_query", content=_COUNT),
}


def main() -> None:
    """Print the figures of each round, and their medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=1_000_000)
    parser.add_argument("--home", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--beside", type=Path)
    options = parser.parse_args()
    programs = {"now": FRAMESIFT} | ({"before": options.beside} if options.beside else {})
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder, "home")
        if options.home:
            shutil.copytree(options.home, home)
        else:
            classes = ClassList.from_colours(json.loads(CLASS_LIST.read_bytes()))
            workspace = open_home(home)
            names = dict(zip(classes.tags, classes.classes, strict=True))
            fill_home(workspace, names, options.frames)
            workspace.close()
        figures: dict[str, dict[str, list[float]]] = {name: defaultdict(list) for name in programs}
        for _ in range(options.rounds):
            for name, program in programs.items():
                for figure, value in _start(program, home).items():
                    figures[name][figure].append(value)
    print(f"medians of {options.rounds}; load {os.getloadavg()[0]:.1f}")
    print("| | " + " | ".join(programs) + " |\n|---" + "|---" * len(programs) + "|")
    for figure in figures["now"]:
        cells = [_cell(figures[name][figure]) for name in programs]
        print(f"| {figure} | {' | '.join(cells)} |")


def _cell(values: list[float]) -> str:
    spread = f" ({min(values):,.2f} to {max(values):,.2f})" if len(values) > 1 else ""
    return f"{statistics.median(values):,.2f}{spread}"


def _start(program: Path, home: Path) -> dict[str, float]:
    """Serve once: the figures."""
    port = free_port()
    call = [str(program), "serve", "--port", str(port), "--no-auth", "--log-level", "warning"]
    with subprocess.Popen(call, env=environment(home), stdout=subprocess.DEVNULL) as process:
        try:
            return _asked(process, f"http://127.0.0.1:{port}")
        finally:
            process.terminate()
            process.wait(60)


def _asked(process: "subprocess.Popen[bytes]", url: str) -> dict[str, float]:
    figures: dict[str, float] = {}
    with httpx.Client(base_url=url, timeout=600) as client:
        _until(lambda: _answers(client, "/healthz"), 0.01)
        began, cpu = time.monotonic(), _cpu_s(process.pid)
        figures["until it listens, CPU s"] = cpu

        def ask(name: str, request: Ask) -> None:
            with httpx.Client(base_url=url, timeout=600) as own:
                request(own).raise_for_status()
            figures[f"{name}, s"] = time.monotonic() - began
            figures[f"{name}, CPU s of the server until then"] = _cpu_s(process.pid) - cpu

        threads = [threading.Thread(target=ask, args=each) for each in _ASKED.items()]
        for thread in threads:
            thread.start()
        _until(lambda: _answers(client, "/readyz"), 1.0)
        figures["until it is loaded, s"] = time.monotonic() - began
        figures["until it is loaded, CPU s"] = _cpu_s(process.pid) - cpu
        for thread in threads:
            thread.join()
        peak = _status_mb(process.pid, "VmHWM")
        for request in _ASKED.values():
            request(client).raise_for_status()
        held = _status_mb(process.pid, "VmRSS")
    return figures | {
        "memory at the peak, MB": peak,
        "memory held afterwards, MB": held,
        "peak to held": peak / held,
    }


def _until(holds: Callable[[], bool], every_s: float) -> None:
    while not holds():
        time.sleep(every_s)


def _answers(client: httpx.Client, path: str) -> bool:
    try:
        return client.get(path).status_code == httpx.codes.OK
    except httpx.TransportError:
        return False


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / _TICK


def _status_mb(pid: int, name: str) -> float:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    (line,) = (line for line in lines if line.startswith(f"{name}:"))
    return int(line.split()[1]) * 1024 / 1e6


if __name__ == "__main__":
    main()
