"""One process that serves: the whole server, or one of several on its socket."""

import asyncio
import os
import signal
import socket
import threading
from asyncio.sslproto import SSLProtocol
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from multiprocessing.process import BaseProcess, parent_process
from pathlib import Path
from ssl import SSLContext
from types import FrameType
from typing import TYPE_CHECKING, Protocol

import uvicorn

from api.server.certificate import LOOK_S, Certificate
from api.server.log_setup import LogFormat, LogLevel, logging_to_stderr
from api.server.metrics_folder import count_together
from api.server.proxy_user import behind_proxies
from api.server.shared import Changes
from api.server.stopping import Stopping, Terminal, end_of
from api.settings import Settings

if TYPE_CHECKING:
    from fastapi import FastAPI

_HEAD_BYTES = 64 << 10
"""Largest head of a request [bytes]: a page's cursor may have 20,000 characters."""

_ACCEPTED_AT_ONCE = 8
"""Few, so that one process does not take all connections that come at the same moment."""

_BACKLOG = 2048
_GRACE_S = 1.0
_BEAT_S = 0.5

_TLS_BYTES = 32 << 10
"""Read at once from a connection of TLS. asyncio takes 256 KiB for each, and an idle connection had
280 kB; so it has 58."""


class Beat(Protocol):
    """A number in memory that a worker shares with its supervisor, and that grows meanwhile."""

    value: int
    """The number; 0 until the worker serves."""


@dataclass(frozen=True)
class Serving:
    """Options of a process that serves."""

    settings: Settings
    """Which home, and the limits."""
    authenticates: bool = True
    """Ask who they are."""
    hosts: Collection[str] | None = None
    """Names that it answers to; any name when None."""
    certificate: Path | None = None
    """PEM file; HTTP without one."""
    key: Path | None = None
    """PEM file."""
    log_format: LogFormat = "text"
    """Of its log."""
    log_level: LogLevel = "info"
    """Below which it says nothing."""
    drain_s: float = 0.0
    """How long it goes on serving when it is told to stop, while /readyz says so [s]."""
    shutdown_s: float = 8.0
    """How long what was accepted then may still take [s]."""
    workers: int = 1
    """How many such processes there are."""
    folder: str | None = None
    """In which they count together; None for one process."""


def run_worker(serving: Serving, listener: socket.socket, beat: Beat, lost: str) -> None:
    """Serve in a process that the supervisor started, until it says so or is gone.

    Args:
        serving: What, and how.
        listener: Where it accepts.
        beat: By which it is seen to work.
        lost: Why another one's place is taken, to be counted; "" where none is.
    """
    # Until it serves, when it reads the files anyhow.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    parent = parent_process()
    assert parent is not None
    threading.Thread(target=_end_with, args=(parent,), name="parent", daemon=True).start()
    assert serving.folder is not None
    count_together(serving.folder)
    if lost:
        from api.server.metrics import WORKERS_REPLACED

        WORKERS_REPLACED.labels(lost).inc()
    serve_on(serving, listener, beat)


def _end_with(parent: BaseProcess) -> None:
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)


def serve_on(serving: Serving, listener: socket.socket, beat: Beat | None = None) -> None:
    """Serve until a signal ends it, and the process where that is not SIGTERM.

    Args:
        serving: What, and how.
        listener: Where it accepts.
        beat: Who watches over the process sees by it that its event loop turns.
    """
    folder = serving.folder
    from api.app import create_app  # counts as it is imported
    from api.server.timed_protocol import protocol_of

    app = create_app(
        serving.settings,
        authenticates=serving.authenticates,
        hosts=serving.hosts,
        processes=serving.workers,
        changes=None if folder is None else Changes(Path(folder)),
    )
    with logging_to_stderr(serving.log_format, serving.log_level):
        server = _Server(serving, app, protocol_of(serving.settings), listener, beat)
        server.run(sockets=[listener])
    end_of(server.ended_by)


class _Server(uvicorn.Server):
    """Serves on for a while when it is told to stop, and ends in time.

    Attributes:
        ended_by: The signal that ended it.
    """

    def __init__(
        self,
        serving: Serving,
        app: "FastAPI",
        protocol: object,
        listener: socket.socket,
        beat: Beat | None,
    ) -> None:
        self._serving, self._listener, self._beat = serving, listener, beat
        self._app = app
        self._stopping: Stopping = app.state.stopping
        self.ended_by: list[int] = []
        # Who watches over several processes looks after the terminal, too.
        self._terminal = Terminal() if beat is None else None
        self._certificate: Certificate | None = None
        config = config_of(serving, app, protocol)
        if serving.certificate is not None:
            config.ssl_context_factory = self._context_of
        super().__init__(config)

    def _context_of(self, config: uvicorn.Config, read: Callable[[], SSLContext]) -> SSLContext:
        files = [file for file in (self._serving.certificate, self._serving.key) if file]
        self._certificate = Certificate(files, read)
        self._app.state.certificate = self._certificate
        # Nobody is there to type one when the key is read again: OpenSSL would wait for it.
        config.ssl_keyfile_password = "none"  # noqa: S105  (it is none)
        return self._certificate.context

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        loop = asyncio.get_running_loop()
        if self._certificate is not None:
            _limit_tls(loop, self._serving.settings.head_timeout_s)
        await super().startup(sockets)
        if self._certificate is not None:
            _repeat(loop, LOOK_S, self._certificate.look)
        signal.signal(signal.SIGHUP, partial(self._hang_up, loop))
        self._listener.listen(_BACKLOG)
        if self._beat is not None:
            _repeat(loop, _BEAT_S, partial(_count, self._beat))

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """The handler of SIGTERM and SIGINT; a second SIGINT waits for nothing."""
        serving, stopping = self._serving, self._stopping
        if stopping.begun:
            self.force_exit = self.force_exit or sig == signal.SIGINT
            self.should_exit = self.should_exit or self.force_exit
            return
        stopping.begin(serving.drain_s + serving.shutdown_s)
        self.ended_by.append(sig)
        # What is cut is cancelled, but for what writes: that is committed whole or not at all,
        # so it may be cut short.
        longest_s = serving.drain_s + serving.shutdown_s + _GRACE_S
        _after(longest_s, lambda: os._exit(0 if sig == signal.SIGTERM else 128 + sig))
        if serving.drain_s:
            _after(serving.drain_s, self._stop)
        else:
            self._stop()

    def _hang_up(self, loop: asyncio.AbstractEventLoop, sig: int, frame: FrameType | None) -> None:
        """The handler of SIGHUP: read the certificate again; end where the terminal is gone."""
        if self._terminal is not None and self._terminal.is_gone:
            self.handle_exit(sig, frame)
        elif self._certificate is not None:
            loop.call_soon_threadsafe(self._certificate.read_again)

    def _stop(self) -> None:
        self.should_exit = True


def _limit_tls(loop: asyncio.AbstractEventLoop, handshake_s: float) -> None:
    """Have connections of TLS take little memory, and not long until they ask something."""
    # uvicorn has no option for either.
    SSLProtocol.max_size = _TLS_BYTES
    loop.create_server = partial(  # type: ignore[method-assign]
        loop.create_server, ssl_handshake_timeout=handshake_s
    )


def _count(beat: Beat) -> None:
    beat.value += 1


def _repeat(loop: asyncio.AbstractEventLoop, every_s: float, what: Callable[[], None]) -> None:
    """Do something now, and again and again as long as the loop runs."""
    what()
    loop.call_later(every_s, _repeat, loop, every_s, what)


def _after(seconds: float, what: Callable[[], None]) -> None:
    timer = threading.Timer(seconds, what)
    timer.daemon = True
    timer.start()


def config_of(serving: Serving, app: object, protocol: object = "h11") -> uvicorn.Config:
    """The configuration of uvicorn.

    Args:
        serving: What is served.
        protocol: Class of its connections. h11's keep the case of header names, which clients of
            Spectrum Discover compare.
    """
    return uvicorn.Config(
        behind_proxies(app, serving.settings, authenticates=serving.authenticates),  # type: ignore[arg-type]
        http=protocol,  # type: ignore[arg-type]
        ws="none",
        # Not uvicorn's default, by which every program of this machine says who it is.
        proxy_headers=False,
        log_config=None,
        access_log=False,
        backlog=_ACCEPTED_AT_ONCE,
        h11_max_incomplete_event_size=_HEAD_BYTES,
        timeout_keep_alive=serving.settings.keep_alive_s,
        timeout_graceful_shutdown=max(1, round(serving.shutdown_s)),
        ssl_certfile=serving.certificate,
        ssl_keyfile=serving.key,
    )
