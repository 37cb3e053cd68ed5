"""The datasets and models that a form offers: the newest, or those of a name."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from api.services.session import Session
from catalog.errors import NotFound

_OFFERED = 100
_NUMBERS = ("integer", "bigint", "smallint", "double", "real", "float")
"""Types of tags by which frames are ranked."""
_OVERLAID = 25
"""Models whose predictions and errors Find offers to lay over pictures."""


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


def dataset_names(session: Session, typed: str) -> Choices:
    """Datasets whose name has what is typed last, each behind the names that stand before it.

    Args:
        session: The caller's.
        typed: Of a field that takes names with commas between.
    """
    before, comma, last = typed.rpartition(",")
    offered = dataset_choices(session, holding=last.strip().partition("@")[0])
    options = [(f"{before}{comma}{title}", text) for title, text in offered.options]
    return replace(offered, options=options)


def score_choices(session: Session, holding: str) -> Choices:
    """Tags of numbers whose name has a text, by name: what frames are ranked by."""
    text = holding.strip().casefold()
    tags = [
        (tag.tag, tag.title or tag.tag)
        for tag in session.tags.list()
        if tag.type in _NUMBERS and text in f"{tag.tag} {tag.title}".casefold()
    ]
    return Choices(tags[:_OFFERED], "", len(tags) <= _OFFERED)


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


def or_no_dataset(datasets: Choices) -> Choices:
    """None, and datasets: what a check of machines may read."""
    return replace(datasets, options=[("", "none"), *datasets.options], chosen="")


def or_predictions(models: Choices) -> Choices:
    """Models, and none: what a validation may score."""
    return replace(models, options=[*models.options, ("", "none: score predictions")])


def overlay_choices(session: Session, *, holding: str = "", chosen: str = "") -> Choices:
    """What may lie over pictures: labels, and what models predicted, newest first.

    Args:
        session: The caller's.
        holding: Only of models whose name holds this text.
        chosen: As `View.over`; it is offered, too.
    """
    models, text = session.pictures.models(), holding.casefold()
    offered = [name for name in models if text in name.casefold()][:_OVERLAID]
    options = {"": "nothing", "label": "labels"}
    for name in offered:
        options |= {
            f"prediction:{name}": f"predictions of {name}",
            f"errors:{name}": f"errors of {name}",
        }
    if chosen not in options:
        named = chosen.replace(":job:", ":job ").replace("prediction:", "predictions of ")
        options[chosen] = named.replace(":", " of ", 1)
    return Choices([*options.items()], chosen, len(models) <= _OVERLAID)
