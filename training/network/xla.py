"""XLA, which compiles graphs for GPUs."""

import tensorflow as tf

from training.command import say


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
