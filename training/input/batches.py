"""The batches of one worker, read ahead by threads.

Python threads, not tf.data: decoding holds Python's lock for a small part of its time, errors keep
their type, and a process that ends waits only for the few frames that threads are decoding.
(tf.data calls Python from threads of its own, also after the interpreter has ended.)
"""

from collections import deque
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count, islice
from typing import Any

import numpy as np

from catalog.errors import FramesiftError, JobFailed
from pipeline.example_order import Example
from pipeline.prepared.decoded_frames import UInt8
from pipeline.runs.augmentations import USUAL
from training.input.augmentation import augmented, is_mirrored
from training.input.frame_reader import FrameReader

READ_AHEAD_BATCHES = 4

Pair = tuple[UInt8, UInt8]


class Batches:
    """An iterator of (images (B, h, w, 3) uint8 [RGB], labels (B, h, w) uint8 [class id])."""

    def __init__(
        self,
        reader: FrameReader,
        order: Iterator[Example],
        *,
        batch_size: int,
        seed: int,
        threads: int,
        has_read: Callable[[int], None] = lambda _: None,
        augment: Collection[str] = USUAL,
    ) -> None:
        """Begin to read.

        Args:
            order: This worker's examples, without end.
            has_read: Called for each example that was read, with its position in `order`, from 0;
                calls come in any order.
            augment: How examples are changed (pipeline.runs.augmentations).
        """
        self._reader, self._order = reader, order
        self._batch_size, self._seed, self._has_read = batch_size, seed, has_read
        self._augment = frozenset(augment)
        self._numbers = count()
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="decode")
        self._ahead: deque[tuple[Example, Future[Pair]]] = deque()
        self._read_ahead(READ_AHEAD_BATCHES * batch_size + threads)

    def __iter__(self) -> "Batches":
        return self

    def __next__(self) -> Pair:
        """The next batch."""
        batch = [self._ahead.popleft() for _ in range(self._batch_size)]
        self._read_ahead(self._batch_size)
        pairs = [future.result() for _, future in batch]
        images = np.empty((len(pairs), *pairs[0][0].shape), np.uint8)
        labels = np.empty((len(pairs), *pairs[0][1].shape), np.uint8)
        for n, ((example, _), (image, label)) in enumerate(zip(batch, pairs, strict=True)):
            if "mirror" in self._augment and is_mirrored(example, self._seed):
                for channel in range(3):  # a fifth of the time that NumPy takes for all three
                    images[n, ..., channel] = image[:, ::-1, channel]
                labels[n] = label[:, ::-1]
            else:
                images[n], labels[n] = image, label
        return images, labels

    def fetch(self) -> tuple[Any, FramesiftError | None]:
        """The next batch, or the error that prevents it."""
        try:
            return next(self), None
        except FramesiftError as error:
            return None, error
        except (OSError, MemoryError) as error:
            reason = str(error) or type(error).__name__
            return None, JobFailed("training", f"a frame cannot be read: {reason}")

    def close(self) -> None:
        """Read no further; at its end the process waits for the frames that are being decoded."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _read_ahead(self, frames: int) -> None:
        for example in islice(self._order, frames):
            number = next(self._numbers)
            self._ahead.append((example, self._pool.submit(self._read, example, number)))

    def _read(self, example: Example, number: int) -> Pair:
        pair = self._reader.small(example.row)
        self._has_read(number)
        return augmented(*pair, example, self._seed, self._augment)
