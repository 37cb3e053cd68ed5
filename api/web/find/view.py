"""How the frames found are shown: their order, what lies over their pictures, size and captions.

    /?min.car=1000&sort=car+desc&over=errors:first&truth=car&predicted=truck&size=large&caption=car

The parameters stand in the URL beside the question, and play no part in which frames are found.
``pin=car`` has a facet stand before all others.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from catalog.errors import InvalidInput
from query.frames.frame_order import FrameOrder

PARAMETERS = ("sort", "over", "truth", "predicted", "size", "caption", "pin")
"""Names of the URL's parameters."""

LAYERS = ("label", "prediction", "errors")
SIZES = ("small", "medium", "large")

_WIDTHS = {"small": 320, "medium": 320, "large": 640}
"""Of a picture that is asked for [pixels]."""

_MOST_CAPTIONS = 8

_OF_JOB = "job:"


@dataclass(frozen=True)
class View:
    """How frames are shown."""

    sort: str = ""
    """A column, with ' desc' for falling order; by fkey when empty."""
    over: str = ""
    """What lies over each picture: ``label``, ``prediction:MODEL`` or ``errors:MODEL``.

    In a model's place ``job:NAME`` means the predictions that a validation scored.
    """
    truth: str = ""
    """Only pixels whose label has this class."""
    predicted: str = ""
    """Of errors: only pixels that the model took for this class."""
    size: str = "medium"
    """Of the pictures."""
    captions: tuple[str, ...] = ()
    """Columns whose values stand below each picture."""

    @classmethod
    def of(cls, parameters: Mapping[str, str]) -> "View":
        """The view that a URL's parameters ask for.

        Raises:
            InvalidInput: One has no meaning.
        """
        over, size = parameters.get("over", ""), parameters.get("size", "") or "medium"
        layer, _, model = over.partition(":")
        if over and (layer not in LAYERS or bool(model) == (layer == "label")):
            raise InvalidInput(
                f"over={over[:80]}: expected label, prediction:MODEL or errors:MODEL"
            )
        if size not in SIZES:
            raise InvalidInput(f"size={size[:80]}: expected {', '.join(SIZES)}")
        names = [name.strip().lower() for name in parameters.get("caption", "").split(",")]
        captions = tuple(dict.fromkeys(filter(None, names)))
        if len(captions) > _MOST_CAPTIONS:
            raise InvalidInput(
                f"caption: {len(captions)} columns, expected {_MOST_CAPTIONS} at most"
            )
        sort = parameters.get("sort", "")
        truth, predicted = parameters.get("truth", ""), parameters.get("predicted", "")
        return cls(sort, over, truth, predicted, size, captions)

    @property
    def order(self) -> FrameOrder | None:
        """The order of the frames; None for that by fkey.

        Raises:
            InvalidInput: It is none.
        """
        return FrameOrder.parse(self.sort) if self.sort else None

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns whose values stand below each picture: the captions, and that of the order."""
        order = self.order
        sorted_by = (order.column,) if order is not None and order.column != "fkey" else ()
        return tuple(dict.fromkeys((*sorted_by, *self.captions)))

    @property
    def width(self) -> int:
        """Of a picture that is asked for [pixels]."""
        return _WIDTHS[self.size]

    @property
    def job(self) -> str:
        """The validation whose predictions lie over each picture; "" where a model's do."""
        of = self.over.partition(":")[2]
        return of.removeprefix(_OF_JOB) if of.startswith(_OF_JOB) else ""

    @property
    def address(self) -> str:
        """The query of a frame's page that shows the same over its picture; "" where nothing is."""
        return f"?{urlencode({'over': self.over})}" if self.over else ""

    def picture(self, fkey: str) -> str:
        """The URL of a frame's camera image."""
        return _picture("images", fkey, {"width": self.width, "format": "jpeg", "quality": 75})

    def layer(self, fkey: str) -> str:
        """The URL of what lies over a frame's picture; "" where nothing does."""
        kind, _, model = self.over.partition(":")
        made = {"job": self.job} if self.job else {"model": model}
        look: dict[str, Any] = {"width": self.width, "format": "jpeg", "quality": 75, "alpha": 1}
        if self.truth:
            look["classes"] = self.truth
        if kind == "label":
            return _picture("overlays", fkey, look)
        if kind == "prediction":
            return _picture("predictions", fkey, look | made)
        if kind == "errors":
            taken_for = {"taken_for": self.predicted} if self.predicted else {}
            errors = look | made | {"errors": "true", **taken_for}
            return _picture("predictions", fkey, errors)
        return ""


def _picture(kind: str, fkey: str, look: Mapping[str, Any]) -> str:
    return f"/pictures/{kind}/{quote(fkey, safe='/:')}?{urlencode(look)}"
