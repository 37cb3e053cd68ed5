"""The random draws of a network's layers (dropout, noise), which follow from seed, step and worker.

So a run that goes on draws what it would have drawn without the break, and no state is kept.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import tensorflow as tf

_STATEFUL = frozenset(
    {
        "Multinomial", "ParameterizedTruncatedNormal", "RandomGamma", "RandomPoisson",
        "RandomPoissonV2", "RandomShuffle", "RandomStandardNormal", "RandomUniform",
        "RandomUniformInt", "TruncatedNormal",
    }
)  # fmt: skip
"""TensorFlow's operations that draw from a state of their own, which nothing can set."""


@contextmanager
def layers_with_generators() -> Iterator[None]:
    """While the block runs, new layers of Keras draw from generators whose state can be set."""
    keras = tf.keras.backend.experimental
    before = keras.is_tf_random_generator_enabled()
    keras.enable_tf_random_generator()
    try:
        yield
    finally:
        if not before:
            keras.disable_tf_random_generator()


class Draws:
    """The generators of a network's layers."""

    def __init__(self, model: Any, seed: int, rank: int) -> None:
        """Find them.

        Args:
            model: Keras model, built within `layers_with_generators`.
            rank: Of the worker: each draws its own.
        """
        generators = [g for layer in model.submodules for g in _generators(layer)]
        self._keyed = [(each, _key(seed, rank, n)) for n, each in enumerate(generators)]

    def begin(self, step: Any) -> None:
        """Have each draw from the beginning of a step's own numbers; within a compiled function.

        Args:
            step: Scalar int64.
        """
        # Philox draws by counting up the first word: steps never meet.
        counter = tf.stack([tf.constant(0, tf.uint64), tf.cast(step, tf.uint64)])
        for generator, key in self._keyed:
            generator.reset_from_key_counter(tf.constant(key, tf.uint64), counter)


def stateful_draws(function: Any) -> list[str]:
    """Operations of a traced function that draw from a state that a run cannot go on with."""
    graph = function.graph.as_graph_def()
    nodes = [*graph.node, *(node for each in graph.library.function for node in each.node_def)]
    return sorted({node.op for node in nodes} & _STATEFUL)


def _generators(layer: Any) -> Iterator[Any]:
    """A layer's generators: that of Keras, and the user's own."""
    own = getattr(getattr(layer, "_random_generator", None), "_generator", None)
    for each in (own, *vars(layer).values()):
        if isinstance(each, tf.random.Generator):
            yield each


def _key(seed: int, rank: int, number: int) -> int:
    digest = hashlib.sha256(f"{seed} {rank} {number}".encode()).digest()
    return int.from_bytes(digest[:8], "big")
