"""Questions and their answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from api.cli import chosen
from query.frames.selection import Question

if TYPE_CHECKING:
    import pyarrow as pa

    from framesift import Client


class Answer(Protocol):
    """The answer to a question."""

    @property
    def snapshot(self) -> int:
        """The snapshot that was asked."""

    @property
    def classes(self) -> Sequence[str]:
        """The class tags, in class order."""

    @property
    def columns(self) -> Sequence[str]:
        """The frames' columns."""

    def __len__(self) -> int:
        """Number of frames."""

    def rows(self, columns: Sequence[str]) -> Sequence[Mapping[str, Any]]:
        """Columns of the frames."""

    @property
    def table(self) -> "pa.Table":
        """The frames: see query.frames.selection.Selection."""

    @property
    def body(self) -> Mapping[str, Any]:
        """As JSON: see bodies.of_selection."""

    @property
    def why_empty(self) -> str:
        """Why there are none, where there are none."""

    def save(self, name: str) -> Mapping[str, Any]:
        """Save it as a dataset, which see bodies.of_dataset."""


class Selections(Protocol):
    """Who answers questions."""

    def answer(self, question: Question, at: int | None) -> Answer:
        """The frames that answer it, of a snapshot or the newest."""

    def meaning(self, question: Question, at: int | None) -> Mapping[str, Any]:
        """What it means, not asked: see bodies.of_description."""


def selections() -> Selections:
    """Of the chosen place."""
    if chosen.server() is not None:
        return ServerSelections()
    from api.places.home.selections import HomeSelections

    return HomeSelections(chosen.home())


_TEXTS = (
    "fkey", "platform", "cluster", "datasource", "path", "filename", "scene", "camera",
)  # fmt: skip
_TYPES = {
    **dict.fromkeys(_TEXTS, "string"),
    **dict.fromkeys(("frame_number", "image_width", "image_height"), "int32"),
    **dict.fromkeys(("image_file", "label_file"), "string"),
    **dict.fromkeys(("image_size", "label_size"), "int64"),
}
"""Column -> name of its Arrow type."""


@dataclass(frozen=True)
class ServerAnswer:
    """An answer of a server."""

    server: "Client"
    body: Mapping[str, Any]

    @property
    def snapshot(self) -> int:
        """The snapshot that was asked."""
        return int(self.body["snapshot"])

    @property
    def classes(self) -> Sequence[str]:
        """The class tags."""
        return list(self.body["class_pixels"])

    @property
    def columns(self) -> Sequence[str]:
        """The frames' columns."""
        frames = self.body["frames"]
        return list(frames[0]) if frames else [*_TYPES, *self.classes]

    def __len__(self) -> int:
        """Number of frames."""
        return len(self.body["frames"])

    def rows(self, columns: Sequence[str]) -> Sequence[Mapping[str, Any]]:
        """Columns of the frames."""
        return [{column: frame[column] for column in columns} for frame in self.body["frames"]]

    @property
    def table(self) -> "pa.Table":
        """The frames, typed as the catalog has them."""
        import pyarrow as pa

        frames = self.body["frames"]
        given = {**_TYPES, **dict.fromkeys(self.classes, "int32")}
        types = {name: pa.type_for_alias(alias) for name, alias in given.items()}
        names = list(frames[0]) if frames else list(types)
        # A newer server may have columns that this version does not know.
        new = {
            name: pa.infer_type([f[name] for f in frames]) for name in names if name not in types
        }
        schema = pa.schema([(name, (types | new)[name]) for name in names])
        return pa.Table.from_pylist(frames, schema)

    @property
    def why_empty(self) -> str:
        """Why there are no frames."""
        return str(self.body.get("why_empty") or "none fulfils the question")

    def save(self, name: str) -> Mapping[str, Any]:
        """Save it as a dataset."""
        question = {k: v for k, v in self.body["question"].items() if k != "snapshot"}
        wanted = {"name": name, "question": question, "seed": question.get("seed", 0)}
        at = {"at": self.body["snapshot"]}
        return self.server.call("POST", "/v1/datasets", wanted, asked=at, creates=True)


@dataclass(frozen=True)
class ServerSelections:
    """A server."""

    def answer(self, question: Question, at: int | None) -> ServerAnswer:
        """Ask it."""
        server = chosen.client()
        body = server.call("POST", "/v1/selections", _plain(question), asked={"at": at})
        return ServerAnswer(server, body)

    def meaning(self, question: Question, at: int | None) -> Mapping[str, Any]:
        """What it means."""
        path = "/v1/selections/describe"
        return chosen.client().call("POST", path, _plain(question), asked={"at": at})


def _plain(question: Question) -> dict[str, Any]:
    return question.model_dump(mode="json", exclude_defaults=True)
