"""The web page in Chromium: the first page, and how long a dragged range takes to be seen.

    .venv/bin/python -m benchmarks.page [--frames 41277 1000000] [--drags 40] [--seconds 20]

Drawn frames as catalog_scale has them, served by `framesift serve` with the newest snapshot in
memory. The first page is opened by a browser that has nothing in its cache: to the moment when its
numbers and plots stand there. A drag moves the end of a class's slider by the mouse, with a range,
a camera and another class asked beside it: from the browser's `input` event to the second picture
that it draws after all numbers and plots were changed; the first of them waits for the server. CPU
of a move, user and system, is counted in the server's process and in all of the browser's. What the
script itself takes of a step is timed with the layout after it, and how many the screen gets.

Then clients of SQL group by camera, alone and beside --draggers people who move a slider, each move
for a second: static/find.js asks for all positions when it begins, and for the page at its end.
"""

import argparse
import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlencode

import httpx
from playwright.sync_api import Browser, CDPSession, Page, sync_playwright

from benchmarks.catalog_scale import CLASS_LIST, REPOSITORY, load_frames
from ingest.labels.class_list import ClassList
from tests.api.servers import serving, until_ready
from tests.pipeline.homes import SAMPLE, add_source, open_home

_QUESTION = "min.bicycle=100&max.truck=50000&camera=front_center&camera=side_left"
_EACH_S = 0.12
"""Between two steps of the browser's move."""

_MOVE_S = 1.0
"""A person's move."""

_VALUES = ",".join(str(2**power) for power in range(20))
"""Of the positions of a slider."""

_WAIT_MS = 300_000  # that of a hang

_TIMED = """
() => {
  window.timed = [];
  let began = null;
  document.addEventListener("input", () => { began ??= performance.now(); }, true);
  document.addEventListener("framesift:drawn", () => {
    if (began === null) return;
    const since = began;
    began = null;
    requestAnimationFrame(() => requestAnimationFrame(() => {
      window.timed.push(performance.now() - since);
    }));
  });
}
"""

_STEPPED = """
async () => {
  const positions = steps.table.matching.length, script = [], layout = [];
  for (let step = 0; step < 200; step += 1) {
    const began = performance.now();
    draw(at(steps.table, step % positions));
    script.push(performance.now() - began);
    document.body.offsetHeight;
    layout.push(performance.now() - began);
  }
  const began = performance.now();
  for (let step = 0; step < 120; step += 1) {
    draw(at(steps.table, step % positions));
    await new Promise(requestAnimationFrame);
  }
  const aSecond = 120_000 / (performance.now() - began);
  const median = (times) => times.sort((one, other) => one - other)[times.length / 2];
  return [median(script), median(layout), aSecond];
}
"""
"""Of a slider that is held: ms of script a step, ms with layout, and steps a second."""


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, nargs="*", default=[41_277, 1_000_000])
    parser.add_argument("--drags", type=int, default=40)
    parser.add_argument("--memory-mb", type=int, default=8_000)
    parser.add_argument("--draggers", type=int, default=16)
    parser.add_argument("--sql-clients", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--chromium", default="chromium")
    parser.add_argument("--be", nargs=3, metavar=("WHAT", "URL", "NUMBER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.be:
        what, url, number = options.be
        be = _drag if what == "dragger" else _ask_sql
        print(json.dumps(asyncio.run(be(url, int(number), options.seconds))))
        return
    tags = list(ClassList.from_colours(json.loads(CLASS_LIST.read_bytes())).tags)
    for frames in options.frames:
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder, "home")
            workspace = open_home(home)
            load_frames(workspace.whole_catalog, tags, frames)
            add_source(workspace, "pictures", SAMPLE)  # and the classes' names
            workspace.close()
            print(f"{frames:,} frames", flush=True)
            variables = {"FRAMESIFT_SNAPSHOT_MEMORY_MB": str(options.memory_mb)}
            with serving(home, variables=variables) as (url, server):
                until_ready(url)
                _in_browser(url, server.pid, options.chromium, options.drags)
                _beside_sql(url, server.pid, options.draggers, options.sql_clients, options.seconds)


def _in_browser(url: str, server: int, program: str, drags: int) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=_found(program), args=["--no-sandbox", "--disable-gpu"]
        )
        for title in ("first page of the server", "first page of a browser"):
            seconds, sent = _first_page(browser, url)
            print(f"  {title}: {seconds:.2f} s, {sent / 1000:.0f} KB apart from images", flush=True)
        page = browser.new_page(viewport={"width": 1280, "height": 1000})
        page.goto(f"{url}/?{_QUESTION}", timeout=_WAIT_MS)
        page.wait_for_load_state("networkidle")
        page.evaluate(_TIMED)
        wire = browser.new_browser_cdp_session()
        in_server, in_browser = _cpu_s(server), _browser_cpu_s(wire)
        taken, (script, layout, a_second) = _dragged(page, drags)
        in_server, in_browser = _cpu_s(server) - in_server, _browser_cpu_s(wire) - in_browser
        print(
            f"  drag to new counts and plots, {len(taken)} moves: median "
            f"{statistics.median(taken):.0f} ms, longest {max(taken):.0f} ms; CPU of a move "
            f"{1000 * in_server / len(taken):.0f} ms in the server, "
            f"{1000 * in_browser / len(taken):.0f} ms in the browser\n  a step takes "
            f"{script:.1f} ms of script, {layout:.1f} ms with layout; {a_second:.0f} a second",
            flush=True,
        )  # fmt: skip
        browser.close()


def _cpu_s(process: int) -> float:
    """CPU that a process has taken, user and system [s]."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _browser_cpu_s(wire: CDPSession) -> float:
    """CPU that the processes of a browser have taken [s]."""
    processes = wire.send("SystemInfo.getProcessInfo")["processInfo"]
    return sum(float(process["cpuTime"]) for process in processes)


def _found(program: str) -> str:
    found = shutil.which(program)
    if found is None:
        raise SystemExit(
            f"{program}: no such program; apt-get install chromium, or --chromium PATH"
        )
    return found


def _first_page(browser: Browser, url: str) -> tuple[float, int]:
    """Seconds until the page stands there, and bytes that came, those of images left out."""
    context = browser.new_context(viewport={"width": 1280, "height": 1000})
    page = context.new_page()
    wire, kinds, sent = context.new_cdp_session(page), {}, 0

    def came(event: dict[str, str]) -> None:
        kinds[event["requestId"]] = event["type"]

    def ended(event: dict[str, float]) -> None:
        nonlocal sent
        if kinds.get(str(event["requestId"])) != "Image":
            sent += int(event["encodedDataLength"])

    wire.on("Network.responseReceived", came)
    wire.on("Network.loadingFinished", ended)
    wire.send("Network.enable")
    began = time.perf_counter()
    page.goto(url, wait_until="load", timeout=_WAIT_MS)
    page.locator("#matching").wait_for()
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    seconds = time.perf_counter() - began
    page.wait_for_load_state("networkidle")
    context.close()
    return seconds, sent


def _dragged(page: Page, drags: int) -> tuple[list[float], list[float]]:
    """Milliseconds from each move of the mouse to what it changed, and what `_STEPPED` says."""
    slider = page.get_by_label("Lowest Car", exact=True)
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 8, middle)
    page.mouse.down()
    for move in range(drags):
        known = page.evaluate("window.timed.length")
        share = 0.1 + 0.8 * (move % 12) / 12
        page.mouse.move(box["x"] + box["width"] * share, middle)
        while page.evaluate("window.timed.length") <= known:
            time.sleep(0.01)
        time.sleep(2 * _EACH_S)
    taken: list[float] = page.evaluate("window.timed")
    stepped: list[float] = page.evaluate(_STEPPED)
    page.mouse.up()
    return taken, stepped


def _beside_sql(url: str, server: int, draggers: int, clients: int, seconds: float) -> None:
    """How fast SQL is answered alone, and beside people who drag, and who takes how much CPU."""
    _in_process("sql", url, clients, 3)
    before = _cpu_s(server)
    alone = _answered(_in_process("sql", url, clients, seconds))
    of_statement = (_cpu_s(server) - before) / len(alone)
    with _begun("dragger", url, draggers, seconds + 4) as others:
        time.sleep(2)
        before = _cpu_s(server)
        beside = _answered(_in_process("sql", url, clients, seconds))
        taken = _cpu_s(server) - before
        dragged = json.loads(others.communicate()[0])
    for title, times in (("alone", alone), (f"beside {draggers} who drag", beside)):
        print(
            f"  SQL {title}: {len(times) / seconds:.1f} a second, median "
            f"{1000 * statistics.median(times):.0f} ms", flush=True,
        )  # fmt: skip
    answered = _answered(dragged)
    print(
        f"  their drags: {len(answered) / (seconds + 4):.1f} answers a second, median "
        f"{1000 * statistics.median(answered):.0f} ms; refused {dragged['refused']}; a statement "
        f"takes {1000 * of_statement:.0f} ms of CPU, SQL beside them "
        f"{of_statement * len(beside) / taken:.0%} of the server's", flush=True,
    )  # fmt: skip


def _answered(found: dict[str, list[float]]) -> list[float]:
    if not found["times"]:
        raise SystemExit(f"nothing was answered: {found}")
    return found["times"]


def _begun(what: str, url: str, number: int, seconds: float) -> "subprocess.Popen[str]":
    call = [sys.executable, "-m", "benchmarks.page", "--be", what, url, str(number)]
    return subprocess.Popen(
        [*call, "--seconds", str(seconds)], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True
    )


def _in_process(what: str, url: str, number: int, seconds: float) -> dict[str, list[float]]:
    with _begun(what, url, number, seconds) as process:
        found: dict[str, list[float]] = json.loads(process.communicate()[0])
    return found


async def _ask_sql(url: str, clients: int, seconds: float) -> dict[str, object]:
    times: list[float] = []
    until = time.perf_counter() + seconds

    async def client(number: int) -> None:
        asked = number
        async with httpx.AsyncClient(timeout=120) as http:
            while time.perf_counter() < until:
                asked += 17
                statement = (
                    "select camera, count(*), sum(int(car)) from metaocean_view "
                    f"where int(car) >= {asked} group by camera"
                )
                began = time.perf_counter()
                answer = await http.post(f"{url}/db2whrest/v1/sql_query", content=statement)
                answer.raise_for_status()
                times.append(time.perf_counter() - began)

    await asyncio.gather(*map(client, range(clients)))
    return {"times": times}


async def _drag(url: str, people: int, seconds: float) -> dict[str, object]:
    times: list[float] = []
    refused = 0
    until = time.perf_counter() + seconds
    headers = {"HX-Request": "true", "Accept-Encoding": "gzip"}

    async def ask(http: httpx.AsyncClient, path: str, **parameters: object) -> None:
        nonlocal refused
        query = f"{_QUESTION}&{urlencode(parameters)}"
        began = time.perf_counter()
        answer = await http.get(f"{url}{path}?{query}", headers=headers)
        if answer.status_code == 200:
            times.append(time.perf_counter() - began)
        else:
            refused += 1

    async def person(number: int) -> None:
        lowest = number
        async with httpx.AsyncClient(timeout=120) as http:
            while time.perf_counter() < until:
                lowest += 137
                first = ask(http, "/steps", field="min.car", values=_VALUES)
                await asyncio.gather(first, asyncio.sleep(_MOVE_S))
                await ask(http, "/facets", **{"min.car": lowest})

    await asyncio.gather(*map(person, range(people)))
    return {"times": times, "refused": refused}


if __name__ == "__main__":
    main()
