"""What a prediction says of itself, against the definitions in float64."""

from typing import Any

import numpy as np
import pytest

from pipeline.prepared.label_classes import renumbered

pytestmark = pytest.mark.training

HEIGHT_PX, WIDTH_PX, CLASSES = 16, 24, 7


def test_probabilities_and_loss_are_those_of_the_softmax() -> None:
    """Confidence, entropy, margin and loss of drawn logits, some of them far apart.

    And TensorFlow's own cross-entropy; pixels without a class are in no loss.
    """
    tf = pytest.importorskip("tensorflow")
    from training.network.loss import weight_of_class_id, weighted_cross_entropy
    from training.network.predictor import Predictor

    random = np.random.default_rng(3)
    logits = random.normal(0, 4, (HEIGHT_PX, WIDTH_PX, CLASSES)).astype(np.float32)
    logits[:4] *= 20
    label = random.integers(0, CLASSES + 1, (HEIGHT_PX, WIDTH_PX), np.uint8)
    label[label == CLASSES] = 255

    def network(images: Any, training: bool) -> Any:
        assert not training
        return tf.constant(logits[None]) + 0 * tf.reduce_sum(tf.cast(images, tf.float32))

    made = Predictor(network).predict(np.zeros((HEIGHT_PX, WIDTH_PX, 3), np.uint8))
    exact = logits.astype(np.float64)
    log_share = exact - np.logaddexp.reduce(exact, axis=-1, keepdims=True)
    share = np.exp(log_share)
    two = np.sort(share, axis=-1)
    known = label < CLASSES
    losses = -np.take_along_axis(log_share, np.where(known, label, 0)[..., None], axis=-1)[..., 0]
    assert made.confidence == pytest.approx(two[..., -1], abs=1e-6)
    assert made.uncertainty == pytest.approx(
        -(share * log_share).sum(axis=-1).mean() / np.log(CLASSES), abs=1e-6
    )
    assert made.margin == pytest.approx((two[..., -1] - two[..., -2]).mean(), abs=1e-6)
    assert made.loss(label) == pytest.approx(losses[known].mean(), rel=1e-6)
    even = weight_of_class_id(np.ones(CLASSES, np.float32))
    theirs = float(weighted_cross_entropy(label[None], logits[None], even))
    assert made.loss(label) == pytest.approx(theirs, rel=1e-5)
    assert made.loss(np.full_like(label, 255)) is None


def test_labels_are_smoothed_as_in_keras() -> None:
    """The same mean as its loss has of the pixels that count; the others count for nothing."""
    import tensorflow as tf

    from training.network.loss import cross_entropy_sums, weight_of_class_id

    random = np.random.default_rng(6)
    logits = random.normal(size=(2, 3, 4, CLASSES)).astype(np.float32)
    labels = random.integers(0, CLASSES, (2, 3, 4), np.uint8)
    labels[0, 0] = 255
    even = weight_of_class_id(np.ones(CLASSES, np.float32))
    summed, weight = cross_entropy_sums(labels, logits, even, 0.2)
    keras = tf.keras.losses.CategoricalCrossentropy(from_logits=True, label_smoothing=0.2)
    known = labels < CLASSES
    theirs = keras(tf.one_hot(labels[known], CLASSES), logits[known])
    assert float(summed / weight) == pytest.approx(float(theirs), rel=1e-6)
    assert float(weight) == known.sum() == 20


def test_ids_are_renumbered() -> None:
    """As NumPy's own indexing does, whatever the shape and the order in memory; runs, too."""
    random = np.random.default_rng(4)
    number = random.permutation(256).astype(np.uint8)
    ids = random.integers(0, 256, (5, 7), np.uint8)
    runs = np.repeat(ids.ravel(), random.integers(1, 90, ids.size))
    for one in (ids, ids.T, ids[:, ::2], ids[0], ids[:0], runs, runs[7:]):
        assert renumbered(one, number).tolist() == number[one].tolist()
