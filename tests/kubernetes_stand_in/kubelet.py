"""Plays the kubelets: runs pods' containers as processes, and writes what becomes of them.

What a real one does and this one does not: probes, lifecycle hooks, resource limits of processes,
images' own files and variables, and networks: all pods share this machine's, each with a loopback
address of its own.
"""

import asyncio
import contextlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.kubernetes_stand_in.container import START_ERROR
from tests.kubernetes_stand_in.expansion import NotThere, environment, expand, write_volume
from tests.kubernetes_stand_in.failures import Json
from tests.kubernetes_stand_in.kinds import BY_NAME, Kind
from tests.kubernetes_stand_in.names import hosts_of
from tests.kubernetes_stand_in.quantities import amount
from tests.kubernetes_stand_in.store import Store, now

_PROGRAM = Path(__file__).parent / "container.py"
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_SYSTEM = Path("/usr")
"""Without it no program starts, also where it is claimed as the folder of this Python."""
_LOOK_S = 0.2
_MESSAGE_BYTES = 4096
_STARTING: Json = {"waiting": {"reason": "ContainerCreating"}}


@dataclass
class Running:
    """A pod that a kubelet has."""

    pod: Json
    folder: Path
    processes: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)
    ending: asyncio.Event = field(default_factory=asyncio.Event)
    """It is to end: no container starts any more."""
    is_gone: bool = False
    """Its object has been taken away, or its node has: nothing more is told of it."""
    oom: set[str] = field(default_factory=set)
    """Containers that the kernel has killed for their memory."""
    states: dict[str, Json] = field(default_factory=dict)
    restarts: dict[str, int] = field(default_factory=dict)
    last: dict[str, Json] = field(default_factory=dict)


@dataclass(frozen=True)
class Image:
    """What the nodes know of images and users."""

    missing: frozenset[str]
    """Names that no registry has."""
    private: dict[str, str]
    """The imagePullSecret without which a name is not given out."""
    uid: int
    """Of containers that do not say one, as OpenShift gives one to each namespace."""


class Kubelets:
    """Those of all nodes."""

    def __init__(
        self, store: Store, folder: Path, image: Image, claims: dict[str, Path], *,
        restart_s: float, token: Any, environment: dict[str, str],
    ) -> None:  # fmt: skip
        """None runs anything yet.

        Args:
            store: With the pods.
            folder: For logs and volumes of pods.
            image: What containers start from.
            claims: Folders by "namespace/claim".
            restart_s: Before a container starts again, or an image is asked for again; it doubles.
            token: Makes one of a namespace's service account for so many seconds.
            environment: Variables of all images, beside PATH.
        """
        self.store, self.folder, self.image, self.claims = store, folder, image, claims
        self.restart_s, self.token = restart_s, token
        self.environment = {"PATH": _PATH, **environment}
        self.port, self.authorities = 443, ""
        """Of the API server, and what signs its certificate; set once it listens."""
        self.running: dict[str, Running] = {}
        self.tasks: set[asyncio.Task[None]] = set()
        self.fault: BaseException | None = None
        """Of the stand-in itself, which ends with it."""
        self._addresses = itertools.count(2)
        store.on_remove.append(self._removed)

    def sync(self) -> None:
        """Start what was bound to a node, end what is to be deleted, tell names."""
        if self.fault:
            raise self.fault
        for pod in self.store.all("Pod"):
            uid, metadata = pod["metadata"]["uid"], pod["metadata"]
            node = pod["spec"].get("nodeName")
            is_new = uid not in self.running and pod["status"]["phase"] == "Pending"
            if is_new and node and self.store.get("Node", node):
                folder = self.folder / "pods" / f"{metadata['name']}_{uid[:8]}"
                self.running[uid] = Running(pod, folder)
                self._spawn(self._play(self.running[uid]))
            running = self.running.get(uid)
            if running and metadata.get("deletionTimestamp") and not running.ending.is_set():
                running.ending.set()
                self._spawn(self._end(running, metadata["deletionGracePeriodSeconds"]))
        for running in self.running.values():
            self._tell_names(running)

    def _spawn(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: "asyncio.Task[None]") -> None:
        self.tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            self.fault = error
            self.store.changed.set()

    def _removed(self, kind: Kind, item: Json) -> None:
        running = self.running.get(item["metadata"]["uid"]) if kind.kind == "Pod" else None
        if running:
            self.kill(running)

    def kill(self, running: Running) -> None:
        """Its processes die at once, and nothing more is told of it."""
        running.is_gone = True
        running.ending.set()
        for process in running.processes.values():
            process.kill()

    def out_of_memory(self, pod: Json) -> None:
        """The kernel kills a pod's containers."""
        running = self.running[pod["metadata"]["uid"]]
        for name, process in running.processes.items():
            running.oom.add(name)
            process.kill()

    def kill_all(self) -> None:
        """End all processes."""
        for running in self.running.values():
            self.kill(running)
        for running in self.running.values():
            for process in running.processes.values():
                process.wait()

    async def _end(self, running: Running, grace_s: float) -> None:
        """SIGTERM, and SIGKILL after the grace."""
        uid = running.pod["metadata"]["uid"]
        self.store.event(running.pod, "Killing", "Stopping container", source="kubelet")
        for process in running.processes.values():
            process.terminate()
        clock = asyncio.get_running_loop().time
        ends = clock() + grace_s
        while clock() < ends and running.processes and not running.is_gone:
            await asyncio.sleep(min(0.05, max(0.0, ends - clock())))
        for process in running.processes.values():
            process.kill()
        while running.processes:
            await asyncio.sleep(0.02)
        if not running.is_gone:
            self._finish(running)
            newest = self.store.get(
                "Pod", running.pod["metadata"]["name"], running.pod["metadata"]["namespace"]
            )
            if newest and newest["metadata"]["uid"] == uid:
                self.store.remove(BY_NAME["Pod"], newest)

    async def _play(self, running: Running) -> None:
        pod, spec = running.pod, running.pod["spec"]
        names = [each["name"] for each in spec["containers"]]
        firsts = [each["name"] for each in spec.get("initContainers", ())]
        waits = {"waiting": {"reason": "PodInitializing" if firsts else "ContainerCreating"}}
        running.states = dict.fromkeys(names, waits) | dict.fromkeys(firsts, _STARTING)
        address = next(self._addresses)
        ip = f"127.100.{address // 250}.{address % 250 + 1}"
        self._write(running, lambda status: status.update(
            podIP=ip, podIPs=[{"ip": ip}], hostIP="127.0.0.1", startTime=now(),
        ))  # fmt: skip
        running.folder.mkdir(parents=True, exist_ok=True)
        running.folder.chmod(0o755)
        (running.folder / "hosts").write_text(hosts_of(self.store, self._newest(running)))
        limit = spec.get("activeDeadlineSeconds")
        if limit:
            self._spawn(self._deadline(running, limit))
        for container in spec.get("initContainers", ()):
            if not await self._until_done(running, container, first=True):
                break
        else:
            condition(self.store, pod, "Initialized", True)
            works = [self._until_done(running, each, first=False) for each in spec["containers"]]
            await asyncio.gather(*works)
        if not running.ending.is_set():
            self._finish(running)

    async def _deadline(self, running: Running, seconds: float) -> None:
        await asyncio.sleep(seconds)
        if running.ending.is_set():
            return
        running.ending.set()

        def late(status: Json) -> None:
            message = "Pod was active on the node longer than the specified deadline"
            status.update(phase="Failed", reason="DeadlineExceeded", message=message)

        self._write(running, late)
        for process in running.processes.values():
            process.terminate()
        await asyncio.sleep(running.pod["spec"]["terminationGracePeriodSeconds"])
        for process in running.processes.values():
            process.kill()

    async def _until_done(self, running: Running, container: Json, *, first: bool) -> bool:
        """Run a container, again where its pod says so; whether it has ended well."""
        name, policy = container["name"], running.pod["spec"]["restartPolicy"]
        delay = self.restart_s
        while not running.ending.is_set():
            if not await self._ready(running, container):
                return False
            code = await self._run(running, container)
            if code == 0 and (first or policy != "Always"):
                return True
            if policy == "Never" or running.ending.is_set():
                return False
            running.last[name] = running.states[name]
            message = f"back-off {delay:g}s restarting failed container={name}"
            self._state(running, name, "CrashLoopBackOff", message)
            self.store.event(
                running.pod, "BackOff", f"Back-off restarting failed container {name}", "Warning",
                "kubelet",
            )  # fmt: skip
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(running.ending.wait(), delay)
            delay = min(300.0, delay * 2)
            running.restarts[name] = running.restarts.get(name, 0) + 1
        return False

    async def _ready(self, running: Running, container: Json) -> bool:
        """Wait for volumes, the image and what variables come from; not if the pod ends first."""
        name, image = container["name"], container["image"]
        asked, delay = 0, self.restart_s
        while not running.ending.is_set():
            wait = _LOOK_S
            try:
                self._volumes(running)
            except NotThere as error:
                self._state(running, name, "ContainerCreating", "")
                message = f"MountVolume.SetUp failed for volume: {error}"
                self.store.event(running.pod, "FailedMount", message, "Warning", "kubelet")
            else:
                reason = self._image_fault(running.pod, container)
                if reason:
                    asked += 1
                    word = "ErrImagePull" if asked % 2 else "ImagePullBackOff"
                    said = reason if asked % 2 else f'Back-off pulling image "{image}": {reason}'
                    self._state(running, name, word, said)
                    told = f'Failed to pull image "{image}": {reason}' if asked % 2 else said
                    self.store.event(
                        running.pod,
                        "Failed" if asked % 2 else "BackOff",
                        told,
                        "Warning",
                        "kubelet",
                    )
                    wait, delay = delay, min(300.0, delay * (2 if asked % 2 == 0 else 1))
                elif fault := self._config_fault(running, container):
                    self._state(running, name, "CreateContainerConfigError", fault)
                    self.store.event(running.pod, "Failed", f"Error: {fault}", "Warning", "kubelet")
                else:
                    return True
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(running.ending.wait(), wait)
        return False

    def _image_fault(self, pod: Json, container: Json) -> str:
        image = container["image"]
        needed = self.image.private.get(image)
        has = {each["name"] for each in pod["spec"].get("imagePullSecrets", ())}
        if needed and (
            needed not in has or not self.store.get("Secret", needed, pod["metadata"]["namespace"])
        ):
            return (
                f'failed to pull and unpack image "{image}": failed to authorize: 401 Unauthorized'
            )
        if image in self.image.missing:
            return (
                f'failed to pull and unpack image "{image}": failed to resolve reference '
                f'"{image}": {image}: not found'
            )
        return ""

    def _config_fault(self, running: Running, container: Json) -> str:
        try:
            environment(self.store, running.pod, container, {})
        except NotThere as error:
            return str(error)
        uid, _, _ = self._ids(running.pod, container)
        for context in (container.get("securityContext"), running.pod["spec"]["securityContext"]):
            if (context or {}).get("runAsNonRoot") and uid == 0:
                return "container has runAsNonRoot and image will run as root"
        return ""

    def _volumes(self, running: Running) -> None:
        """Write what the API's objects hold; claims and empty folders are where they are."""
        pod = running.pod
        for volume in pod["spec"].get("volumes", ()):
            folder = running.folder / "volumes" / volume["name"]
            if "emptyDir" in volume:
                folder.mkdir(parents=True, exist_ok=True)
                folder.chmod(0o777)
            elif "persistentVolumeClaim" not in volume:
                write_volume(self.store, pod, volume, folder, self._token_of(pod))
        if self._has_token(pod):
            folder = running.folder / "account"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "namespace").write_text(pod["metadata"]["namespace"])
            (folder / "token").write_text(self._token_of(pod))
            (folder / "ca.crt").write_text(self.authorities)

    def _token_of(self, pod: Json) -> str:
        account = pod["spec"].get("serviceAccountName", "default")
        return str(self.token(pod["metadata"]["namespace"], account, 3600))

    def _has_token(self, pod: Json) -> bool:
        said = pod["spec"].get("automountServiceAccountToken")
        if said is not None:
            return bool(said)
        name = pod["spec"].get("serviceAccountName", "default")
        account = self.store.get("ServiceAccount", name, pod["metadata"]["namespace"]) or {}
        return bool(account.get("automountServiceAccountToken", True))

    def _ids(self, pod: Json, container: Json) -> tuple[int, int, list[int]]:
        of_pod = pod["spec"]["securityContext"]
        context = {**of_pod, **(container.get("securityContext") or {})}
        groups = [*of_pod.get("supplementalGroups", ())]
        if "fsGroup" in of_pod:
            groups.append(of_pod["fsGroup"])
        return context.get("runAsUser", self.image.uid), context.get("runAsGroup", 0), groups

    async def _run(self, running: Running, container: Json) -> int:
        """Run a container once; its exit code."""
        name = container["name"]
        spec = self._spec(running, container)
        log = running.folder / f"{name}.log"
        if log.exists():
            log.replace(running.folder / f"{name}.log.previous")
        # A signal that comes before the program can hand it on waits for that.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        with log.open("ab") as output:
            process = subprocess.Popen(
                [str(Path(sys.executable).resolve()), "-SEI", str(_PROGRAM)],
                stdin=subprocess.PIPE, stdout=output, stderr=output, start_new_session=True,
            )  # fmt: skip
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        running.processes[name] = process
        assert process.stdin is not None
        process.stdin.write(json.dumps(spec).encode())
        process.stdin.close()
        started = now()
        running.states[name] = {"running": {"startedAt": started}}
        self._write(running, lambda status: None)
        await _ended(process)
        code = process.wait()
        code = 128 - code if code < 0 else code
        del running.processes[name]
        running.states[name] = {"terminated": self._terminated(running, container, code, started)}
        shutil.rmtree(running.folder / f"{name}.layer", ignore_errors=True)
        if not running.is_gone:
            self._write(running, lambda status: None)
        return code

    def _terminated(self, running: Running, container: Json, code: int, started: str) -> Json:
        name = container["name"]
        reason = "Completed" if code == 0 else "Error"
        message = (running.folder / f"{name}.termination").read_text(errors="replace")
        error = running.folder / f"{name}.error"
        if code == START_ERROR and (fault := error.read_text()):
            reason, message = "StartError", fault
        if name in running.oom:
            reason = "OOMKilled"
        if (
            not message
            and code
            and container.get("terminationMessagePolicy", "").startswith("Fall")
        ):
            log = (running.folder / f"{name}.log").read_text(errors="replace")
            message = "".join(log.splitlines(keepends=True)[-80:])[-2048:]
        ended: Json = {
            "exitCode": code, "reason": reason, "startedAt": started, "finishedAt": now(),
            "containerID": f"stand-in://{running.pod['metadata']['uid']}/{name}",
        }  # fmt: skip
        return ended | ({"message": message[:_MESSAGE_BYTES]} if message else {})

    def _spec(self, running: Running, container: Json) -> Json:
        """What container.py reads."""
        pod, name = running.pod, container["name"]
        host = pod["spec"].get("hostname") or pod["metadata"]["name"]
        image = {
            **self.environment, "HOSTNAME": host, "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": str(self.port),
        }  # fmt: skip
        newest = self._newest(running)
        variables = environment(self.store, newest, container, image)
        words = [*container.get("command", ()), *container.get("args", ())]
        message = running.folder / f"{name}.termination"
        message.touch()
        message.chmod(0o666)
        uid, gid, groups = self._ids(pod, container)
        context = container.get("securityContext") or {}
        own = [
            {"source": str(message),
             "target": container.get("terminationMessagePath", "/dev/termination-log")},
            {"source": str(running.folder / "hosts"), "target": "/etc/hosts"},
        ]  # fmt: skip
        if self._has_token(pod):
            own.append({"source": str(running.folder / "account"), "target": _ACCOUNT})
        mounts = [
            self._mount(running, each, variables) for each in container.get("volumeMounts", ())
        ]
        return {
            "argv": [expand(word, variables) for word in words], "env": variables,
            "folder": container.get("workingDir") or "/", "hostname": host, "uid": uid, "gid": gid,
            "groups": groups, "root": str(running.folder / f"{name}.root"),
            "layer": str(running.folder / f"{name}.layer"),
            "hidden": [str(folder) for folder in {*self.claims.values()} - {_SYSTEM}],
            "read_only_root": bool(context.get("readOnlyRootFilesystem")),
            "error": str(running.folder / f"{name}.error"),
            "mounts": [{"read_only": False, "size": 0, **each} for each in [*own, *mounts]],
        }  # fmt: skip

    def _mount(self, running: Running, mount: Json, variables: dict[str, str]) -> Json:
        (volume,) = (
            each for each in running.pod["spec"]["volumes"] if each["name"] == mount["name"]
        )
        below = mount.get("subPath") or expand(mount.get("subPathExpr", ""), variables)
        read_only = bool(mount.get("readOnly")) or "secret" in volume or "projected" in volume
        memory = volume.get("emptyDir", {})
        target = mount["mountPath"].rstrip("/")
        if memory.get("medium") == "Memory":
            size = int(amount(memory.get("sizeLimit", "1Gi")))
            return {"source": "", "target": target, "size": size, "read_only": False}
        if claim := volume.get("persistentVolumeClaim"):
            namespace = running.pod["metadata"]["namespace"]
            folder = self.claims[f"{namespace}/{claim['claimName']}"]
            read_only = read_only or bool(claim.get("readOnly"))
        else:
            folder = running.folder / "volumes" / volume["name"]
        source = folder / below
        if not source.exists():
            source.mkdir(parents=True)
            source.chmod(folder.stat().st_mode)
        return {"source": str(source), "target": target, "read_only": read_only}

    def _newest(self, running: Running) -> Json:
        metadata = running.pod["metadata"]
        return self.store.get("Pod", metadata["name"], metadata["namespace"]) or running.pod

    def _tell_names(self, running: Running) -> None:
        """Its /etc/hosts, in its place: processes have it mounted."""
        file = running.folder / "hosts"
        if not running.processes or running.is_gone:
            return
        text = hosts_of(self.store, self._newest(running)).encode()
        if file.read_bytes() != text:
            with file.open("r+b") as hosts:
                os.pwrite(hosts.fileno(), text, 0)
                hosts.truncate(len(text))

    def _state(self, running: Running, name: str, reason: str, message: str) -> None:
        state = {"reason": reason} | ({"message": message} if message else {})
        if running.states.get(name) != {"waiting": state}:
            running.states[name] = {"waiting": state}
            self._write(running, lambda status: None)

    def _finish(self, running: Running) -> None:
        """The phase of a pod whose containers have all ended."""
        spec = running.pod["spec"]
        ended = [
            running.states[each["name"]].get("terminated")
            for each in [*spec.get("initContainers", ()), *spec["containers"]]
        ]
        is_well = all(each is not None and each["exitCode"] == 0 for each in ended)

        def phase(status: Json) -> None:
            status.setdefault("phase", "Pending")
            if status["phase"] not in ("Succeeded", "Failed"):
                status["phase"] = "Succeeded" if is_well else "Failed"

        self._write(running, phase)

    def _write(self, running: Running, change: Any) -> None:
        """Write a pod's status: its containers', the conditions that follow, and a change."""
        spec = running.pod["spec"]

        def of(container: Json) -> Json:
            name = container["name"]
            state = running.states.get(name, _STARTING)
            return {
                "name": name, "image": container["image"], "imageID": container["image"],
                "state": state, "lastState": running.last.get(name, {}),
                "ready": "running" in state or (
                    state.get("terminated", {}).get("exitCode") == 0
                    and container in spec.get("initContainers", ())
                ),
                "started": "running" in state, "restartCount": running.restarts.get(name, 0),
            }  # fmt: skip

        def write(pod: Json) -> None:
            status = pod["status"]
            status["containerStatuses"] = [of(each) for each in spec["containers"]]
            if spec.get("initContainers"):
                status["initContainerStatuses"] = [of(each) for each in spec["initContainers"]]
            states = [each["state"] for each in status["containerStatuses"]]
            if status["phase"] == "Pending" and any("running" in each for each in states):
                status["phase"] = "Running"
            change(status)
            is_ready = all(each["ready"] for each in status["containerStatuses"])
            reason = "" if is_ready else "ContainersNotReady"
            if status["phase"] in ("Succeeded", "Failed"):
                reason = "PodCompleted" if status["phase"] == "Succeeded" else "PodFailed"
            for word in ("ContainersReady", "Ready"):
                set_condition(status, word, is_ready and not reason, reason)
            if not spec.get("initContainers"):
                set_condition(status, "Initialized", True)

        self.store.change("Pod", running.pod, write)


async def _ended(process: "subprocess.Popen[bytes]") -> None:
    loop = asyncio.get_running_loop()
    over = asyncio.Event()
    watched = os.pidfd_open(process.pid)
    loop.add_reader(watched, over.set)
    try:
        await over.wait()
    finally:
        loop.remove_reader(watched)
        os.close(watched)


def set_condition(
    status: Json, kind: str, value: bool, reason: str = "", message: str = ""
) -> None:
    """Put a condition into a status; its time is that of its last change."""
    conditions = status.setdefault("conditions", [])
    said = {"type": kind, "status": "True" if value else "False"}
    said |= {key: text for key, text in (("reason", reason), ("message", message)) if text}
    for index, each in enumerate(conditions):
        if each["type"] == kind:
            since = each.get("lastTransitionTime")
            is_same = each["status"] == said["status"]
            time = since if is_same else now()
            conditions[index] = {**said, "lastTransitionTime": time}
            return
    conditions.append({**said, "lastTransitionTime": now()})


def condition(
    store: Store, pod: Json, kind: str, value: bool, reason: str = "", message: str = ""
) -> None:
    """Write a condition of a pod."""
    store.change(
        "Pod", pod, lambda each: set_condition(each["status"], kind, value, reason, message)
    )
