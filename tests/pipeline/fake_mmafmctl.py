"""A program that stands for mmafmctl of IBM Spectrum Scale, as strict as its manual.

With the first argument "mmafmcosctl" it stands for that command, and takes what that one takes.

It knows filesets from the JSON file named by FAKE_AFM: "DEVICE/FILESET" -> its junction, its home
folder, how many files it fetches between two looks. Uncached files are sparse, without a block. A
prefetch only queues: files come while its statistics are asked for. What is done is appended to
`<junction>/.afm/log`, as JSON lines.

Source: https://www.ibm.com/docs/en/storage-scale/5.2.0?topic=reference-mmafmctl-command and
https://www.ibm.com/docs/en/storage-scale/5.2.1?topic=reference-mmafmcosctl-command
"""

import argparse
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any, NoReturn

FAILED = ".afm/.prefetchedfailed.list"


def evicted(path: Path) -> None:
    """Take a file's blocks; size and times stay."""
    status = path.stat()
    os.truncate(path, 0)
    os.truncate(path, status.st_size)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def say(line: str) -> None:
    """Print a line."""
    sys.stdout.write(line + "\n")


def refuse(reason: str) -> NoReturn:
    """End as the command does when it is used wrongly."""
    sys.stderr.write(f"mmafmctl: {reason}" + "\n")
    say("mmafmctl: Command failed. Examine previous error messages to determine cause.")
    sys.exit(1)


class Parser(argparse.ArgumentParser):
    """Refuses as mmafmctl does."""

    def error(self, message: str) -> NoReturn:
        """Refuse."""
        refuse(f"Incorrect option: {message}")


def arguments() -> Any:
    """The command line, by the synopsis of the manual."""
    parser = Parser(add_help=False, allow_abbrev=False)
    parser.add_argument("device")
    actions = parser.add_subparsers(dest="action", required=True, parser_class=Parser)
    prefetch = actions.add_parser("prefetch", add_help=False, allow_abbrev=False)
    evict = actions.add_parser("evict", add_help=False, allow_abbrev=False)
    getstate = actions.add_parser("getstate", add_help=False, allow_abbrev=False)
    for action in (prefetch, evict, getstate):
        action.add_argument("-j", dest="fileset", required=True)
    for action in (prefetch, evict):
        action.add_argument("--list-file", type=Path)
    amounts = getstate.add_mutually_exclusive_group()
    amounts.add_argument("--read-stats", action="store_true")
    amounts.add_argument("--write-stats", action="store_true")
    retry = prefetch.add_mutually_exclusive_group()
    retry.add_argument("--enable-failed-file-list", action="store_true")
    retry.add_argument("--retry-failed-file-list", action="store_true")
    prefetch.add_argument("--policy", action="store_true")
    prefetch.add_argument("--force", action="store_true")
    prefetch.add_argument("--gateway")
    prefetch.add_argument("--prefetch-threads", type=int, choices=range(1, 256))
    prefetch.add_argument("-s", dest="work")
    evict.add_argument("--file", type=Path)
    evict.add_argument("--safe-limit", type=int)
    evict.add_argument("--order", choices=("LRU", "SIZE"))
    return parser.parse_args()


def cos_arguments(words: list[str]) -> Any:
    """The command line of mmafmcosctl, by the synopsis of its manual."""
    parser = Parser(add_help=False, allow_abbrev=False)
    parser.add_argument("device")
    parser.add_argument("fileset")
    if "--download-stats" in words:
        parser.add_argument("--download-stats", action="store_true", required=True)
        return parser.parse_args(words)
    parser.add_argument("path", type=Path)
    actions = parser.add_subparsers(dest="action", required=True, parser_class=Parser)
    download = actions.add_parser("download", add_help=False, allow_abbrev=False)
    evict = actions.add_parser("evict", add_help=False, allow_abbrev=False)
    for action in (download, evict):
        amount = action.add_mutually_exclusive_group(required=True)
        amount.add_argument("--object-list", dest="list_file", type=Path)
        amount.add_argument("--all", action="store_true")
    part = download.add_mutually_exclusive_group()
    part.add_argument("--metadata", action="store_true")
    part.add_argument("--data", action="store_true")
    download.add_argument("--threads", type=int, choices=range(1, 256))
    download.add_argument("--enable-failed-object-list", action="store_true")
    evict.add_argument("--metadata", action="store_true")
    evict.add_argument("--validate", action="store_true")
    return parser.parse_args(words)


def listed(path: Path, junction: Path, *, is_escaped: bool) -> list[Path]:
    """The files of a list: absolute paths of the fileset, one a line."""
    files = []
    for line in path.read_text(errors="surrogateescape").splitlines():
        if not line.startswith("/"):
            refuse(f"{line}: fully qualified path names are expected")
        if "\\" in line:
            if not is_escaped:
                refuse(f"{line}: special characters; use a policy")
            line = line.replace("\\n", "\n").replace("\\\\", "\\")
        if not Path(line).is_relative_to(junction):
            refuse(f"{line}: not in the fileset")
        files.append(Path(line))
    if not files:
        refuse(f"{path}: is empty")
    return files


def prefetch(asked: Any, fileset: dict[str, Any], junction: Path) -> None:
    """Queue the files of a list."""
    if asked.policy and asked.list_file is None:
        refuse("--policy: only with --list-file")
    files = listed(asked.list_file, junction, is_escaped=asked.policy)
    say(f"mmafmctl: Performing prefetching of fileset: {asked.fileset}")
    say("  Queued       (Total)      Failed                TotalData")
    say("                                                  (approx in Bytes)")
    size, cached, queue = 0, 0, []
    for number, file in enumerate(files):
        say(f"    {number}        ({len(files)})           0                     {size} ")
        is_shown = file.exists() or not fileset.get("cos")
        status = (file if is_shown else Path(fileset["home"], file.relative_to(junction))).stat()
        size += status.st_size
        if is_shown and status.st_blocks and status.st_size:
            cached += 1
        else:
            queue.append(str(file))
    say(f"    {len(files)}        ({len(files)})           0                     {size} ")
    state = {"queue": queue, "failed": 0, "cached": cached, "total": len(files), "bytes": 0}
    (junction / ".afm" / "state").write_text(json.dumps(state))
    (junction / FAILED).write_text("")


def statistics(asked: Any, fileset: dict[str, Any], junction: Path) -> None:
    """Tell how the last prefetch stands; some more files have come since the last look."""
    path = junction / ".afm" / "state"
    state = json.loads(path.read_text())
    for _ in range(min(fileset["at_once"], len(state["queue"]))):
        file = Path(state["queue"].pop(0))
        at_home = Path(fileset["home"], file.relative_to(junction))
        if not at_home.exists():
            state["failed"] += 1
            with (junction / FAILED).open("a") as failed:
                failed.write(f"{file}\n")
            continue
        shutil.copy2(at_home, file)
        state["bytes"] += file.stat().st_size
    path.write_text(json.dumps(state))
    columns = ("Pending", "Failed", "Already Cached", "Total", "Data in Bytes")
    say("Fileset Name    " + "    ".join(f"Async Read ({column})" for column in columns))
    say("------------    " + "    ".join("-" * 25 for _ in columns))
    row = (len(state["queue"]), state["failed"], state["cached"], state["total"], state["bytes"])
    say(f"{asked.fileset}        " + "        ".join(map(str, row)))


def getstate(asked: Any, fileset: dict[str, Any], junction: Path) -> None:
    """Tell the state of a fileset."""
    columns = (
        "Fileset Name", "Fileset Target", "Cache State", "Gateway Node", "Queue Length",
        "Queue numExec",
    )  # fmt: skip
    say("    ".join(columns))
    say("    ".join("-" * len(column) for column in columns))
    say(f"{asked.fileset}    nfs://nas{fileset['home']}    Active    gw1    0    0")


def evict(asked: Any, fileset: dict[str, Any], junction: Path) -> None:
    """Take the blocks of the files of a list; those with changes of their own stay."""
    if asked.list_file is None:
        refuse("evict: --list-file is expected")
    for file in listed(asked.list_file, junction, is_escaped=False):
        if str(file) not in fileset.get("dirty", ()):
            evicted(file)


def main() -> None:
    """Do what is asked."""
    is_cos = sys.argv[1:2] == ["mmafmcosctl"]
    asked = cos_arguments(sys.argv[2:]) if is_cos else arguments()
    filesets = json.loads(Path(os.environ["FAKE_AFM"]).read_text())
    fileset = filesets.get(f"{asked.device}/{asked.fileset}")
    if fileset is None:
        refuse(f"Fileset {asked.fileset} is not an AFM fileset of {asked.device}.")
    junction = Path(fileset["junction"])
    with (junction / ".afm" / "log").open("a") as log:
        log.write(json.dumps(sys.argv[1:]) + "\n")
    if is_cos:
        cos(asked, fileset, junction)
    elif asked.action == "getstate":
        getstate(asked, fileset, junction)
    elif asked.action == "evict":
        evict(asked, fileset, junction)
    elif asked.list_file is None:
        statistics(asked, fileset, junction)
    else:
        prefetch(asked, fileset, junction)


def cos(asked: Any, fileset: dict[str, Any], junction: Path) -> None:
    """Do what mmafmcosctl is asked: the same in other words, below a folder of the fileset."""
    if not fileset.get("cos"):
        refuse(f"Fileset {asked.fileset} is not an AFM to cloud object storage fileset.")
    if "path" not in asked:
        statistics(asked, fileset, junction)
        return
    if not asked.path.is_relative_to(junction):
        refuse(f"{asked.path}: not in the fileset")
    asked.policy = False
    (evict if asked.action == "evict" else prefetch)(asked, fileset, junction)


if __name__ == "__main__":
    main()
