"""A program that stands for eeadm of IBM Spectrum Archive, as strict as its manual.

`eeadm recall LIST` takes a file with one absolute path a line. What is on tape lies below the
folder that FAKE_TAPE names, at the same path; a file that is not there cannot be recalled.

Source: https://www.ibm.com/docs/en/storage-archive-ee/1.3.5?topic=commands-eeadm-recall
"""

import os
import shutil
import sys
from pathlib import Path


def say(line: str) -> None:
    """Print a message with its time."""
    sys.stdout.write(f"2026-11-23 10:33:51 {line}\n")


def main() -> int:
    """Do what is asked."""
    if len(sys.argv) != 3 or sys.argv[1] != "recall":
        say("GLESS009E: Unsupported command.")
        return 1
    lines = Path(sys.argv[2]).read_text().splitlines()
    if not lines or not all(line.startswith("/") and "//" not in line for line in lines):
        say("GLESL001E: The list is empty, or a line is no absolute path.")
        return 1
    tape = Path(os.environ["FAKE_TAPE"])
    with (tape / "log").open("a") as log:
        log.writelines(f"{line}\n" for line in lines)
    say(f"GLESL268I: {len(lines)} file name(s) have been provided to recall.")
    failed = 0
    for line in lines:
        on_tape = tape / line.removeprefix("/")
        if on_tape.exists():
            shutil.copy2(on_tape, line)
        else:
            failed += 1
    if failed:
        say(f"GLESL841I: {len(lines) - failed} file(s) succeeded, {failed} file(s) failed.")
        return 1
    say(f"GLESL839I: All {len(lines)} file(s) has been successfully processed.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
