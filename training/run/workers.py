"""The workers of a training run: who am I, how many are we.

Horovod tells, where it is installed; without it, or without its launcher, there is one worker.
"""

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from catalog.errors import InvalidInput
from pipeline.runs.exchange import Exchange

Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Workers:
    """This worker among all workers."""

    rank: int = 0
    """This worker's number, from 0."""
    size: int = 1
    """Number of workers."""
    local_size: int = 1
    """How many of them are on this machine."""
    exchange: Exchange = field(default_factory=Exchange)
    """How they exchange gradients."""
    _horovod: Any = field(default=None, repr=False)

    @property
    def is_first(self) -> bool:
        """True in the one worker that writes files and progress lines."""
        return self.rank == 0

    @property
    def averages(self) -> bool:
        """True where the gradient of all is the mean of each worker's; alone it is its own."""
        return self.size == 1 or self.exchange.reduce == "average"

    @property
    def rate_factor(self) -> int:
        """The factor of the learning rate of one worker; Adasum needs nothing."""
        return self.size if self.averages else 1

    def tape(self, tape: Any) -> Any:
        """A gradient tape whose gradients are those of all workers together."""
        if self.size == 1:
            return tape
        horovod = self._horovod
        return horovod.DistributedGradientTape(
            tape,
            op=horovod.Average if self.averages else horovod.Adasum,
            compression=getattr(horovod.Compression, self.exchange.compression),
        )

    def mean_of(self, tensor: Any) -> Any:
        """The mean of all workers' tensors, within a compiled function, too."""
        return tensor if self.size == 1 else self._horovod.allreduce(tensor, name="mean_of")

    def broadcast_variables(self, variables: Sequence[Any]) -> None:
        """Give every worker the first worker's values."""
        if self.size > 1:
            self._horovod.broadcast_variables(variables, root_rank=0)

    def average_variables(self, variables: Sequence[Any]) -> None:
        """Give every worker the mean of all workers' values, where they are no whole numbers.

        Within a compiled function, too.
        """
        if self.size > 1:
            for number, variable in enumerate(variables):
                if variable.dtype.is_floating:
                    value = tf.convert_to_tensor(variable)
                    mean = self._horovod.allreduce(value, name=f"average_{number}")
                    variable.assign(mean)

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

    def sum(self, matrix: Int64) -> Int64:
        """The sum of all workers' int64 arrays of one shape, on every worker."""
        if self.size == 1:
            return matrix
        summed = self._horovod.allreduce(tf.constant(matrix), op=self._horovod.Sum, name="sum")
        return np.asarray(summed.numpy(), np.int64)

    def any(self, here: bool) -> bool:
        """True where it is so for one worker at least; every worker gets the same answer."""
        return self.mean(float(here)) > 0

    def any_of(self, *here: bool) -> tuple[bool, ...]:
        """For each whether it is so for one worker at least; every worker gets the same answer."""
        if self.size == 1:
            return here
        flags = tf.constant([float(each) for each in here], tf.float64)
        means = self._horovod.allreduce(flags, name=f"any_of_{len(here)}").numpy()
        return tuple(bool(mean > 0) for mean in means)

    def texts(self, here: str) -> list[str]:
        """Every worker's text, each made one line, on every worker; by their numbers."""
        line = " ".join(here.split())
        if self.size == 1:
            return [line]
        own = tf.constant(list(f"{line}\n".encode()), tf.uint8)
        lines = bytes(self._horovod.allgather(own, name="texts").numpy())
        return lines.decode().split("\n")[:-1]

    def agree(self, value: str) -> bool:
        """True where all workers hold the same value."""
        if self.size == 1:
            return True
        own = hashlib.sha256(value.encode()).digest()
        digests = self._horovod.allgather(tf.constant([list(own)], tf.uint8), name="agree")
        return all(bytes(digest) == own for digest in digests.numpy())


def use_threads(threads: int) -> None:
    """Have TensorFlow compute with so many threads; before anything is computed."""
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)


def join_workers(num_workers: int | None, exchange: Exchange | None = None) -> Workers:
    """Meet the other workers that the launcher started.

    Args:
        num_workers: How many there must be; None accepts any number.
        exchange: How they exchange gradients; None for the usual.

    Raises:
        InvalidInput: There are more or fewer, or they cannot exchange gradients so.
    """
    exchange = exchange or Exchange()
    adds = exchange.reduce == "adasum"
    try:
        import horovod.tensorflow as horovod
    except ImportError:
        workers = Workers()
    else:
        _set_variables(exchange)
        horovod.init()
        workers = Workers(horovod.rank(), horovod.size(), horovod.local_size(), exchange, horovod)
        if adds and workers.size > 1:
            _check_adasum(horovod)
        gpus = tf.config.list_physical_devices("GPU")
        if gpus:
            tf.config.set_visible_devices(gpus[horovod.local_rank() % len(gpus)], "GPU")
        if workers.size == 1:
            # Its thread looks for gradients each millisecond: 1.5 % of a core, for nobody.
            horovod.shutdown()
    if adds and workers.size == 1:
        raise InvalidInput(
            "horovod reduce=adasum: expected 2, 4, 8... workers, and this is one: start more by "
            "mpirun, or average"
        )
    if num_workers is not None and workers.size != num_workers:
        raise InvalidInput(
            f"--num_workers {num_workers}, but this process is one of {workers.size}: start it "
            f"with 'horovodrun -np {num_workers}', or with mpirun where Horovod was built with MPI"
        )
    return workers


def _set_variables(exchange: Exchange) -> None:
    """Set what Horovod reads as it begins; a launcher's own flags stay otherwise."""
    if exchange.fusion_mb is not None:
        os.environ["HOROVOD_FUSION_THRESHOLD"] = str(int(exchange.fusion_mb * (1 << 20)))
    if exchange.cycle_ms is not None:
        os.environ["HOROVOD_CYCLE_TIME"] = f"{exchange.cycle_ms:g}"


def _check_adasum(horovod: Any) -> None:
    """Accept workers that can add by Adasum, which Horovod does by MPI, in pairs of pairs.

    Raises:
        InvalidInput: They cannot.
    """
    if not (horovod.mpi_built() and horovod.mpi_enabled()):
        raise InvalidInput(
            "horovod reduce=adasum: this Horovod, or its launcher, is without MPI; build it by "
            "training/install/horovod.sh --mpi and start by mpirun, or average"
        )
    if horovod.size() & (horovod.size() - 1):
        raise InvalidInput(
            f"horovod reduce=adasum: expected 2, 4, 8... workers, and these are {horovod.size()}"
        )
