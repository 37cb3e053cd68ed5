"""The web page in Chromium: the first page, a slider's move, and SQL beside 16 people who move one.

    .venv/bin/python -m benchmarks.page [--frames 41277 1000000] [--drags 8] [--rounds 4]
        [--homes FOLDER]

Drawn frames as catalog_scale has them, served by `framesift serve` with the newest snapshot in
memory. --homes keeps their homes for the next run. A browser that has nothing in its cache opens
the first page: to the moment when its numbers and plots stand there.

A move drags the end of a class's slider by the mouse over 60 places, with a range, two cameras and
another class asked beside it. Its first answer is timed from the browser's `input` event to the
second picture that it draws after all numbers and plots were changed. CPU is that of the server's
process, user and system, to 10 ms. What the page shows before the release is compared with what it
shows after it, which is the server's answer to the same question: all numbers and outlines. Drawn
frames have no pictures: none are asked for. What a step takes of script, and with layout, is timed
in the page, and how many the screen gets.

Then clients of SQL group by camera for the whole time, and in every second window --draggers people
move a slider, each move for a second and the next at once: like static/find.js they ask for all
positions when a move begins, as the browser did, and for the page's answer at its end. At the end
of a window they leave, and the server cancels what they asked for. The first second of a window
belongs to none.
"""

import argparse
import asyncio
import json
import math
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from itertools import pairwise
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx
from playwright.sync_api import Browser, Page, Request, sync_playwright

from benchmarks.catalog_scale import CLASS_LIST, REPOSITORY, load_frames
from ingest.labels.class_list import ClassList
from tests.api.servers import serving, wait_until
from tests.pipeline.homes import SAMPLE, add_source, open_home

_QUESTION = "min.bicycle=100&max.truck=50000&camera=front_center&camera=side_left"
_FIELD = "min.car"
_PLACES = 60
"""Of the mouse in one move."""

_MOVE_S = 1.0
"""A person's move."""

_IDLE_S = 5
"""Without requests, to tell what a server takes by itself."""

_LOAD_S = 1800
"""10,000,000 frames take minutes into memory."""

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
  steps.draw();
  return [median(script), median(layout), aSecond];
}
"""
"""Of a slider that is held: ms of script a step, ms with layout, and steps a second."""

_SHOWN = """() => [
  document.getElementById("matching").textContent,
  ...[...document.querySelectorAll("svg.counts path")].map((path) => path.getAttribute("d")),
  ...[...document.querySelectorAll("output.number")].map((number) => number.textContent),
]"""
"""Numbers and outlines, in the page's order."""

_TWO_PICTURES = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"

Row = dict[str, str]
"""What is measured, and its value in words."""


def main() -> None:
    """Print the table: a column for each number of frames."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, nargs="*", default=[41_277, 1_000_000])
    parser.add_argument("--homes", type=Path, help="where homes are kept")
    parser.add_argument("--drags", type=int, default=8)
    parser.add_argument("--memory-mb", type=int, default=8_000)
    parser.add_argument("--draggers", type=int, default=16)
    parser.add_argument("--sql-clients", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=6, help="of a window")
    parser.add_argument("--only-sql", action="store_true", help="and not the browser")
    parser.add_argument("--chromium", default="chromium")
    parser.add_argument("--be", nargs=3, metavar=("WHAT", "URL", "NUMBER"), help=argparse.SUPPRESS)
    parser.add_argument("--asked", default="{}", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.be:
        what, url, number = options.be
        asked = json.loads(options.asked)
        be = _drag if what == "dragger" else _ask_sql
        print(json.dumps(asyncio.run(be(url, int(number), asked))))
        return
    columns: list[Row] = []
    for frames in options.frames:
        keeps = options.homes is not None
        folder: AbstractContextManager[str] = (
            nullcontext(str(options.homes)) if keeps else tempfile.TemporaryDirectory()
        )
        with folder as parent:
            home = _home(Path(parent, f"frames-{frames}"), frames)
            variables = {"FRAMESIFT_SNAPSHOT_MEMORY_MB": str(options.memory_mb)}
            with serving(home, variables=variables) as (url, server):
                wait_until(partial(_is_ready, url), _LOAD_S)
                column, asked = (
                    ({}, {"values": ",".join(str(2**power) for power in range(24))})
                    if options.only_sql
                    else _in_browser(url, server.pid, options.chromium, options.drags)
                )
                print(f"{frames:,} frames: {column}", file=sys.stderr, flush=True)
                columns.append(column | _beside_sql(url, server.pid, asked, options))
    print(f"| | {' | '.join(f'{frames:,} frames' for frames in options.frames)} |")
    print("|---" * (1 + len(columns)) + "|")
    for name in columns[0]:
        print(f"| {name} | {' | '.join(column[name] for column in columns)} |")


def _is_ready(url: str) -> bool:
    time.sleep(1)
    return httpx.get(f"{url}/readyz", timeout=300).status_code == 200


def _home(home: Path, frames: int) -> Path:
    """The home of so many drawn frames, made where it is not there."""
    if not home.exists():
        tags = list(ClassList.from_colours(json.loads(CLASS_LIST.read_bytes())).tags)
        workspace = open_home(home)
        load_frames(workspace.whole_catalog, tags, frames)
        add_source(workspace, "pictures", SAMPLE)  # and the classes' names
        workspace.close()
    return home


def _in_browser(url: str, server: int, program: str, drags: int) -> tuple[Row, dict[str, str]]:
    """What the browser measures, and what it asked when a move began."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=_found(program), args=["--no-sandbox", "--disable-gpu"]
        )
        row: Row = {}
        for title in ("first page of the server", "first page of a browser"):
            seconds, sent = _first_page(browser, url)
            row[f"{title}; without images"] = f"{seconds:.2f} s; {sent / 1000:.0f} KB"
        page = browser.new_page(viewport={"width": 1280, "height": 1000})
        page.set_default_timeout(_WAIT_MS)
        page.route(re.compile("/pictures/"), lambda route: route.abort())
        page.goto(f"{url}/?{_QUESTION}")
        page.wait_for_load_state("networkidle")
        page.evaluate(_TIMED)
        moves = [_Move(page, server, 0.15 + 0.7 * (drag % 5) / 5) for drag in range(drags)]
        script, layout, a_second = moves[-1].stepped
        before = _cpu_s(server)
        time.sleep(_IDLE_S)
        idle_ms = 1000 * (_cpu_s(server) - before) / _IDLE_S
        browser.close()
    firsts = [move.first_ms for move in moves]
    first_kb = statistics.median(move.first_sent for move in moves) / 1000
    steps_ms = 1000 * sum(m.steps_cpu_s for m in moves) / sum(m.steps_s for m in moves)
    requests = sum(move.requests for move in moves)
    exact = sum(move.is_exact for move in moves)
    row |= {
        "first answer of a move: median; longest": f"{statistics.median(firsts):.0f}; "
        f"{max(firsts):.0f} ms",
        "its CPU in the server; its transfer": f"{_mean_ms([move.first_cpu_s for move in moves])}"
        f" ms; {first_kb:.0f} KB",
        "a further step: script; with layout": f"{script:.1f}; {layout:.1f} ms",
        "further steps a second": f"{a_second:.0f}",
        f"{drags * _PLACES} places of the mouse after it: requests; CPU in the server": (
            f"{requests}; {steps_ms:.0f} ms a second, without a browser {idle_ms:.0f}"
        ),
        "moves whose last numbers and outlines are those of the release": (
            f"{exact} of {drags}, {moves[-1].numbers:,} each"
        ),
        "a release: CPU in the server": f"{_mean_ms([move.release_cpu_s for move in moves])} ms",
    }
    return row, moves[-1].asked


def _mean_ms(seconds: list[float]) -> str:
    return f"{1000 * statistics.mean(seconds):.0f}"


class _Move:
    """A slider that the mouse takes, moves over 60 places, and lets go."""

    def __init__(self, page: Page, server: int, share: float) -> None:
        slider = page.get_by_label("Lowest Car", exact=True)
        slider.scroll_into_view_if_needed()
        box = slider.bounding_box()
        assert box is not None
        middle, thumb = box["y"] + box["height"] / 2, 8
        place = page.evaluate("(end) => end.value / end.max", slider.element_handle())
        asked: list[Request] = []

        def hear(request: Request) -> None:
            asked.append(request)

        page.on("request", hear)
        page.mouse.move(box["x"] + thumb + (box["width"] - 2 * thumb) * place, middle)
        before = _cpu_s(server)
        known = page.evaluate("window.timed.length")
        page.mouse.down()
        # Its first step must be one: the thumb is elsewhere.
        start = 0.9 if place < 0.5 else 0.1
        page.mouse.move(box["x"] + box["width"] * start, middle)
        wait_until(lambda: page.evaluate("window.timed.length") > known)
        self.first_ms = float(page.evaluate("window.timed")[known])
        self.first_cpu_s = _cpu_s(server) - before
        (steps,) = [one for one in asked if urlsplit(one.url).path == "/steps"]
        self.asked = dict(parse_qsl(urlsplit(steps.url).query))
        self.first_sent = steps.sizes()["responseBodySize"]

        asked.clear()
        before, began = _cpu_s(server), time.perf_counter()
        for number in range(1, _PLACES + 1):
            to = start + (share - start) * number / _PLACES
            page.mouse.move(box["x"] + box["width"] * to, middle)
        self.stepped: list[float] = page.evaluate(_STEPPED)
        page.evaluate(_TWO_PICTURES)
        self.steps_s = time.perf_counter() - began
        self.steps_cpu_s = _cpu_s(server) - before
        self.requests = len([one for one in asked if "/pictures/" not in one.url])

        dragged = page.evaluate(_SHOWN)
        before = _cpu_s(server)
        with page.expect_response(lambda answer: urlsplit(answer.url).path == "/facets"):
            page.mouse.up()
        page.wait_for_load_state("networkidle")
        page.evaluate(_TWO_PICTURES)
        self.release_cpu_s = _cpu_s(server) - before
        self.numbers = len(dragged)
        self.is_exact = bool(dragged == page.evaluate(_SHOWN))
        page.remove_listener("request", hear)


def _cpu_s(process: int) -> float:
    """CPU that a process has taken, user and system [s]."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


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
    page.evaluate(_TWO_PICTURES)
    seconds = time.perf_counter() - began
    page.wait_for_load_state("networkidle")
    context.close()
    return seconds, sent


def _beside_sql(url: str, server: int, asked: dict[str, str], options: argparse.Namespace) -> Row:
    """How fast SQL is answered alone and beside people who drag, in turns."""
    first = time.time() + 8  # until both processes have imported what they need
    starts = [first + options.seconds * window for window in range(2 * options.rounds + 1)]
    windows = [*pairwise(starts)]
    told = {"until": starts[-1], "windows": windows[1::2], "steps": asked}
    processes = {
        "sql": _begun("sql", url, options.sql_clients, told),
        "dragger": _begun("dragger", url, options.draggers, told),
    }
    taken = []
    for start in starts:
        time.sleep(max(0, start - time.time()))
        taken.append(_cpu_s(server))
    spent = [after - before for before, after in pairwise(taken)]
    found = {name: json.loads(process.communicate()[0]) for name, process in processes.items()}
    sql, drags = found["sql"], found["dragger"]
    rates = [
        sum(start + 1 <= at < end for at, _ in sql) / (end - start - 1) for start, end in windows
    ]
    alone, beside = rates[::2], rates[1::2]
    ratios = [b / a for a, b in zip(alone, beside, strict=True)]
    times = {
        name: [
            1000 * taken for at, taken in sql for start, end in part if start + 1 <= at < end
        ]
        for name, part in (("alone", windows[::2]), ("beside", windows[1::2]))
    }  # fmt: skip
    begun = [taken for path, taken in drags["answers"] if path == "/steps"]
    ended = [taken for path, taken in drags["answers"] if path == "/facets"]
    if drags["refused"] and not begun:
        raise SystemExit(f"nobody who drags was answered: {drags}")
    begins = len(begun) / (options.rounds * options.seconds)
    return {
        f"{options.sql_clients} clients of SQL alone: answers a second; median": (
            f"{statistics.mean(alone):.1f}; {statistics.median(times['alone']):.0f} ms"
        ),
        f"beside {options.draggers} who drag": (
            f"{statistics.mean(beside):.1f}; {statistics.median(times['beside']):.0f} ms"
        ),
        "rate beside them, of that alone; least and most of a round": (
            f"{sum(beside) / sum(alone):.2f}; {min(ratios):.2f}, {max(ratios):.2f}"
        ),
        "those who drag: moves begun a second; median answer": (
            f"{begins:.1f}; {1000 * statistics.median(begun):.0f} ms"
            if begun
            else f"0; none within a window of {options.seconds:g} s"
        ),
        "a release's median answer; refused": (
            f"{1000 * statistics.median(ended) if ended else math.nan:.0f} ms; {drags['refused']}"
        ),
        "the server's CPU: alone; beside them": "; ".join(
            f"{sum(part) / len(part) / options.seconds:.2f}" for part in (spent[::2], spent[1::2])
        ),
    }


def _begun(what: str, url: str, number: int, told: dict[str, object]) -> "subprocess.Popen[str]":
    call = [sys.executable, "-m", "benchmarks.page", "--be", what, url, str(number)]
    return subprocess.Popen(
        [*call, "--asked", json.dumps(told)], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True
    )


async def _ask_sql(url: str, clients: int, told: dict[str, float]) -> list[tuple[float, float]]:
    """When each answer came, and how long it took [s]."""
    answers: list[tuple[float, float]] = []

    async def client(number: int) -> None:
        asked = number
        async with httpx.AsyncClient(timeout=120) as http:
            while time.time() < told["until"]:
                asked += 17
                statement = (
                    "select camera, count(*), sum(int(car)) from metaocean_view "
                    f"where int(car) >= {asked} group by camera"
                )
                began = time.perf_counter()
                answer = await http.post(f"{url}/db2whrest/v1/sql_query", content=statement)
                answer.raise_for_status()
                answers.append((time.time(), time.perf_counter() - began))

    await asyncio.gather(*map(client, range(clients)))
    return answers


async def _drag(url: str, people: int, told: dict[str, object]) -> dict[str, object]:
    """What each answer was to and how long it took [s], and how many were refused."""
    answers: list[tuple[str, float]] = []
    refused = 0
    headers = {"HX-Request": "true", "Accept-Encoding": "gzip"}
    steps: dict[str, str] = told["steps"]  # type: ignore[assignment]
    windows: list[tuple[float, float]] = told["windows"]  # type: ignore[assignment]

    async def ask(http: httpx.AsyncClient, path: str, **parameters: object) -> None:
        nonlocal refused
        query = f"{_QUESTION}&{urlencode(parameters)}"
        began = time.perf_counter()
        answer = await http.get(f"{url}{path}?{query}", headers=headers)
        if answer.status_code == 200:
            answers.append((path, time.perf_counter() - began))
        else:
            refused += 1

    async def moves(number: int, until: float) -> None:
        lowest = number
        async with httpx.AsyncClient(timeout=120) as http:
            while time.time() < until:
                lowest += 137
                first = ask(http, "/steps", field=_FIELD, values=steps["values"])
                await asyncio.gather(first, asyncio.sleep(_MOVE_S))
                await ask(http, "/facets", **{_FIELD: lowest})

    async def person(number: int) -> None:
        for start, end in windows:
            begins = start + number / people * _MOVE_S  # not all at once
            await asyncio.sleep(max(0, begins - time.time()))
            with suppress(TimeoutError):
                async with asyncio.timeout(end - time.time()):
                    await moves(number, end)

    await asyncio.gather(*map(person, range(people)))
    return {"answers": answers, "refused": refused}


if __name__ == "__main__":
    main()
