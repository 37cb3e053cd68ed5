"""The scale of a training's loss: in float16 small gradients would be 0.

The loss is multiplied by it before the gradients are taken, and they are divided by it afterwards.

Source: Micikevicius et al., arXiv:1710.03740 (loss scaling)
"""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

FIRST_SCALE = 2.0**15
STEPS_TO_GROW = 2000


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
