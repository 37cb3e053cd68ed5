"""The datasets and models that the form of a job offers: the newest, or those of a name."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from api.services.session import Session
from catalog.errors import NotFound

_OFFERED = 100


@dataclass(frozen=True)
class Choices:
    """What a list of the form offers."""

    options: Sequence[tuple[str, str]]
    """Value and text of each."""
    chosen: str
    """The value that is chosen at first; empty for the first one."""
    are_all: bool
    """Whether there are no others."""


def dataset_choices(session: Session, *, holding: str = "", chosen: str = "") -> Choices:
    """Datasets, newest first.

    Args:
        session: The caller's.
        holding: Only those whose name holds this text.
        chosen: NAME or NAME@VERSION, which is offered, too; empty for none.
    """
    newest = session.datasets.newest(limit=_OFFERED + 1, holding=holding)
    offered = newest[:_OFFERED]
    titles = {f"{one.name}@{one.version}": one.frames for one in offered}
    with suppress(NotFound):  # it was removed since the link was made
        named = session.datasets.get(chosen) if chosen else None
        if named is not None:
            chosen = f"{named.name}@{named.version}"
            titles = {chosen: named.frames} | titles
    options = [(title, f"{title} ({frames:,} frames)") for title, frames in titles.items()]
    return Choices(options, chosen, len(newest) <= _OFFERED)


def model_choices(session: Session, *, holding: str = "", chosen: str = "") -> Choices:
    """Models, newest first: arguments as of `dataset_choices`."""
    newest = session.models.newest(limit=_OFFERED + 1, holding=holding)
    offered = newest[:_OFFERED]
    if chosen and chosen not in offered:
        with suppress(NotFound):
            offered = [session.models.get(chosen).name, *offered]
    return Choices([(name, name) for name in offered], chosen, len(newest) <= _OFFERED)
