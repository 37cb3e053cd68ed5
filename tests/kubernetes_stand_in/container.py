"""A container: one process tree with its own mounts, processes and host name.

    python -SEI container.py  <  its JSON: see main

The machine's files are its image, under a layer that takes what it writes; only volumes last. Its
first process is process 1, which signals without a handler do not end, as in a real container. This
program hands SIGTERM on to it, and ends as it ends; both die with the kubelet.
"""

import ctypes
import json
import os
import signal
import sys
from typing import Any

_LIBC = ctypes.CDLL(None, use_errno=True)
_NEWNS, _NEWUTS, _NEWPID = 0x20000, 0x4000000, 0x20000000
_RDONLY, _NOSUID, _REMOUNT, _BIND, _REC, _PRIVATE = 1, 2, 32, 4096, 16384, 1 << 18
_PDEATHSIG = 1
START_ERROR = 128


def _mount(source: str, target: str, kind: str, flags: int = 0, data: str = "") -> None:
    arguments = [each.encode() for each in (source, target, kind)]
    if _LIBC.mount(*arguments, ctypes.c_ulong(flags), data.encode()) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), f"mount {source} at {target}")


def _bind(source: str, target: str, *, read_only: bool) -> None:
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if not os.path.exists(target):
            os.close(os.open(target, os.O_CREAT))
    _mount(source, target, "", _BIND | _REC)
    if read_only:
        _mount("", target, "", _BIND | _REMOUNT | _RDONLY)


def _tmpfs(target: str, options: str) -> None:
    os.makedirs(target, exist_ok=True)
    _mount("tmpfs", target, "tmpfs", _NOSUID, options)


def _enterable(root: str, target: str) -> None:
    """Let all users get to a mount, whose parents a runtime makes: they are not this machine's."""
    for number in range(1, target.count("/")):
        folder = root + "/".join(target.split("/")[: number + 1])
        if os.path.isdir(folder) and not os.stat(folder).st_mode & 0o001:
            os.chmod(folder, 0o755)


def _filesystem(spec: dict[str, Any]) -> None:
    root, layer = spec["root"], spec["layer"]
    _mount("", "/", "", _PRIVATE | _REC)
    for name in (root, f"{layer}/upper", f"{layer}/work"):
        os.makedirs(name, exist_ok=True)
    options = f"lowerdir=/,upperdir={layer}/upper,workdir={layer}/work"
    _mount("overlay", root, "overlay", 0, options)
    _mount("proc", f"{root}/proc", "proc")
    for name in ("dev", "sys"):
        _mount(f"/{name}", f"{root}/{name}", "", _BIND | _REC)
    _tmpfs(f"{root}/dev/shm", "size=64m,mode=1777")
    for folder in spec["hidden"]:
        _tmpfs(root + folder, "size=1m,mode=755")
    for mount in spec["mounts"]:
        _enterable(root, os.path.realpath(mount["target"]))
    for mount in sorted(spec["mounts"], key=lambda each: each["target"].count("/")):
        if mount["size"]:
            _tmpfs(root + os.path.realpath(mount["target"]), f"size={mount['size']},mode=1777")
        else:
            _bind(
                mount["source"],
                root + os.path.realpath(mount["target"]),
                read_only=mount["read_only"],
            )
    if spec["read_only_root"]:
        _mount("", root, "", _REMOUNT | _RDONLY)


def _first_process(spec: dict[str, Any]) -> None:
    _filesystem(spec)
    name = spec["hostname"].encode()
    _LIBC.sethostname(name, len(name))
    os.chroot(spec["root"])
    os.makedirs(spec["folder"], exist_ok=True)
    os.setgroups(spec["groups"])
    os.setresgid(spec["gid"], spec["gid"], spec["gid"])
    os.setresuid(spec["uid"], spec["uid"], spec["uid"])
    _LIBC.prctl(_PDEATHSIG, signal.SIGKILL)
    os.chdir(spec["folder"])
    for number in (signal.SIGTERM, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    if not spec["argv"]:
        raise OSError("no command specified, and this machine's files name none")
    os.execvpe(spec["argv"][0], spec["argv"], spec["env"])


def main() -> int:
    """Run what standard input describes; its exit code, 128 and a word where it cannot start.

    Keys: argv, env, folder, hostname, uid, gid, groups, root (where its files are mounted), layer
    (of what it writes), hidden (folders it does not see), read_only_root, error (a file for why it
    cannot start), and mounts: source, target, read_only, size (of memory, in place of a source).
    """
    spec = json.load(sys.stdin)
    _LIBC.prctl(_PDEATHSIG, signal.SIGKILL)
    if _LIBC.unshare(_NEWNS | _NEWUTS | _NEWPID) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    fault = os.open(spec["error"], os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_CLOEXEC)
    first = os.fork()
    if first == 0:
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
            null = os.open("/dev/null", os.O_RDONLY)
            os.dup2(null, 0)
            _first_process(spec)
        except OSError as error:
            os.write(fault, f"exec: {spec['argv'][:1]!r}: {error}".encode())
            os._exit(START_ERROR)
    signal.signal(signal.SIGTERM, lambda *_: os.kill(first, signal.SIGTERM))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    _, status = os.waitpid(first, 0)
    code = os.waitstatus_to_exitcode(status)
    return 128 - code if code < 0 else code


if __name__ == "__main__":
    os._exit(main())
