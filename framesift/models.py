"""Models that trainings and programs made."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from framesift.http.pages import paged
from framesift.http.transport import Transport


class Models:
    """The server's models: trainings', and ONNX files that programs wrote."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def __repr__(self) -> str:
        """The server; nothing is asked."""
        return f"<Models of {self._transport.url}>"

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        """Every model, newest first."""
        return self.list()

    def list(self) -> Iterator[Mapping[str, Any]]:
        """Every model, newest first, fetched as they are wanted.

        Raises:
            FramesiftServerError: The server does not answer.
        """
        return paged(self._transport, "/v1/models", "models")

    def get(self, name: str) -> Mapping[str, Any]:
        """The model of a job.

        Raises:
            NotFound: There is none of that name.
        """
        return self._transport.json("GET", f"/v1/models/{quote(name, safe='')}")

    def improve(
        self,
        name: str,
        *,
        frames: int = 100,
        label: int = 0,
        per_scene: int | None = None,
        min_gap_s: float | None = None,
        seed: int = 0,
        classes: Sequence[str] = (),
        drop: Sequence[str] = (),
        dry_run: bool = False,
        at: int | None = None,
    ) -> Mapping[str, Any]:
        """Add the frames that a model lacks to what it was trained on, as a new version.

        Args:
            name: The training job.
            frames: How many labelled frames to add; 0 for none.
            label: How many unlabelled frames to list that are most worth a label.
            per_scene: Most of one scene.
            min_gap_s: They are at least so far from frames that are validated with [s].
            seed: Decides between frames that are worth the same.
            classes: Names or tags of the classes that frames are chosen for; all, each by how weak
                the model is in it, when empty.
            drop: fkeys of frames that are left out of those chosen, of ``to_add`` or ``to_label``
                of the same request without it; no other takes their place.
            dry_run: Answer what would be added and listed, and save nothing.
            at: The catalog snapshot that they are of; the newest when None.

        Returns:
            ``dataset``, the new version, whose ["report"]["expects"] says how weak the model is in
            each class and in how many frames it was, and comes; ``validation``, the job that said
            so; ``trained_on``, the dataset that grows, by NAME@VERSION; ``snapshot``, which as
            ``at`` chooses the same frames again; ``to_add`` and ``to_label``, fkeys; ``reasons``,
            why each frame was chosen, in words and numbers. ``dataset`` is None where no frame was
            added: none was asked for, ``nothing_added`` says why, or it was a dry run, whose
            ``unsaved`` is the report that the new version would have.

        Raises:
            NotFound: There is no such model.
            InvalidQuestion: It has no finished validation, there is nothing to add or to label, or
                a frame is dropped that is not chosen.
        """
        request: dict[str, Any] = {"frames": frames, "label": label, "seed": seed}
        # A server of an earlier release takes neither.
        request |= {"drop": list(drop) or None, "dry_run": dry_run or None}
        request |= {"classes": list(classes), "per_scene": per_scene, "min_gap_s": min_gap_s}
        body = {key: value for key, value in request.items() if value is not None}
        path = f"/v1/models/{quote(name, safe='')}/improvements"
        return self._transport.json("POST", path, body, query={"at": at}, creates=True)
