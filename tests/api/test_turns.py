"""Places of one kind of work, and who gets the next one."""

import asyncio
import random
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.responses import Response

from api.http.middleware.passage import Passage
from api.http.sql_response import SqlResponse
from api.http.turns import Turn, Turns
from api.settings import Settings
from api.workspace import Workspace
from catalog.errors import FramesiftError, ServerBusy
from tests.pipeline.homes import copy_home, open_home


def test_one_caller_leaves_places_for_others() -> None:
    """Alone it has half of them; who comes then has a place at once, and so has the next."""
    turns = Turns(32, 512)
    greedy = [turns.enter("greedy") for _ in range(200)]
    assert sum(turn.came.done() for turn in greedy) == turns.running == 16
    assert turns.waiting == 184
    second = [turns.enter("second") for _ in range(20)]
    assert sum(turn.came.done() for turn in second) == 8
    for number in range(3):
        assert turns.enter(f"small {number}").came.done()


def test_the_queue_is_served_caller_by_caller() -> None:
    """One with two hundred requests has one of them begun for each of another's."""
    turns = Turns(1, 1000)
    running: Turn | None = turns.enter("first")
    waiting = [turns.enter("many") for _ in range(200)]
    waiting += [turns.enter("few") for _ in range(2)]
    waiting += [turns.enter("one")]
    order: list[Turn] = []
    while running is not None:
        running.end()
        running = next((t for t in waiting if t.came.done() and t not in order), None)
        if running is not None:
            order.append(running)
    assert [turn.who for turn in order[:7]] == ["many", "few", "one", "many", "few", "many", "many"]
    assert len(order) == 203
    assert order[0] is waiting[0]
    assert (turns.running, turns.waiting) == (0, 0)


def test_a_queue_that_is_full_is_full_for_its_owner() -> None:
    """Who fills half of it is refused, and others still come in."""
    turns = Turns(2, 8)
    first = [turns.enter("many") for _ in range(5)]
    assert [turn.came.done() for turn in first] == [True, False, False, False, False]
    with pytest.raises(ServerBusy):
        turns.enter("many")
    second = [turns.enter("other") for _ in range(3)]
    assert [turn.came.done() for turn in second] == [True, False, False]
    for turn in first[-2:]:
        turn.end()  # they left: others may come
    assert not turns.enter("many").came.done()


def test_who_leaves_the_queue_gets_no_place() -> None:
    """It is told so; a place stays when its turn is withdrawn, and is given back once."""
    turns = Turns(1, 8)
    first, second, third = (turns.enter("anna") for _ in range(3))
    second.withdraw()
    assert second.came.done()
    assert (turns.running, turns.waiting) == (1, 1)
    first.withdraw()
    assert turns.running == 1
    for _ in range(2):
        first.end()
        assert (turns.running, third.came.done()) == (1, True)
    second.end()
    third.end()
    assert (turns.running, turns.waiting) == (0, 0)


def test_no_place_is_lost_or_made_by_threads() -> None:
    """Many at once, some of which leave: never more than there are places, and none at the end."""
    turns = Turns(4, 64)
    most, errors = [0], []

    def client(number: int) -> None:
        chance = random.Random(number)
        for _ in range(100):
            try:
                turn: Turn = turns.enter(f"user {number % 5}")
            except ServerBusy:
                continue
            if chance.random() < 0.2:
                turn.withdraw()
            turn.came.result(120)
            most[0] = max(most[0], turns.running)
            time.sleep(chance.random() / 2000)
            turn.end()

    def checked(number: int) -> None:
        try:
            client(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=checked, args=(n,)) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert not errors
    assert most[0] <= 4
    assert (turns.running, turns.waiting) == (0, 0)
    assert not turns._held


def test_an_answer_that_is_cancelled_leaves_the_queue(catalogued: Path, tmp_path: Path) -> None:
    """A server that stops, say, cancels it: its statement waits no longer, and never runs."""
    workspace = open_home(copy_home(catalogued, tmp_path))
    app = FastAPI()
    turns = app.state.statements = Turns(1, 8)
    scope: dict[str, Any] = {"type": "http", "app": app, "headers": [], "client": ("192.0.2.1", 1)}
    scope["state"] = {"passage": Passage(scope)}

    async def receive() -> dict[str, Any]:
        await asyncio.Event().wait()
        return {}

    async def send(message: object) -> None:
        pytest.fail(f"{message} was sent")

    def refusal(error: FramesiftError) -> Any:
        pytest.fail(f"{error} was answered")

    async def cancelled() -> None:
        answer = SqlResponse(workspace, "select fkey from metaocean", "csv", refusal)
        answering = asyncio.create_task(answer(scope, receive, send))
        while not turns.waiting:
            await asyncio.sleep(0.01)
        answering.cancel()
        with suppress(asyncio.CancelledError):
            await answering
        assert (turns.running, turns.waiting) == (1, 0)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.wait_for(asyncio.gather(*others, return_exceptions=True), 120)

    first = turns.enter("another")
    asyncio.run(cancelled())
    first.end()
    assert (turns.running, turns.waiting) == (0, 0)


def test_a_statement_that_waits_too_long_for_its_turn(catalogued: Path, tmp_path: Path) -> None:
    """Its time runs from its arrival: at its turn it is over."""
    workspace = Workspace(Settings(home=copy_home(catalogued, tmp_path), query_timeout_s=0.5))
    app = FastAPI()
    turns = app.state.statements = Turns(1, 8)
    scope: dict[str, Any] = {"type": "http", "app": app, "headers": [], "client": ("192.0.2.1", 1)}
    scope["state"] = {"passage": Passage(scope)}
    refused: list[FramesiftError] = []

    async def receive() -> dict[str, Any]:
        await asyncio.Event().wait()
        return {}

    async def send(_: object) -> None:
        """Into nothing."""

    def refusal(error: FramesiftError) -> Response:
        refused.append(error)
        return Response()

    async def answered() -> None:
        answer = SqlResponse(workspace, "select fkey from metaocean", "csv", refusal)
        first = turns.enter("another")
        asyncio.get_running_loop().call_later(0.6, first.end)
        await answer(scope, receive, send)

    asyncio.run(answered())
    assert [str(error)[:8] for error in refused] == ["SQL0952N"]
    assert (turns.running, turns.waiting) == (0, 0)
