"""The server of a stand-in: answers its programs, and keeps its queue going.

    python -m tests.batch_stand_ins.server FOLDER

FOLDER/settings.json says what it is. It ends, and all its jobs with it, when its standard input
does: with the process that started it.
"""

import json
import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from tests.batch_stand_ins.engine import Engine, Host


@dataclass(eq=False)
class Request:
    """A program that somebody runs."""

    line: socket.socket
    program: str
    words: list[str]
    folder: str
    environment: dict[str, str]
    uid: int
    fds: list[int]
    """Its standard streams."""
    on_signal: Callable[[int], None] | None = None
    """Called with each signal that it got and hands on."""
    on_leave: Callable[[], None] | None = None
    """Called when it is gone before its answer."""
    is_answered: bool = False
    early: list[str] = field(default_factory=list)

    def stdin(self) -> str:
        """All that it reads."""
        self.line.sendall(b'{"want": "stdin"}\n')
        size = int.from_bytes(_exactly(self.line, 8), "big")
        return _exactly(self.line, size).decode(errors="surrogateescape")

    def say(self, out: str = "", err: str = "") -> None:
        """Have it print something, and wait on."""
        with suppress(OSError):
            self.line.sendall(json.dumps({"out": out, "err": err}).encode() + b"\n")

    def answer(self, out: str = "", err: str = "", code: int = 0) -> None:
        """Have it print this and end."""
        self.is_answered = True
        with suppress(OSError):
            said = {"out": out, "err": err, "code": code & 0xFF}
            self.line.sendall(json.dumps(said).encode() + b"\n")


class Commands(Protocol):
    """A front's programs."""

    engine: Engine

    def run(self, request: Request) -> None:
        """Answer a program, or keep it waiting for its answer."""

    def refuse(self, request: Request) -> None:
        """What a program prints while its server does not answer; called each second."""

    def control(self, what: str, value: Any) -> Any:
        """What tests ask of it."""

    def kill_all(self) -> None:
        """End all processes."""


class Server:
    """One thread that answers and keeps things going."""

    def __init__(self, folder: Path, commands: Commands) -> None:
        """Listen in its folder."""
        self.commands = commands
        self.silent = ""
        """ "hang", "refuse", or empty while it answers."""
        self.kept: list[Request] = []
        """What waits for the end of the silence."""
        self.open: list[Request] = []
        self.selector = selectors.DefaultSelector()
        at = os.open(folder, os.O_RDONLY)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(f"/proc/self/fd/{at}/socket")
        (folder / "socket").chmod(0o777)
        self.listener.listen(64)
        wakes, woken = os.pipe()
        os.set_blocking(wakes, False)
        os.set_blocking(woken, False)
        signal.set_wakeup_fd(woken)
        # Handlers, not SIG_IGN: jobs would inherit that.
        for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda *_: None)
        self.selector.register(self.listener, selectors.EVENT_READ, self._accept)
        self.selector.register(wakes, selectors.EVENT_READ, lambda: self._drain(wakes))
        self.selector.register(0, selectors.EVENT_READ, self._parent)
        self.is_over = False

    def run(self) -> None:
        """Until the parent is gone."""
        while not self.is_over:
            wait = self.commands.engine.tick()
            if self.silent == "refuse" and self.kept:
                wait = min(1.0, 1.0 if wait is None else wait)
            for key, _ in self.selector.select(wait):
                key.data()
            if self.silent == "refuse":
                for request in list(self.kept):
                    self._refuse(request)
        self.commands.kill_all()

    def _refuse(self, request: Request) -> None:
        self.commands.refuse(request)
        if request.is_answered:
            self.kept.remove(request)
            self._close(request)

    def _parent(self) -> None:
        self.is_over = not os.read(0, 4096)

    @staticmethod
    def _drain(fd: int) -> None:
        with suppress(BlockingIOError):
            while os.read(fd, 4096):
                pass

    def _accept(self) -> None:
        line, _ = self.listener.accept()
        line.settimeout(60)
        try:
            size, fds, _, _ = socket.recv_fds(line, 8, 3)
            head = json.loads(_exactly(line, int.from_bytes(size, "big")))
        except (OSError, ValueError):
            line.close()
            return
        if head["program"] == "control":
            line.sendall(json.dumps(self._control(head["what"], head["value"])).encode() + b"\n")
            line.close()
            return
        request = Request(
            line, head["program"], head["words"], head["folder"], head["environment"],
            head["uid"], list(fds),
        )  # fmt: skip
        self.open.append(request)
        self.selector.register(line, selectors.EVENT_READ, lambda: self._read(request))
        if self.silent:
            self.kept.append(request)
            if self.silent == "refuse":
                self._refuse(request)
            return
        self._run(request)

    def _run(self, request: Request) -> None:
        try:
            self.commands.run(request)
        except OSError as error:
            request.answer(err=f"{request.program}: {error}\n", code=255)
        if request.is_answered:
            self._close(request)

    def _read(self, request: Request) -> None:
        try:
            got = request.line.recv(4096)
        except OSError:
            got = b""
        if not got:
            if request in self.kept:
                self.kept.remove(request)
            elif request.on_leave and not request.is_answered:
                request.on_leave()
            self._close(request)
            return
        for word in got.split():
            if request.on_signal:
                request.on_signal(int(word))
        if request.is_answered:
            self._close(request)

    def _close(self, request: Request) -> None:
        if request not in self.open:
            return
        self.open.remove(request)
        self.selector.unregister(request.line)
        request.line.close()
        for fd in request.fds:
            os.close(fd)

    def _control(self, what: str, value: Any) -> Any:
        if what != "silent":
            return self.commands.control(what, value)
        self.silent = value
        if not value:
            kept, self.kept = self.kept, []
            for request in kept:
                self._run(request)
        return None


def _exactly(line: socket.socket, size: int) -> bytes:
    got = b""
    while len(got) < size:
        more = line.recv(size - len(got))
        if not more:
            raise ConnectionError("the program is gone")
        got += more
    return got


def main(folder: Path) -> None:
    """Serve until the parent is gone."""
    settings = json.loads((folder / "settings.json").read_text())
    engine = Engine([Host(**host) for host in settings.pop("hosts")])
    commands: Commands
    if settings.pop("kind") == "lsf":
        from tests.batch_stand_ins.lsf import Lsf

        commands = Lsf(engine, folder, settings)
    else:
        from tests.batch_stand_ins.pbs import Pbs

        commands = Pbs(engine, folder, settings)
    server = Server(folder, commands)
    sys.stdout.write(f"ready {time.time()}\n")
    sys.stdout.flush()
    server.run()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
