"""Frames for PyTorch: a dataset of tensors, and the order in which Framesift's own training reads.

    from framesift.data import open_frames
    from framesift.data.torch import FrameSampler, TorchFrames

    frames = TorchFrames(open_frames("jobs/run-city-1/input/manifest"), classes="cityscapes-19")
    sampler = FrameSampler(frames, rank=0, ranks=2, seed=1, batch_size=8)
    loader = DataLoader(frames, batch_size=8, sampler=sampler)

Importing it needs torch. Class maps, and frames that a staging still brings, need the distribution
framesift beside framesift-client.
"""

from collections.abc import Callable, Iterator, Mapping, Sized
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch

from framesift.data.classes import UNKNOWN_CLASS
from framesift.data.epoch_order import epoch_order
from framesift.data.frames import Frames
from framesift.data.waiting import Turn
from framesift.errors import BadFile
from framesift.whole import of_whole

if TYPE_CHECKING:
    from pipeline.cache.reading import Reading

UInt8 = npt.NDArray[np.uint8]

Transform = Callable[..., Any]


class TorchFrames(
    torch.utils.data.Dataset[tuple[torch.Tensor, torch.Tensor]]  # type: ignore[misc,unused-ignore]
):
    """Frames as (image, mask): uint8 (3, H, W) [RGB] and int64 (H, W) [class id].

    Pixels of no class, and those of an ignored one, have UNKNOWN_CLASS (255), which losses and
    metrics take for `ignore_index`. May be pickled: each process of a DataLoader reads by itself.
    """

    def __init__(
        self,
        frames: Frames,
        transform: Transform | None = None,
        classes: str | Mapping[str, Any] | None = None,
    ) -> None:
        """Read no frame yet.

        Args:
            frames: Each with a label.
            transform: Called with an image and its mask: as `transform(image, mask)` with
                tv_tensors where torchvision is installed, as its v2 transforms want; one of
                albumentations as `transform(image=..., mask=...)` with arrays.
            classes: Class map that merges label classes: its name, its JSON file, or the object
                in it; None for the dataset's classes but for ignored ones.

        Raises:
            BadFile: There is no such class map, it cannot be read, or it has no place for a class
                of the dataset.
            MissingPackage: A class map, and framesift-client is installed alone.
        """
        self.frames, self.transform = frames, transform
        self.class_names, ids = (
            _all_classes(frames) if classes is None else _mapped(frames, classes)
        )
        self._of_label: UInt8 = np.full(256, UNKNOWN_CLASS, np.uint8)
        self._of_label[: len(ids)] = [UNKNOWN_CLASS if each is None else each for each in ids]

    def __len__(self) -> int:
        """Number of frames."""
        return len(self.frames)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        """A frame's image and mask, transformed.

        Raises:
            BadFile: A file is missing or damaged, or the frame has no label.
        """
        image, class_ids = self.frames[index]
        if class_ids is None:
            raise BadFile(
                f"frame {self.frames.names[index]}: has no label; make a dataset of labelled "
                'frames: framesift dataset create NAME --where "labelled = 1"'
            )
        mask = self._of_label[class_ids]
        if self.transform is None:
            return _image_tensor(image), _mask_tensor(mask)
        if _is_of_albumentations(self.transform):
            result = self.transform(image=image, mask=mask)
            return _as_image(result["image"]), _as_mask(result["mask"])
        transformed, its_mask = self.transform(*_tv_tensors(image, mask))
        return _as_image(transformed), _as_mask(its_mask)


class FrameSampler(torch.utils.data.Sampler[int]):  # type: ignore[misc,unused-ignore]
    """Indices of frames in the order of Framesift's own training (epoch_order).

    The whole job reads one endless row of examples, each epoch's frames in an order of its own; a
    step takes `batch_size` of them for rank 0, then as many for rank 1. An iteration is as many
    steps as an epoch needs, the same number on all ranks; where the epoch ends within the last
    step, the step goes on with the next epoch, whose rest the next iteration reads. So no frame
    comes twice in an epoch, and what was read says where to go on, with any number of ranks. A
    staging that fetches the frames meanwhile fetches them in this order, and evicts by it.
    """

    def __init__(
        self, frames: Sized, rank: int = 0, ranks: int = 1, seed: int = 0, batch_size: int = 1
    ) -> None:
        """Begin with the first epoch.

        Args:
            frames: What is sampled: `TorchFrames` or `Frames`, all ranks' alike.
            rank: Of this process, from 0.
            seed: The same on all ranks; Framesift's training takes the same order with it.
            batch_size: Frames of a rank in a step, as the DataLoader has it.

        Raises:
            ValueError: No frames, or numbers that cannot be.
        """
        if not len(frames):
            raise ValueError("no frames: expected at least one")
        if not 0 <= rank < ranks:
            raise ValueError(f"rank {rank} of {ranks}: expected 0 <= rank < ranks")
        if batch_size < 1 or seed < 0:
            raise ValueError(
                f"batch_size {batch_size}, seed {seed}: expected a batch of at least 1 and a seed "
                "from 0"
            )
        self._frames, self._rank, self._ranks = len(frames), rank, ranks
        self._seed, self._batch_size = seed, batch_size
        self._begin = 0
        self._yielded = 0
        # TorchFrames' own Frames, which may be staged meanwhile.
        self._source = getattr(frames, "frames", frames)
        self._told_begin, self._told_end = 0, -1

    @property
    def _step(self) -> int:
        """Examples that all ranks read in a step."""
        return self._ranks * self._batch_size

    @property
    def _epoch_examples(self) -> int:
        """Examples that all ranks read in an iteration."""
        return -(-self._frames // self._step) * self._step

    @property
    def epoch(self) -> int:
        """The epoch, from 0, that the next iteration goes on with."""
        return self._begin // self._epoch_examples

    def set_epoch(self, epoch: int) -> None:
        """Go to the begin of an epoch; within it already, stay where a loaded state is."""
        if epoch != self.epoch:
            self._begin, self._yielded = epoch * self._epoch_examples, 0

    def __len__(self) -> int:
        """Number of frames of the next iteration on this rank, the same on all."""
        rest = (self.epoch + 1) * self._epoch_examples - self._begin
        return -(-rest // self._step) * self._batch_size

    def __iter__(self) -> Iterator[int]:
        """Indices of the frames of this rank, to the epoch's end."""
        begin, length = self._begin, len(self)
        self._yielded = 0
        reading = self._told(begin, length)
        known, order = -1, np.empty(0, np.int64)
        for number in range(length):
            steps, in_step = divmod(number, self._batch_size)
            position = begin + steps * self._step + self._rank * self._batch_size + in_step
            epoch, index = divmod(position, self._frames)
            if epoch != known:
                known, order = epoch, epoch_order(self._frames, self._seed, epoch)
            self._yielded = number + 1
            row = int(order[index])
            if reading is not None:
                row = Turn(row, replace(reading, read=reading.read + number))
            yield row
        self._begin, self._yielded = begin + length * self._ranks, 0

    def _told(self, begin: int, length: int) -> "Reading | None":
        """What a staging is told that fetches the frames meanwhile; None where none does.

        Args:
            begin: Examples that all ranks have read.
            length: Those that this rank reads now.
        """
        if not isinstance(self._source, Frames) or not self._source.is_staged_meanwhile:
            return None
        with of_whole("a staging beside the job"):
            from pipeline.cache.reading import Reading
        if begin != self._told_end:  # else it goes on
            self._told_begin = begin
        self._told_end = begin + length * self._ranks
        read = (begin - self._told_begin) // self._ranks
        return self._source.tell_order(
            Reading(
                self._rank,
                self._ranks,
                self._batch_size,
                self._told_begin,
                None,
                read,
                seed=self._seed,
            )
        )

    def state_dict(self, steps: int | None = None) -> dict[str, int]:
        """Where the job is, for `load_state_dict` of each rank of the job that goes on.

        Args:
            steps: Batches of this iteration that the training has made. Give it where a DataLoader
                reads ahead: None takes those that were asked for, which its workers are ahead with.
        """
        if steps is None:
            steps = self._yielded // self._batch_size
        return {
            "read": self._begin + steps * self._step,
            "frames": self._frames,
            "seed": self._seed,
        }

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Go on where a job was, whatever its number of ranks and its batch size.

        Raises:
            ValueError: It read other frames, or in another order.
        """
        own = {"frames": self._frames, "seed": self._seed}
        for name, value in own.items():
            if state[name] != value:
                raise ValueError(
                    f"state of {name} {state[name]:,}: expected {value:,}, those of this sampler; "
                    "go on with the same dataset and seed"
                )
        self._begin, self._yielded = state["read"], 0


def _all_classes(frames: Frames) -> tuple[tuple[str, ...], list[int | None]]:
    """Names of the dataset's classes but for ignored ones, and the place of each label class."""
    names, ignored = frames.classes.names, frames.classes.ignored
    learned = [label_id for label_id in range(len(names)) if label_id not in ignored]
    ids: list[int | None] = [None] * len(names)
    for class_id, label_id in enumerate(learned):
        ids[label_id] = class_id
    return tuple(names[label_id] for label_id in learned), ids


def _mapped(
    frames: Frames, classes: str | Mapping[str, Any]
) -> tuple[tuple[str, ...], list[int | None]]:
    """Names of a class map's classes, and the place of each label class among them."""
    with of_whole("a class map"):
        from catalog.errors import FramesiftError
        from pipeline.runs.class_map import chosen_classes, classes_in
    names = frames.classes.names
    try:
        map_ = chosen_classes(classes_in(classes) if isinstance(classes, str) else classes)
        if map_ is None:
            return _all_classes(frames)
        left_out = [names[label_id] for label_id in frames.classes.ignored]
        return map_.classes, map_.ids_of(names, frames.dataset, left_out)
    except FramesiftError as error:
        raise BadFile(str(error)) from error


def _image_tensor(image: UInt8) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(image.transpose(2, 0, 1)))


def _mask_tensor(mask: UInt8) -> torch.Tensor:
    return torch.from_numpy(mask.astype(np.int64))


def _as_image(image: Any) -> torch.Tensor:
    """An image (3, H, W), of what a transform gave: a tensor, or an array (H, W, 3)."""
    return image if isinstance(image, torch.Tensor) else _image_tensor(np.asarray(image))


def _as_mask(mask: Any) -> torch.Tensor:
    if isinstance(mask, torch.Tensor):
        return mask.to(torch.int64)
    return _mask_tensor(np.asarray(mask))


def _is_of_albumentations(transform: Transform) -> bool:
    """True for its compositions and single transforms, and for classes derived of them."""
    modules = (each.__module__ for each in type(transform).__mro__)
    return any(
        module.partition(".")[0] in ("albumentations", "albumentationsx") for module in modules
    )


def _tv_tensors(image: UInt8, mask: UInt8) -> tuple[torch.Tensor, torch.Tensor]:
    """Image and mask of the kinds by which torchvision's v2 transforms tell them apart."""
    tensors = _image_tensor(image), _mask_tensor(mask)
    try:
        from torchvision import tv_tensors
    except ImportError:
        return tensors
    return tv_tensors.Image(tensors[0]), tv_tensors.Mask(tensors[1])
