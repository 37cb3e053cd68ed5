"""A histogram's axes, as options that name their tag say them."""

from collections.abc import Iterable, Mapping, Sequence

from catalog.errors import InvalidInput, UnknownName
from query.question.wrong_value import checked
from query.statistics.histogram_report import AxisRequest

_BINS = {1: 20, 2: 8}
"""Bins of a number, and texts with a bin of their own, by the number of tags."""

BINS = "Bins of a number; 20, or 8 of two tags."
TOP = "Most frequent texts; 20, or 8 of two tags."
EDGES = "TAG=EDGE,EDGE,...: edges of a tag's bins, rising."
LOG = "Tags with bins of equal ratio."
ZERO = "Tags with a bin for 0 alone."
# What the options do, in the words of every door (`tests/api/test_histogram_words.py`).


_NO_EDGES: Mapping[str, Sequence[float]] = {}


def axes_of(
    tags: Sequence[str],
    bins: int | None = None,
    top: int | None = None,
    edges: Mapping[str, Sequence[float]] = _NO_EDGES,
    log: Sequence[str] = (),
    zero: Sequence[str] = (),
) -> list[AxisRequest]:
    """The axes of a histogram of one or two tags.

    Args:
        bins: Bins of a number.
        top: Texts with a bin of their own.
        edges: Edges of a tag's bins; each names one of the tags.
        log: Those of the tags that have a logarithmic scale.
        zero: Those of the tags that have a bin for 0.

    Raises:
        UnknownName: An option names another tag.
    """
    for named in (*edges, *log, *zero):
        if named not in tags:
            raise UnknownName("tag", named, tags, "It is given in an option.")
    default = _BINS[len(tags)]
    axes = []
    for tag in tags:
        axes.append(
            checked(
                AxisRequest,
                tag=tag,
                bins=bins or default,
                top=top or default,
                edges=tuple(edges[tag]) if tag in edges else None,
                log=tag in log,
                zero=tag in zero,
            )
        )
    return axes


def edges_of(texts: Iterable[str]) -> dict[str, tuple[float, ...]]:
    """Edges of bins by tag, each given as "TAG=EDGE,EDGE,..."."""
    return dict(map(_edges_of, texts))


def _edges_of(text: str) -> tuple[str, tuple[float, ...]]:
    tag, _, listed = text.rpartition("=")
    try:
        edges = tuple(float(edge) for edge in listed.split(","))
    except ValueError:
        edges = ()
    if not tag.strip() or not edges:
        raise InvalidInput(f"edges '{text}': expected TAG=EDGE,EDGE,... such as car=0,1000,100000")
    return tag.strip(), edges
