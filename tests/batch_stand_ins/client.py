"""What each program of a stand-in does: hand its words to the stand-in's server, print the answer.

The text of this file follows a #! line in each of the programs (stand_in.py); it is not imported.
"""

# Importing pathlib would take as long as all the rest:
# ruff: noqa: PTH109, PTH112, PTH119, PTH120

import array
import json
import os
import signal
import socket
import sys

PLACE = ""  # the variable that says where the cluster is configured, written by stand_in.py
MISSING = ""  # what is said without it
KEEPS_SIGNALS = ("blaunch", "pbsdsh")


def main() -> int:
    """The exit code."""
    name = os.path.basename(sys.argv[0])
    try:
        place = os.environ[PLACE]
        folder = os.open(place if os.path.isdir(place) else os.path.dirname(place), os.O_RDONLY)
        line = socket.socket(socket.AF_UNIX)
        line.connect(f"/proc/self/fd/{folder}/socket")
    except (KeyError, OSError):
        sys.stderr.write(f"{name}: {MISSING}\n")
        return 255
    head = json.dumps(
        {"program": name, "words": sys.argv[1:], "folder": os.getcwd(), "uid": os.getuid(),
         "pid": os.getpid(), "environment": dict(os.environ)}
    ).encode()  # fmt: skip
    fds = array.array("i", [0, 1, 2])
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)]
    line.sendmsg([len(head).to_bytes(8, "big")], rights)
    line.sendall(head)
    if name in KEEPS_SIGNALS:
        for word in ("HUP", "INT", "TERM", "USR1", "USR2"):
            number = getattr(signal, f"SIG{word}")
            signal.signal(number, lambda got, _: line.sendall(f"{int(got)}\n".encode()))
    answers = line.makefile("rb")
    for text in answers:
        answer = json.loads(text)
        if "want" in answer:
            given = sys.stdin.buffer.read()
            line.sendall(len(given).to_bytes(8, "big") + given)
            continue
        for fd, key in ((1, "out"), (2, "err")):
            rest = answer.get(key, "").encode(errors="surrogateescape")
            while rest:
                rest = rest[os.write(fd, rest) :]
        if "code" in answer:
            return int(answer["code"])
    sys.stderr.write(f"{name}: the connection was closed\n")
    return 255


if __name__ == "__main__":
    sys.exit(main())
