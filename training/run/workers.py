"""The workers of a training run: who am I, how many are we.

Horovod tells, where it is installed; without it, or without its launcher, there is one worker.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf

from catalog.errors import InvalidInput


@dataclass(frozen=True)
class Workers:
    """This worker among all workers.

    Attributes:
        rank: This worker's number, from 0.
        size: Number of workers.
        local_size: How many of them are on this machine.
    """

    rank: int = 0
    size: int = 1
    local_size: int = 1
    _horovod: Any = field(default=None, repr=False)

    @property
    def is_first(self) -> bool:
        """Whether this is the one worker that writes files and progress lines."""
        return self.rank == 0

    def tape(self, tape: Any) -> Any:
        """A gradient tape whose gradients are averaged over all workers."""
        return self._horovod.DistributedGradientTape(tape) if self.size > 1 else tape

    def broadcast_variables(self, variables: Sequence[Any]) -> None:
        """Give every worker the first worker's values."""
        if self.size > 1:
            self._horovod.broadcast_variables(variables, root_rank=0)

    def broadcast_number(self, value: int) -> int:
        """The first worker's number, on every worker."""
        if self.size == 1:
            return value
        # Not broadcast_object, nor allgather_object below: they unpickle what comes by the network.
        number = tf.constant(value, tf.int64)
        return int(self._horovod.broadcast(number, root_rank=0, name="number"))

    def mean(self, value: float) -> float:
        """The mean of all workers' values, on every worker."""
        if self.size == 1:
            return value
        return float(self._horovod.allreduce(tf.constant(value, tf.float64), name="mean"))

    def any(self, here: bool) -> bool:
        """Whether it is so for one worker at least; every worker gets the same answer."""
        return self.mean(float(here)) > 0

    def texts(self, here: str) -> list[str]:
        """Every worker's text, each made one line, on every worker; by their numbers."""
        line = " ".join(here.split())
        if self.size == 1:
            return [line]
        own = tf.constant(list(f"{line}\n".encode()), tf.uint8)
        lines = bytes(self._horovod.allgather(own, name="texts").numpy())
        return lines.decode().split("\n")[:-1]

    def agree(self, value: str) -> bool:
        """Whether all workers hold the same value."""
        if self.size == 1:
            return True
        own = hashlib.sha256(value.encode()).digest()
        digests = self._horovod.allgather(tf.constant([list(own)], tf.uint8), name="agree")
        return all(bytes(digest) == own for digest in digests.numpy())


def use_threads(threads: int) -> None:
    """Have TensorFlow compute with so many threads; before anything is computed."""
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)


def join_workers(num_workers: int | None) -> Workers:
    """Meet the other workers that the launcher started.

    Args:
        num_workers: How many there must be; None accepts any number.

    Raises:
        InvalidInput: There are more or fewer.
    """
    try:
        import horovod.tensorflow as horovod
    except ImportError:
        workers = Workers()
    else:
        horovod.init()
        workers = Workers(horovod.rank(), horovod.size(), horovod.local_size(), horovod)
        gpus = tf.config.list_physical_devices("GPU")
        if gpus:
            tf.config.set_visible_devices(gpus[horovod.local_rank() % len(gpus)], "GPU")
    if num_workers is not None and workers.size != num_workers:
        raise InvalidInput(
            f"--num_workers {num_workers}, but this process is one of {workers.size}: start it "
            f"with 'horovodrun -np {num_workers}', or with mpirun where Horovod was built with MPI"
        )
    return workers
