"""Pages of libraries' files that a process touched while it imported them, and needs no more."""

import ctypes
import re
from contextlib import suppress
from pathlib import Path

_MADV_DONTNEED = 4
_MAPPING = re.compile(r"([0-9a-f]+)-([0-9a-f]+) r-.p \S+ \S+ [1-9]\d* ")
_ALL_OF_THE_FILE = re.compile(r"Anonymous: +0 kB")


def drop_library_pages() -> None:
    """Take the pages of libraries' code and constants out of this process's memory.

    The kernel maps them again where they are used, from its page cache. An import touches some
    300 MiB of TensorFlow's, LLVM's and Arrow's files, of which a validation uses a quarter later.
    A page that was written to (a relocation) is no longer the file's: its mapping stays as it is.
    Systems other than Linux keep theirs.

    Source: man 2 madvise, man 5 proc (smaps)
    """
    with suppress(OSError, AttributeError):
        madvise = ctypes.CDLL(None).madvise
        madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        for first, end in _clean_mappings(Path("/proc/self/smaps").read_text("utf-8")):
            madvise(first, end - first, _MADV_DONTNEED)


def _clean_mappings(smaps: str) -> list[tuple[int, int]]:
    """First address and end of each private mapping that is read only and all of a file."""
    mappings = []
    addresses = None
    for line in smaps.splitlines():
        if mapping := _MAPPING.match(line):
            addresses = int(mapping[1], 16), int(mapping[2], 16)
        elif addresses and line.startswith("Anonymous:"):
            if _ALL_OF_THE_FILE.match(line):
                mappings.append(addresses)
            addresses = None
    return mappings
