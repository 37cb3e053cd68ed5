"""One process's work on the shards of a validation: its own, then pieces of those that are late."""

import json
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from heapq import nsmallest
from pathlib import Path

import numpy as np

from catalog.errors import BadFile, StorageError
from pipeline.cache.reading import ReadsThrough
from pipeline.prepared.decoded_frames import nearest
from pipeline.prepared.label_classes import LabelClasses
from pipeline.runs.bad_frames import BadFrames
from training.command import say
from training.input.dataset import open_reader
from training.input.frame_reader import Frame, FrameReader, LabelledFrame
from training.input.given_predictions import BadPrediction
from training.input.split_shards import FrameId, Shard, Split
from training.input.trained_frames import frames_trained_on, scenes_trained_on
from training.network.about_model import AboutModel
from training.network.about_onnx import AboutOnnx
from training.network.frame_prediction import AboutPredictions, FramePrediction
from training.run_settings import RunSettings
from training.validation.frame_cells import FrameCells, FrameScore
from training.validation.frame_pictures import SHOWN, FramePictures, pictures_of
from training.validation.shard_file import (
    About,
    ShardResult,
    StoredShard,
    open_shard,
    read_shard,
    shard_path,
)
from training.validation.shard_pieces import (
    Piece,
    ShardLocks,
    joined_pieces,
    piece_path,
    pieces_of,
    remove_pieces,
)
from training.validation.shard_sums import ShardSums
from training.validation.small_copies import SmallCopies

_LOOK_S = 0.2
"""Between two looks at what others do of one's own shard."""


@dataclass(frozen=True)
class Model:
    """A model that frames are put through."""

    folder: Path
    """Its files."""
    network: str
    """The user's own network, which may be built for it."""
    results: Path
    """Folder of its results."""
    about: About
    """What the result of one of the shards is of."""
    description: AboutModel | AboutOnnx | AboutPredictions
    """The model's."""

    def about_shard(self, shard: Shard) -> About:
        """Description of a shard's result: model, dataset, split and number."""
        return replace(self.about, shard=shard.number)


@dataclass(frozen=True)
class Scorer:
    """A model that is being validated."""

    model: Model
    """Which one."""
    predict: Callable[[FrameId, Frame | LabelledFrame], FramePrediction]
    """Gives its prediction of a frame."""
    classes: LabelClasses
    """Of it."""
    needs_image: bool = True
    """Whether it looks at the image; else pictures alone do."""
    keeps_small: bool = False
    """Whether its predictions are kept, small: pages show where they are wrong."""


@dataclass(frozen=True)
class _Scoring:
    """A model on the frames of a shard."""

    scorer: Scorer
    """The model."""
    reader: FrameReader
    """Of the frames, at its size and with its classes."""
    trained: Collection[str] | None
    """Those of them that it was trained on, by fkey; None where that is unknown."""
    scenes: Collection[str]
    """That it was trained on."""


def stored_result(
    settings: RunSettings, path: Path, about: About, frames: int
) -> StoredShard | None:
    """The result of so many frames; None where the disk has no complete one."""
    try:
        result, _ = open_shard(path)
    except (FileNotFoundError, BadFile):
        return None
    skips = BadFrames.parse(settings.bad_frames).skips
    # The folder is for people: a model that was moved is the same model.
    is_same = (
        replace(result.about, model_dir=about.model_dir, lineage=about.lineage) == about
        and result.number + (len(result.skipped) if skips else 0) == frames
    )
    return result if is_same else None


def has_result(settings: RunSettings, model: Model, shard: Shard) -> bool:
    """Return whether a complete result of a shard is on disk; if so, print that."""
    about = model.about_shard(shard)
    path = shard_path(model.results, about.shard, about.shards)
    if stored_result(settings, path, about, len(shard.frame_ids)) is None:
        return False
    of = "" if model.results == settings.results_dir else f" of {model.folder}"
    say(f"{shard}{of} is there already")
    return True


class _ModelFailed(BadFile):
    """A model cannot predict a frame that was read."""


class _Progress:
    """Tells a staging and the log how far a shard is."""

    def __init__(self, frames: int, log_every: int, through: ReadsThrough) -> None:
        self._frames, self._log_every, self._through = frames, log_every, through
        self._began_s = time.perf_counter()
        self._done = self._scored = 0

    def scored(self, index: int) -> None:
        """Count a frame, by its position in the shard."""
        self._through.has_read(index)
        self._scored += 1
        self._count(1)

    def count_stored(self, piece: Piece) -> None:
        """Count a piece that was scored before, or by another process."""
        for index in range(piece.begin, piece.end):
            self._through.has_read(index)
        self._count(piece.end - piece.begin)

    def _count(self, frames: int) -> None:
        before, self._done = self._done, self._done + frames
        is_due = before // self._log_every != self._done // self._log_every
        if is_due or (frames and self._done == self._frames):
            images_per_s = self._scored / (time.perf_counter() - self._began_s)
            say(f"frame {self._done}/{self._frames} {images_per_s:.1f} images/s")


class ShardWork:
    """Scores frames of shards by all models, and writes the results."""

    def __init__(
        self, settings: RunSettings, scorers: Sequence[Scorer], through: ReadsThrough
    ) -> None:
        """Score nothing yet.

        Args:
            scorers: The models; each frame is read once for all of them.
        """
        assert settings.results_dir is not None
        self._settings, self._scorers, self._through = settings, scorers, through
        self._results_dir = settings.results_dir
        self._bad = BadFrames.parse(settings.bad_frames)

    def finish(self, shard: Shard) -> None:
        """Score a shard as its worker, with other workers that help, and write its results."""
        locks = ShardLocks(self._results_dir, shard.number, shard.split.shards)
        pieces = pieces_of(len(shard.frame_ids))
        with locks.worker():
            if all(has_result(self._settings, one.model, shard) for one in self._scorers):
                return  # by another worker, whose end this one waited for
            scorings = self._scorings(shard)
            self._score_all(shard, scorings, pieces, locks)
            for scoring in scorings:
                self._join(shard, scoring, pieces)
            for folder in {self._results_dir, *(one.model.results for one in self._scorers)}:
                remove_pieces(folder, shard.number, shard.split.shards)

    def _score_all(
        self,
        shard: Shard,
        scorings: Sequence[_Scoring],
        pieces: Sequence[Piece],
        locks: ShardLocks,
    ) -> None:
        """Have a result of each piece, waiting for those that others score."""
        progress = _Progress(len(shard.frame_ids), self._settings.log_every_steps, self._through)
        remaining, skipped = pieces, 0
        while remaining:
            claimed_by_others = []
            for piece in remaining:
                with locks.claim(piece) as is_free:
                    if not is_free:
                        claimed_by_others.append(piece)
                        continue
                    left_out = self._skipped(shard, piece)
                    if left_out is None:
                        left_out = self._score(shard, scorings, piece, skipped, progress.scored)
                    else:
                        progress.count_stored(piece)
                    skipped += left_out
            remaining = claimed_by_others
            if remaining:
                time.sleep(_LOOK_S)

    def help(self, split: Split, number: int) -> None:
        """Score pieces of a shard whose worker has not come to them, from the last one on.

        Whatever fails is left to that worker, which then says so.
        """
        locks = ShardLocks(self._results_dir, number, split.shards)
        if not locks.has_worker():
            return
        shard, scorings = split.shard(number), None
        for piece in reversed(pieces_of(len(shard.frame_ids))):
            with locks.claim(piece) as is_free:
                if not is_free or self._skipped(shard, piece) is not None:
                    continue
                if not locks.has_worker():  # its end removes the pieces
                    return
                try:
                    scorings = scorings or self._scorings(shard)
                    self._score(shard, scorings, piece, 0, lambda _: None)
                except (BadFile, StorageError) as error:
                    say(f"{shard}: left to its worker: {error}")
                    return
                say(f"{shard}: frames {piece.begin} to {piece.end}, as its worker is late")

    def _scorings(self, shard: Shard) -> list[_Scoring]:
        """Each model with its reader: the same where another reads the same size and classes."""
        readers: dict[str, FrameReader] = {}
        return [
            _Scoring(
                scorer,
                self._reader(shard, scorer, readers),
                frames_trained_on(
                    scorer.model.folder,
                    scorer.model.description.dataset,
                    shard.frames,
                    shard.split.name,
                ),
                scenes_trained_on(scorer.model.folder),
            )
            for scorer in self._scorers
        ]

    def _reader(self, shard: Shard, scorer: Scorer, readers: dict[str, FrameReader]) -> FrameReader:
        about = scorer.model.description
        key = json.dumps([about.height_px, about.width_px, about.class_map])
        if key not in readers:
            readers[key], prepared = open_reader(
                shard.frames,
                shard.split.classes,
                about.height_px,
                about.width_px,
                wait_for=self._through.wait_for,
                classes=scorer.classes,
                numbered=shard.split.numbered,
            )
            if prepared is not None:
                say(f"reading images from the prepared form {prepared.form.folder}")
        return readers[key]

    def _skipped(self, shard: Shard, piece: Piece) -> int | None:
        """Frames that the results of a piece lack; None where one of these is not there."""
        number = 0
        for scorer in self._scorers:
            model = scorer.model
            path = piece_path(model.results, shard.number, shard.split.shards, piece)
            about, frames = model.about_shard(shard), piece.end - piece.begin
            result = stored_result(self._settings, path, about, frames)
            if result is None:
                return None
            number = len(result.skipped)
        return number

    def _score(
        self,
        shard: Shard,
        scorings: Sequence[_Scoring],
        piece: Piece,
        skipped: int,
        done: Callable[[int], None],
    ) -> int:
        """Put a piece through the models; how many frames of it were left out for all of them.

        Args:
            skipped: Frames of the shard that were left out before.
            done: Called after each frame, with its position in the shard.
        """
        numbered = shard.split.numbered
        sums = [
            ShardSums.empty(
                one.scorer.classes,
                numbered,
                draws=one.scorer.needs_image,
                keeps_small=one.scorer.keeps_small,
            )
            for one in scorings
        ]
        for index in range(piece.begin, piece.end):
            frame_id = shard.frame_ids[index]
            try:
                frames = _read(index, scorings)
                predictions = [_predicted(one, frame_id, frames) for one in scorings]
            except BadFile as error:
                # All bad predictions are counted and named: the merge says whether they may be.
                is_prediction = isinstance(error, BadPrediction)
                if isinstance(error, _ModelFailed) or not (self._bad.skips or is_prediction):
                    raise
                left_out = {"fkey": frame_id.fkey, "row": frame_id.row, "reason": str(error)}
                for one in sums:
                    one.skipped.append(left_out)
                if not is_prediction:
                    say(f"left out: {error}")
                    self._bad.check(skipped + len(sums[0].skipped), len(shard.split.frames))
                done(index)
                continue
            for scoring, one, prediction in zip(scorings, sums, predictions, strict=True):
                one.add(frame_id, frames[scoring.reader], prediction, scoring.scorer.classes)
            done(index)
        for scoring, one in zip(scorings, sums, strict=True):
            model = scoring.scorer.model
            path = piece_path(model.results, shard.number, shard.split.shards, piece)
            _result(model.about_shard(shard), scoring, one).write_to(path)
        return len(sums[0].skipped)

    def _join(self, shard: Shard, scoring: _Scoring, pieces: Sequence[Piece]) -> None:
        """Join the results of a shard's pieces, and write them as the shard's."""
        model = scoring.scorer.model
        of = shard.number, shard.split.shards
        paths = [piece_path(model.results, *of, piece) for piece in pieces]
        rows = [frame_id.row for frame_id in shard.frame_ids]
        result = joined_pieces([read_shard(path) for path in paths], rows, paths[0].parent)
        if not scoring.scorer.needs_image:
            result = replace(result, pictures=[*_drawn(shard, scoring, result.frames)])
        path = replace(result, about=model.about_shard(shard)).write(model.results)
        say(f"{shard} written to {path}")


def _read(index: int, scorings: Sequence[_Scoring]) -> Mapping[FrameReader, Frame | LabelledFrame]:
    """A frame as each reader reads it, with its image where a model looks at that."""
    needs_image = {one.reader: False for one in scorings}
    for one in scorings:
        needs_image[one.reader] |= one.scorer.needs_image
    return {
        reader: reader.frame(index) if needs else reader.labelled(index)
        for reader, needs in needs_image.items()
    }


def _predicted(
    scoring: _Scoring, frame_id: FrameId, frames: Mapping[FrameReader, Frame | LabelledFrame]
) -> FramePrediction:
    """A model's prediction of a frame.

    Raises:
        BadPrediction: Another program made it, and it cannot be compared.
        _ModelFailed: The model fails, whatever is done with bad frames.
    """
    try:
        return scoring.scorer.predict(frame_id, frames[scoring.reader])
    except BadPrediction:
        raise
    except BadFile as error:
        reason = f"{error.reason} for frame {frame_id.fkey}"
        raise _ModelFailed(reason, error.file or str(scoring.scorer.model.folder)) from error


def _result(about: About, scoring: _Scoring, sums: ShardSums) -> ShardResult:
    trained, scenes = scoring.trained, scoring.scenes
    return ShardResult(
        about,
        sums.metrics,
        sums.frames,
        FrameCells.of(sums.cells),
        None if trained is None else sum(one.fkey in trained for one in sums.frames),
        sum(one.scene in scenes and one.fkey not in (trained or ()) for one in sums.frames),
        sums.skipped,
        () if sums.selection is None else sums.selection.pictures(),
        sums.scene_sums,
        SmallCopies.none() if sums.small is None else SmallCopies.of(sums.small),
    )


def _drawn(
    shard: Shard, scoring: _Scoring, frames: Sequence[FrameScore]
) -> Iterator[FramePictures]:
    """The pictures of a shard's worst frames, for which alone images are decoded."""
    index_of = {frame_id.row: index for index, frame_id in enumerate(shard.frame_ids)}
    worst = nsmallest(SHOWN, ((one.miou, one.row) for one in frames if one.miou is not None))
    classes = scoring.scorer.classes
    for row in sorted(row for _, row in worst):
        index = index_of[row]
        with suppress(BadFile):  # it has just changed
            frame = scoring.reader.labelled(index)
            prediction = scoring.scorer.predict(shard.frame_ids[index], frame)
            ids = prediction.best.ids.astype(np.uint8)
            yield pictures_of(
                row, frame.image, nearest(frame.label, frame.size), ids, classes.colours
            )
