"""Exit statuses by which a job tells whether another attempt may go on. A leaf."""

GOES_ON = 75
"""Exit code of a program that was interrupted and goes on when it is started again
(EX_TEMPFAIL)."""

_OF_SIGNAL, _MOST_SIGNAL = 128, 64


def may_go_on(code: int) -> bool:
    """Return whether a program that ended so may go on when it is started again.

    That is where it says so, or a signal ended it: a process that died, not one that refused.

    Args:
        code: Exit status; negative, or 128 more than its number, for a signal.

    >>> [code for code in (0, 1, 2, 75, -9, 137, 143, 255) if may_go_on(code)]
    [75, -9, 137, 143]
    """
    return code == GOES_ON or signal_of(code) is not None


def signal_of(code: int) -> int | None:
    """The number of the signal that ended a program; None where none did.

    >>> [signal_of(code) for code in (0, 75, -9, 137, 255)]
    [None, None, 9, 9, None]
    """
    if code < 0:
        return -code
    return code - _OF_SIGNAL if _OF_SIGNAL < code <= _OF_SIGNAL + _MOST_SIGNAL else None
