"""Permissions that count for root, too: what tests of unreadable folders need."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

_VERSION_3 = 0x20080522
_OVERRIDES = 1 << 1 | 1 << 2  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH

_Header = ctypes.c_uint32 * 2
_Data = ctypes.c_uint32 * 6  # effective, permitted, inheritable; then their upper halves


@contextmanager
def permissions_count() -> Iterator[None]:
    """For the block, in this thread and those it starts, files' permissions hold for root as well.

    Source: capset(2), capabilities(7).
    """
    if os.geteuid() != 0:
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header, before = _Header(_VERSION_3, 0), _Data()
    _check(libc.capget(header, before))
    without = _Data(*before)
    without[0] &= ~_OVERRIDES
    _check(libc.capset(header, without))
    try:
        yield
    finally:
        _check(libc.capset(header, before))


def _check(answer: int) -> None:
    if answer != 0:
        raise OSError(ctypes.get_errno(), "capabilities cannot be set")
