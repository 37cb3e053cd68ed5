"""The datasets and models that the form of a job offers: the newest, or those of a name."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

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
    """Models, newest first, ONNX files among them: arguments as of `dataset_choices`."""
    newest = session.models.newest(limit=_OFFERED + 1, holding=holding)
    options = [(one.name, f"{one.name} (ONNX)" if one.is_onnx else one.name) for one in newest]
    offered = options[:_OFFERED]
    if chosen and chosen not in dict(offered):
        with suppress(NotFound):
            name = session.models.get(chosen).name
            offered = [(name, name), *offered]
    return Choices(offered, chosen, len(newest) <= _OFFERED)


def trained(models: Choices) -> Choices:
    """Those that trainings made, which another goes on from."""
    return replace(models, options=[(name, text) for name, text in models.options if name == text])


def or_predictions(models: Choices) -> Choices:
    """Models, and none: what a validation may score."""
    return replace(models, options=[*models.options, ("", "none: score predictions")])
