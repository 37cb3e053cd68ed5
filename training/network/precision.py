"""The precision that a training computes in, and the scale of its loss.

In mixed_float16 layers compute in halves, and weights, logits, loss and optimizer stay float32.
Small gradients would be 0 in halves, so the loss is multiplied before them, and they are divided
after.

Source: Micikevicius et al., arXiv:1710.03740 (mixed precision, loss scaling)
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import tensorflow as tf

from pipeline.runs.precision import AUTO, FLOAT32, MIXED
from training.command import say

FIRST_SCALE = 2.0**15
STEPS_TO_GROW = 2000
_HAS_FAST_HALVES = (7, 0)
"""CUDA's compute capability since which GPUs multiply matrices of halves in units of their own."""


def chosen_precision(setting: str) -> str:
    """The precision for what this process computes on: mixed_float16 where its GPUs gain by it.

    Args:
        setting: One of pipeline.runs.precision; what is not left open stays.
    """
    if setting != AUTO:
        return setting
    gpus = tf.config.get_visible_devices("GPU")
    able = [
        tf.config.experimental.get_device_details(gpu).get("compute_capability", (0, 0))
        for gpu in gpus
    ]
    return MIXED if able and min(able) >= _HAS_FAST_HALVES else FLOAT32


def compile_for_gpus() -> None:
    """Have XLA compile what it can of each graph, where there are GPUs.

    Operations that it does not know, as Horovod's, stay outside. Where it cannot compile, as
    without CUDA's libdevice, a warning says so.
    """
    if not tf.config.get_visible_devices("GPU"):
        return
    if (error := xla_error()) is None:
        tf.config.optimizer.set_jit("autoclustering")
    else:
        say(f"warning: XLA does not compile here, and the training goes on without: {error}")


def xla_error() -> str | None:
    """Why XLA cannot compile a function for this process's device; None where it can."""
    try:
        tf.function(tf.exp, jit_compile=True)(tf.zeros(2))
    except tf.errors.OpError as error:
        return str(error.message).partition("\n")[0][:300]
    return None


@contextmanager
def layers_in(precision: str) -> Iterator[None]:
    """While the block runs, new layers compute in that precision."""
    before = tf.keras.mixed_precision.global_policy()
    tf.keras.mixed_precision.set_global_policy(precision)
    try:
        yield
    finally:
        tf.keras.mixed_precision.set_global_policy(before)


class LossScale:
    """The factor of the loss; smaller after each overflow, and twice as large after many steps.

    Gradients are those of all workers, so all have the same factor.

    Attributes:
        variables: Its state, as a checkpoint keeps it.
    """

    def __init__(self) -> None:
        self._scale = tf.Variable(FIRST_SCALE, trainable=False, name="loss_scale")
        self._good = tf.Variable(0, dtype=tf.int64, trainable=False, name="good_steps")
        self.variables = (self._scale, self._good)

    def scaled(self, loss: Any) -> Any:
        """The loss to take gradients of."""
        return loss * self._scale

    def unscaled(self, gradients: Sequence[Any]) -> list[Any]:
        """The gradients of the loss itself; None stays None."""
        return [each if each is None else tf.convert_to_tensor(each) / self._scale
                for each in gradients]  # fmt: skip

    def update(self, gradients: Sequence[Any]) -> Any:
        """Go on to the next step's factor; a scalar bool, whether these gradients are of use."""
        finite = tf.reduce_all(
            [tf.reduce_all(tf.math.is_finite(each)) for each in gradients if each is not None]
        )
        grows = self._good + 1 >= STEPS_TO_GROW
        grown = tf.where(grows, 2 * self._scale, self._scale)
        # Never infinite, and never below 1: such a loss overflows by itself.
        grown = tf.where(tf.math.is_finite(grown), grown, self._scale)
        good = tf.where(grows, tf.constant(0, tf.int64), self._good + 1)
        halved = tf.maximum(self._scale / 2, 1.0)
        self._scale.assign(tf.where(finite, grown, halved))
        self._good.assign(tf.where(finite, good, 0))
        return finite
