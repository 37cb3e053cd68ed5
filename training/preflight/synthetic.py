"""ResNet-50 trained on generated data: images a second, of each rank alone and of all together.

As tf_cnn_benchmarks does with --model=resnet50 --variable_update=horovod and without --data_dir.

Source: He et al., arXiv:1512.03385; github.com/tensorflow/benchmarks, tf_cnn_benchmarks
"""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from training.preflight.group import HorovodGroup
from training.preflight.measure import shared

_SIDE_PX = 224
_CLASSES = 1000
_WARM_UP = 2
_EVERY = 10


@dataclass(frozen=True)
class Trained:
    """What one rank trained."""

    alone_images_per_s: float
    """Without an exchange, while the others train alone, too."""
    images_per_s: float
    """With it."""
    loss: float
    precision: str


@dataclass(frozen=True)
class Synthetic:
    """What all ranks trained."""

    ranks: tuple[Trained, ...]

    @property
    def images_per_s(self) -> float:
        """Of all ranks, with the exchange."""
        return sum(each.images_per_s for each in self.ranks)

    @property
    def efficiency(self) -> float:
        """Share of what the ranks compute without an exchange that is left with it."""
        return self.images_per_s / sum(each.alone_images_per_s for each in self.ranks)


def speed_line(step: int, speeds: Sequence[float], loss: float) -> str:
    """A line as tf_cnn_benchmarks prints it: mean, its standard error, jitter, loss.

    Args:
        step: The last one.
        speeds: Of each step so far [images/s].
        loss: Of the last.
    """
    mean = statistics.fmean(speeds)
    error = statistics.pstdev(speeds) / len(speeds) ** 0.5
    middle = statistics.median(speeds)
    # 1.4826: of a normal distribution it makes the deviation of the median one of the mean.
    jitter = 1.4826 * statistics.median(abs(each - middle) for each in speeds)
    return f"{step}\timages/sec: {mean:.1f} +/- {error:.1f} (jitter = {jitter:.1f})\t{loss:.3f}"


def train_synthetic(
    group: HorovodGroup, batch_size: int, steps: int, say: Callable[[str], None]
) -> Synthetic:
    """Train on generated images, without and with an exchange of gradients.

    Args:
        group: The ranks.
        batch_size: Of each.
        steps: That are timed with the exchange; a fifth of them without.
        say: Told each line of the first rank.
    """
    import tensorflow as tf

    from pipeline.runs.precision import AUTO
    from training.network.gpus import chosen_precision, compile_for_gpus, layers_in

    precision = chosen_precision(AUTO)
    compile_for_gpus()
    with layers_in(precision):
        model = tf.keras.applications.ResNet50(
            weights=None, input_shape=(_SIDE_PX, _SIDE_PX, 3), classes=_CLASSES,
            classifier_activation=None,
        )  # fmt: skip
    optimizer = tf.keras.optimizers.SGD(0.01, momentum=0.9)
    optimizer.build(model.trainable_variables)
    images = tf.random.stateless_uniform([batch_size, _SIDE_PX, _SIDE_PX, 3], [group.rank, 0])
    labels = tf.random.stateless_uniform(
        [batch_size], [group.rank, 1], maxval=_CLASSES, dtype=tf.int32
    )
    alone = _step_function(model, optimizer, images, labels, lambda tape: tape)
    speeds, loss = _timed_steps(alone, batch_size, max(1, steps // 5))
    alone_speed = statistics.fmean(speeds)
    shared(group, None)
    if group.size > 1:
        group.horovod.broadcast_variables(model.variables, root_rank=0)
        together = _step_function(
            model, optimizer, images, labels, group.horovod.DistributedGradientTape
        )
        say("Step\tImg/sec\ttotal_loss")
        speeds, loss = _timed_steps(together, batch_size, steps, say)
    own = Trained(alone_speed, statistics.fmean(speeds), loss, precision)
    trained = Synthetic(tuple(Trained(**each) for each in shared(group, asdict(own))))
    say(f"total images/sec: {trained.images_per_s:.2f}")
    return trained


def _step_function(model: Any, optimizer: Any, images: Any, labels: Any, tape_of: Any) -> Any:
    import tensorflow as tf

    loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def step() -> Any:
        with tf.GradientTape() as tape:
            # No scale of the loss: what halves lose of a gradient changes no speed.
            loss = loss_of(labels, tf.cast(model(images, training=True), tf.float32))
        gradients = tape_of(tape).gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    return tf.function(step)


def _timed_steps(
    step: Any, batch_size: int, steps: int, say: Callable[[str], None] = lambda _: None
) -> tuple[list[float], float]:
    """The speed of each step [images/s], and the last loss."""
    for _ in range(_WARM_UP):
        float(step())
    speeds, loss = [], 0.0
    for number in range(1, steps + 1):
        begun = time.perf_counter()
        loss = float(step())
        speeds.append(batch_size / (time.perf_counter() - begun))
        if number == 1 or number % _EVERY == 0 or number == steps:
            say(speed_line(number, speeds, loss))
    return speeds, loss
