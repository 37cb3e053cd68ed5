"""Slots of one kind of work, and who gets the next one."""

import asyncio
import random
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.responses import Response

from api.http.fair_queue import FairQueue, Slot
from api.http.middleware.admission import release_of
from api.http.middleware.request_context import RequestContext
from api.http.sql_response import SqlResponse
from api.services.session import Session
from api.settings import Settings
from api.workspace import Workspace
from catalog.errors import FramesiftError, ServerBusy
from tests.pipeline.homes import copy_home, open_home


def test_one_caller_leaves_places_for_others() -> None:
    """Alone it has half of them; who comes then has a place at once, and so has the next."""
    queue = FairQueue(32, 512)
    greedy = [queue.enter("greedy") for _ in range(200)]
    assert sum(slot.granted.done() for slot in greedy) == queue.running == 16
    assert queue.waiting == 184
    second = [queue.enter("second") for _ in range(20)]
    assert sum(slot.granted.done() for slot in second) == 8
    for number in range(3):
        assert queue.enter(f"small {number}").granted.done()


def test_a_freed_slot_stays_free_where_all_who_wait_have_their_share() -> None:
    """Of four slots one, for who comes next: a freed one goes to no caller beyond the share."""
    queue = FairQueue(4, 100)
    greedy = [queue.enter("greedy") for _ in range(10)]
    second = [queue.enter("second") for _ in range(3)]

    def granted() -> list[int]:
        return [sum(slot.granted.done() for slot in slots) for slots in (greedy, second)]

    assert granted() == [2, 1]
    greedy[0].release()
    assert granted() == [3, 1]  # one was released, and one begun: two are held
    assert queue.running == 3
    assert queue.enter("secondary").granted.done()


def test_the_queue_is_served_caller_by_caller() -> None:
    """One with two hundred requests has one of them begun for each of another's."""
    queue = FairQueue(1, 1000)
    running: Slot | None = queue.enter("first")
    waiting = [queue.enter("many") for _ in range(200)]
    waiting += [queue.enter("few") for _ in range(2)]
    waiting += [queue.enter("one")]
    order: list[Slot] = []
    while running is not None:
        running.release()
        running = next((t for t in waiting if t.granted.done() and t not in order), None)
        if running is not None:
            order.append(running)
    assert [slot.caller for slot in order[:7]] == [
        "many",
        "few",
        "one",
        "many",
        "few",
        "many",
        "many",
    ]
    assert len(order) == 203
    assert order[0] is waiting[0]
    assert (queue.running, queue.waiting) == (0, 0)


def test_a_queue_that_is_full_is_full_for_its_owner() -> None:
    """Who fills half of it is refused, and others still come in."""
    queue = FairQueue(2, 8)
    first = [queue.enter("many") for _ in range(5)]
    assert [slot.granted.done() for slot in first] == [True, False, False, False, False]
    with pytest.raises(ServerBusy):
        queue.enter("many")
    second = [queue.enter("other") for _ in range(3)]
    assert [slot.granted.done() for slot in second] == [True, False, False]
    for slot in first[-2:]:
        slot.release()  # they left: others may come
    assert not queue.enter("many").granted.done()


def test_who_leaves_the_queue_gets_no_place() -> None:
    """Its wait ends; a granted slot stays when it is withdrawn, and is given back once."""
    queue = FairQueue(1, 8)
    first, second, third = (queue.enter("anna") for _ in range(3))
    second.withdraw()
    assert second.granted.done()
    assert (queue.running, queue.waiting) == (1, 1)
    first.withdraw()
    assert queue.running == 1
    for _ in range(2):
        first.release()
        assert (queue.running, third.granted.done()) == (1, True)
    second.release()
    third.release()
    assert (queue.running, queue.waiting) == (0, 0)


def test_no_place_is_lost_or_made_by_threads() -> None:
    """Many at once, some of which leave: never more than there are places, and none at the end."""
    queue = FairQueue(4, 64)
    most, errors = [0], []

    def client(number: int) -> None:
        chance = random.Random(number)
        for _ in range(100):
            try:
                slot: Slot = queue.enter(f"user {number % 5}")
            except ServerBusy:
                continue
            if chance.random() < 0.2:
                slot.withdraw()
            slot.granted.result(120)
            most[0] = max(most[0], queue.running)
            time.sleep(chance.random() / 2000)
            slot.release()

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
    assert (queue.running, queue.waiting) == (0, 0)
    assert not queue._held


def test_an_answer_that_is_cancelled_leaves_the_queue(catalogued: Path, tmp_path: Path) -> None:
    """A server that stops, say, cancels it: its statement waits no longer, and never runs."""
    workspace = open_home(copy_home(catalogued, tmp_path))
    app = FastAPI()
    queue = app.state.statements = FairQueue(1, 8)
    scope: dict[str, Any] = {"type": "http", "app": app, "headers": [], "client": ("192.0.2.1", 1)}
    scope["state"] = {"context": RequestContext(scope)}

    async def receive() -> dict[str, Any]:
        await asyncio.Event().wait()
        return {}

    async def send(message: object) -> None:
        pytest.fail(f"{message} was sent")

    def refusal(error: FramesiftError) -> Any:
        pytest.fail(f"{error} was answered")

    async def cancelled() -> None:
        rows = Session(workspace).statements.run("select fkey from metaocean")
        answer = SqlResponse(rows, "csv", refusal)
        answering = asyncio.create_task(answer(scope, receive, send))
        while not queue.waiting:
            await asyncio.sleep(0.01)
        answering.cancel()
        with suppress(asyncio.CancelledError):
            await answering
        assert (queue.running, queue.waiting) == (1, 0)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.wait_for(asyncio.gather(*others, return_exceptions=True), 120)

    first = queue.enter("another")
    asyncio.run(cancelled())
    first.release()
    assert (queue.running, queue.waiting) == (0, 0)


def test_a_statement_that_waits_too_long_for_its_slot(catalogued: Path, tmp_path: Path) -> None:
    """Its time runs from its arrival: when it has its slot it is over."""
    workspace = Workspace(Settings(home=copy_home(catalogued, tmp_path), query_timeout_s=0.5))
    app = FastAPI()
    queue = app.state.statements = FairQueue(1, 8)
    scope: dict[str, Any] = {"type": "http", "app": app, "headers": [], "client": ("192.0.2.1", 1)}
    scope["state"] = {"context": RequestContext(scope)}
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
        rows = Session(workspace).statements.run("select fkey from metaocean")
        answer = SqlResponse(rows, "csv", refusal)
        first = queue.enter("another")
        asyncio.get_running_loop().call_later(0.6, first.release)
        await answer(scope, receive, send)

    asyncio.run(answered())
    assert [str(error)[:8] for error in refused] == ["SQL0952N"]
    assert (queue.running, queue.waiting) == (0, 0)


def test_a_slot_of_facets_rests_while_statements_run() -> None:
    """Four times as long as its work took, also just after one; other slots, and alone, never."""

    async def released() -> None:
        statements, facets = FairQueue(2, 2), FairQueue(1, 4)
        scope = {"app": SimpleNamespace(state=SimpleNamespace(statements=statements))}

        async def rested() -> float:
            release = release_of(facets.enter("anna"), "facets", scope)
            await asyncio.sleep(0.1)
            release()
            release()
            assert facets.running == 1
            began = time.monotonic()
            while facets.running:
                await asyncio.sleep(0.01)
            return time.monotonic() - began

        release_of(facets.enter("anna"), "facets", scope)()
        assert facets.running == 0
        statement = statements.enter("bert")
        release_of(facets.enter("anna"), "selection", scope)()
        assert facets.running == 0
        assert await rested() > 0.3
        statement.release()
        statements.enter("bert").release()
        assert await rested() > 0.3
        statements.granted_at -= 1.0
        release_of(facets.enter("anna"), "facets", scope)()
        assert facets.running == 0

    asyncio.run(asyncio.wait_for(released(), 300))
