"""The server of the stand-in.

    python -m tests.kubernetes_stand_in.server FOLDER

FOLDER/settings.json says what it is. It prints its port, and ends, and all its pods with it, when
its standard input does: with the process that started it.
"""

import asyncio
import json
import os
import socket
import sys
from pathlib import Path

import uvicorn
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from api.server.self_signed import self_signed
from tests.kubernetes_stand_in.access import Access
from tests.kubernetes_stand_in.api import Api, Fault
from tests.kubernetes_stand_in.cluster import Cluster
from tests.kubernetes_stand_in.failures import Failure, Json
from tests.kubernetes_stand_in.kinds import BY_NAME
from tests.kubernetes_stand_in.store import Store


class Control:
    """What tests do to a cluster while it runs."""

    def __init__(self, cluster: Cluster, api: Api, server: uvicorn.Server) -> None:
        """Of a cluster, and what listens for it."""
        self.cluster, self.api, self.server = cluster, api, server

    def answer(self, asked: Json) -> object:
        """Carry out a method of this class, by its name."""
        return getattr(self, asked.pop("do"))(**asked)

    def fail(self, how: str, methods: list[str], times: int | None, seconds: float | None) -> None:
        """Have requests fail."""
        until = None if seconds is None else asyncio.get_running_loop().time() + seconds
        self.api.faults.append(Fault(how, tuple(methods), times, until))

    def recover(self) -> None:
        """Have them fail no more."""
        for fault in self.api.faults:
            fault.over.set()
        self.api.faults.clear()

    def refuse(self, seconds: float) -> None:
        """Listen no more for a while, as a server that is down; what was connected is cut off."""
        (before,) = self.server.servers
        # Bound and not listening, it keeps the port.
        port = socket.socket()
        port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        port.bind(before.sockets[0].getsockname())
        before.close()
        asyncio.create_task(self._listen_again(port, seconds))  # noqa: RUF006  # ends with its loop

    async def _listen_again(self, port: socket.socket, seconds: float) -> None:
        config, state = self.server.config, self.server.server_state

        def protocol() -> asyncio.Protocol:
            return config.http_protocol_class(config=config, server_state=state, app_state={})  # type: ignore[call-arg]

        await asyncio.sleep(0.1)  # for the answer to who wants this
        for connection in list(state.connections):
            connection.transport.abort()
        await asyncio.sleep(seconds)
        loop = asyncio.get_running_loop()
        self.server.servers = [await loop.create_server(protocol, sock=port, ssl=config.ssl)]

    def requests(self) -> list[tuple[str, str]]:
        """All that came since the last call."""
        came, self.api.requests = self.api.requests, []
        return came

    def asked(self, user: str) -> list[tuple[str, str, str]]:
        """What somebody asked and was let do."""
        return [row[1:] for row in sorted(self.cluster.access.asked) if row[0] == user]

    def token(self, namespace: str, account: str, seconds: float) -> str:
        """One of a service account."""
        return self.cluster.service_token(namespace, account, seconds)

    def expire(self, token: str) -> None:
        """Have it be too old."""
        self.cluster.access.expire(token)

    def claim(self, namespace: str, name: str, folder: str) -> None:
        """A claim that is bound, and whose files lie in a folder."""
        self.cluster.claims[f"{namespace}/{name}"] = Path(folder)
        spec = {
            "accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Ti"}},
            "volumeName": f"pv-{name}",
        }  # fmt: skip
        claim = {"metadata": {"name": name}, "spec": spec}
        self.cluster.create(BY_NAME["PersistentVolumeClaim"], claim, namespace)

    def lose_node(self, name: str) -> None:
        """A machine is gone."""
        self.cluster.lose_node(name)

    def add_node(self, node: Json) -> None:
        """A machine comes."""
        self.cluster.create(BY_NAME["Node"], node, "")

    def out_of_memory(self, namespace: str, pod: str) -> None:
        """The kernel kills a pod's containers."""
        self.cluster.kubelets.out_of_memory(self.cluster.store.need(BY_NAME["Pod"], pod, namespace))

    def kueue(self, namespace: str, name: str, suspend: bool) -> None:
        """Kueue admits or preempts a Job."""
        self.cluster.kueue(namespace, name, suspend=suspend)


def main(folder: Path) -> None:
    """Serve until standard input ends."""
    settings = json.loads((folder / "settings.json").read_text())
    listener = socket.create_server(("127.0.0.1", 0), reuse_port=True)
    asyncio.run(_serve(folder, settings, listener))


async def _serve(folder: Path, settings: Json, listener: socket.socket) -> None:
    def access(store: Store) -> Access:
        return Access(store, settings["admin_token"])

    certificate, key = self_signed(folder / "tls", "127.0.0.1")
    cluster = Cluster(folder, settings, access)
    cluster.kubelets.port = listener.getsockname()[1]
    cluster.kubelets.authorities = certificate.read_text()
    api = Api(cluster, cluster.access)

    async def app(scope: Json, receive: object, send: object) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope, receive)  # type: ignore[arg-type]
        answer: Response
        if request.url.path == f"/control/{settings['admin_token']}":
            try:
                answer = JSONResponse(control.answer(await request.json()))
            except Failure as failure:
                answer = JSONResponse(failure.status(), failure.code)
        else:
            answer = await api.answer(request)
        await answer(scope, receive, send)  # type: ignore[arg-type]

    config = uvicorn.Config(
        app, log_level="warning", lifespan="off", http="h11", ws="none", loop="asyncio",
        timeout_graceful_shutdown=1, ssl_certfile=certificate, ssl_keyfile=key,
    )  # fmt: skip
    server = uvicorn.Server(config)
    control = Control(cluster, api, server)
    api.connections = server.server_state.connections
    loop = asyncio.get_running_loop()

    def parent() -> None:
        if not os.read(0, 4096):
            loop.remove_reader(0)
            control.recover()
            server.should_exit = True

    loop.add_reader(0, parent)
    controllers = asyncio.create_task(cluster.run())
    controllers.add_done_callback(lambda task: setattr(server, "should_exit", True))
    sys.stdout.write(f"{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    try:
        await server.serve([listener])
    finally:
        cluster.kubelets.kill_all()
    if controllers.done():
        controllers.result()
    controllers.cancel()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
