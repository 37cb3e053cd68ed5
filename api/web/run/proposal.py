"""A proposal of training data as a page shows it: frames with reasons, kept or not, and totals."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from api.schemas.improvements import ImprovementBody, NewImprovement
from api.services.session import Session
from api.web.find.view import View
from api.web.forms import names
from catalog.errors import InvalidInput
from query.question.wrong_value import checked

MOST = 1_000
"""Frames of each kind that a page proposes: each has its pictures and its field."""

_WEAK = 0.005
"""Weakness below which a class has no total: it would be told as 0.00."""

_FIELDS = ("frames", "label", "classes", "per_scene", "min_gap_s", "seed")
_SHOWN = ("scene", "camera", "frame_number")


@dataclass(frozen=True)
class AskedProposal:
    """What a page's form asks an improvement for."""

    fields: Mapping[str, str]
    """Fields of the form that are filled in, by name; `at` is the snapshot to choose from."""

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, str]]) -> "AskedProposal":
        """The fields that say something; others are left out."""
        filled = {name: value.strip() for name, value in pairs if value.strip()}
        return cls({name: filled[name] for name in (*_FIELDS, "at") if name in filled})

    def get(self, name: str) -> str:
        """A field's text; "" where it says nothing."""
        return self.fields.get(name, "")

    @property
    def query(self) -> str:
        """The fields as a query string."""
        return urlencode(self.fields)

    def settings(self, **others: Any) -> dict[str, Any]:
        """The arguments of `Models.improve`, some of them given.

        Raises:
            InvalidInput: A value cannot be used.
        """
        values: dict[str, Any] = {name: self.get(name) for name in _FIELDS if self.get(name)}
        if "classes" in values:
            values["classes"] = names(values["classes"])
        request = checked(NewImprovement, **values)
        if max(request.frames, request.label) > MOST:
            raise InvalidInput(
                f"frames {request.frames}, label {request.label}: a page proposes at most {MOST:,} "
                "of each; ask for fewer; framesift improve has no such limit"
            )
        at = self.get("at")
        if at and not (at.isdecimal() and 0 < int(at) < 2**63):
            raise InvalidInput(f"at={at[:40]}: expected the number of a snapshot")
        return {**dict(request), "at": int(at) if at else None, **others}


@dataclass(frozen=True)
class Proposed:
    """A frame of a proposal."""

    frame: Mapping[str, Any]
    """fkey, scene, camera, frame_number."""
    reason: str
    kept: bool
    classes: Sequence[str]
    """Tags of the classes of `Total`s that its label has."""


@dataclass(frozen=True)
class Total:
    """Frames of a class in the training split, before and with the frames that are kept."""

    tag: str
    name: str
    weakness: float
    """How weak the model is in it, 0 to 1."""
    before: int
    added: int


@dataclass(frozen=True)
class Part:
    """The frames of one kind: to add, or to label."""

    field: str
    """Name of the form's field that keeps one."""
    frames: Sequence[Proposed]
    view: View
    """What lies over their pictures."""
    totals: Sequence[Total]
    """Of classes; of labelled frames alone."""

    @property
    def kept(self) -> int:
        """Number of frames that are kept."""
        return sum(one.kept for one in self.frames)

    @property
    def scenes(self) -> int:
        """Number of scenes of these."""
        return len({one.frame["scene"] for one in self.frames if one.kept})


def parts_of(
    session: Session, body: ImprovementBody, dropped: Collection[str] = ()
) -> tuple[Part, Part]:
    """The frames to add and those to label of a proposal; some are dropped."""
    expects = (body.unsaved or {}).get("expects", [])
    tags = [row["class"] for row in expects]
    rows = session.models.proposed_frames(body, (*_SHOWN, *tags))
    reasons = {one.fkey: one.reason for one in body.reasons}

    def proposed(fkeys: Sequence[str]) -> list[Proposed]:
        return [
            Proposed(
                rows[fkey], reasons[fkey], fkey not in dropped,
                [tag for tag in tags if rows[fkey].get(tag)],
            )
            for fkey in fkeys
        ]  # fmt: skip

    to_add, to_label = proposed(body.to_add), proposed(body.to_label)
    names_of = session.tags.class_names()
    totals = [
        Total(
            row["class"], names_of.get(row["class"], row["class"]), row["weakness"], row["frames"],
            sum(row["class"] in one.classes for one in to_add if one.kept),
        )
        for row in expects
    ]  # fmt: skip
    shown = {tag for one in to_add for tag in one.classes}
    totals = [one for one in totals if one.weakness >= _WEAK and (one.before or one.tag in shown)]
    predicts = body.model in session.pictures.models()
    return (
        Part("add", to_add, View(over="label"), totals),
        Part("list", to_label, View(over=f"prediction:{body.model}" if predicts else ""), ()),
    )


def dropped_of(body: ImprovementBody, field: str, kept: Sequence[str]) -> list[str]:
    """The frames of a part of a proposal that a form does not keep.

    Args:
        body: The proposal, made again.
        field: The part's, as `Part` has it.
        kept: fkeys that the form keeps.

    Raises:
        InvalidInput: It keeps one that is not proposed any more.
    """
    proposed = body.to_add if field == "add" else body.to_label
    if strange := [fkey for fkey in kept if fkey not in {*proposed}]:
        raise InvalidInput(
            f"frame {strange[0][:300]}: it is not proposed any more, as {body.validation} or what "
            "is validated with says something else by now; propose again"
        )
    of_form = {*kept}
    return [fkey for fkey in proposed if fkey not in of_form]
