"""What GPUs gain by: layers that compute in halves, and graphs that XLA compiles.

In mixed_float16 layers compute in halves, and weights, logits, loss and optimizer stay float32.

Source: Micikevicius et al., arXiv:1710.03740 (mixed precision)
"""

from collections.abc import Iterator
from contextlib import contextmanager

import tensorflow as tf

from pipeline.runs.precision import AUTO, FLOAT32, MIXED
from training.command import say

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


@contextmanager
def layers_in(precision: str) -> Iterator[None]:
    """While the block runs, new layers compute in that precision."""
    before = tf.keras.mixed_precision.global_policy()
    tf.keras.mixed_precision.set_global_policy(precision)
    try:
        yield
    finally:
        tf.keras.mixed_precision.set_global_policy(before)


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
