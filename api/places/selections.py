"""Questions and their answers."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from api import bodies
from api.new_dataset import NewDataset, ask, described, reason_for_none, save_selection
from api.places import chosen
from api.workspace import Workspace
from query.selection import Question, Selection

if TYPE_CHECKING:  # it imports httpx, which commands on a home do without
    from framesift import Client


class Answer(Protocol):
    """The answer to a question."""

    @property
    def selection(self) -> Selection:
        """The frames."""

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
    return HomeSelections(chosen.home()) if chosen.server() is None else ServerSelections()


@dataclass(frozen=True)
class HomeAnswer:
    """An answer of a home."""

    workspace: Workspace
    selection: Selection

    @property
    def body(self) -> Mapping[str, Any]:
        """As JSON."""
        found = described(self.workspace, self.selection.question, answered=True)
        return bodies.of_selection(self.selection, found, self.why_empty)

    @cached_property
    def why_empty(self) -> str:
        """Why there are no frames."""
        return reason_for_none(self.workspace, self.selection)

    def save(self, name: str) -> Mapping[str, Any]:
        """Save it as a dataset."""
        question = self.selection.question.model_copy(update={"snapshot": None})
        wanted = NewDataset(name=name, question=question, seed=question.seed)
        return bodies.of_dataset(save_selection(self.workspace, wanted, self.selection))


@dataclass(frozen=True)
class HomeSelections:
    """A home."""

    workspace: Workspace

    def answer(self, question: Question, at: int | None) -> HomeAnswer:
        """Ask it."""
        return HomeAnswer(self.workspace, ask(self.workspace, question, at))

    def meaning(self, question: Question, at: int | None) -> Mapping[str, Any]:
        """What it means."""
        return bodies.of_description(described(self.workspace, question, at))


_TEXTS = (
    "fkey", "platform", "cluster", "datasource", "path", "filename", "scene", "camera",
)  # fmt: skip
_TYPES = {
    **dict.fromkeys(_TEXTS, pa.string()),
    **dict.fromkeys(("frame_number", "image_width", "image_height"), pa.int32()),
    **dict.fromkeys(("image_file", "label_file"), pa.string()),
    **dict.fromkeys(("image_size", "label_size"), pa.int64()),
}


@dataclass(frozen=True)
class ServerAnswer:
    """An answer of a server."""

    server: "Client"
    question: Question
    body: Mapping[str, Any]

    @cached_property
    def selection(self) -> Selection:
        """The frames, typed as the catalog has them."""
        classes = tuple(self.body["class_pixels"])
        frames = self.body["frames"]
        types = {**_TYPES, **dict.fromkeys(classes, pa.int32())}
        names = list(frames[0]) if frames else list(types)
        # A newer server may have columns that this version does not know.
        new = {
            name: pa.infer_type([f[name] for f in frames]) for name in names if name not in types
        }
        schema = pa.schema([(name, (types | new)[name]) for name in names])
        return Selection(
            self.question,
            self.body["snapshot"],
            pa.Table.from_pylist(frames, schema),
            classes,
        )

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
        return ServerAnswer(server, question, body)

    def meaning(self, question: Question, at: int | None) -> Mapping[str, Any]:
        """What it means."""
        path = "/v1/selections/describe"
        return chosen.client().call("POST", path, _plain(question), asked={"at": at})


def _plain(question: Question) -> dict[str, Any]:
    return question.model_dump(mode="json", exclude_defaults=True)
