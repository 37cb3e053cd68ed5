"""A program that stands for eeadm of IBM Spectrum Archive, as strict as its manual.

`eeadm recall LIST` and `eeadm migrate LIST -p POOL` take a file with one absolute path a line. What
is on tape lies below the folder that FAKE_TAPE names, at the same path; a file that is not there
cannot be recalled. One that is read-only is not migrated, as one that changed a minute ago.

Source: https://www.ibm.com/docs/en/storage-archive-ee/1.3.5?topic=commands-eeadm-recall
"""

import os
import shutil
import sys
from pathlib import Path


def say(line: str) -> None:
    """Print a message with its time."""
    sys.stdout.write(f"2026-11-23 10:33:51 {line}\n")


def recalled(path: Path, on_tape: Path) -> bool:
    """Bring a file back, where the tape has it."""
    if on_tape.exists():
        shutil.copy2(on_tape, path)
    return on_tape.exists()


def migrated(path: Path, on_tape: Path) -> bool:
    """Leave a stub of a file."""
    status = path.stat()
    if not status.st_mode & 0o200 or not status.st_blocks:
        return False
    on_tape.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(path, on_tape)
    os.truncate(path, 0)
    os.truncate(path, status.st_size)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    return True


def main() -> int:
    """Do what is asked."""
    action, pool = sys.argv[1:2], sys.argv[3:]
    if (action, pool) not in ((["recall"], []), (["migrate"], ["-p", "pool1"])):
        say("GLESS009E: Unsupported command.")
        return 1
    lines = Path(sys.argv[2]).read_text().splitlines()
    if not lines or not all(line.startswith("/") and "//" not in line for line in lines):
        say("GLESL001E: The list is empty, or a line is no absolute path.")
        return 1
    tape = Path(os.environ["FAKE_TAPE"])
    with (tape / ("log" if action == ["recall"] else "migrated")).open("a") as log:
        log.writelines(f"{line}\n" for line in lines)
    say(f"GLESL268I: {len(lines)} file name(s) have been provided to {action[0]}.")
    done = recalled if action == ["recall"] else migrated
    failed = sum(not done(Path(line), tape / line.removeprefix("/")) for line in lines)
    if failed:
        say(f"GLESL841I: {len(lines) - failed} file(s) succeeded, {failed} file(s) failed.")
        return 1
    say(f"GLESL839I: All {len(lines)} file(s) has been successfully processed.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
