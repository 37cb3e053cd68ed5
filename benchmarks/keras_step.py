"""CPU of one step: a training's, against plain Keras' own, in one process and in turn.

    A2D2_ROOT=/path/to/a2d2 .venv/bin/python -m benchmarks.keras_step [--pairs 20] [--frames 48]

Both have the small U-Net at 240x152, float32, batches of 4, the same loss, optimizer and frames.
The training's step has all that one does on the host: rate, batch read ahead, the loss brought back
and judged, the question whether to leave. Keras' is that of `fit` on arrays in memory. Whole
programs (benchmarks.training keras) end minutes apart and drift with what else a machine does;
steps that take turns do not. The first to be measured changes with each pair.
"""

import argparse
import math
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.training import RATE, _Process
from benchmarks.training_input import staged_frames
from pipeline.manifest import Manifest
from pipeline.prepared.prepare import prepare
from pipeline.runs.size import Size

WARM_UP_STEPS = 2


def main() -> None:
    """Print milliseconds of CPU an image of both, and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--frames", type=int, default=48)
    options = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    options.size, options.batch_sizes = Size.parse("240x152"), [4]
    options.network, options.precision = "small_unet", "float32"
    with tempfile.TemporaryDirectory() as folder:
        options.manifest = staged_frames(Path(folder), options.frames)
        prepare(options.manifest, options.size)
        process = _Process(options)
        steps = {"the training's step": _ours(process), "plain Keras": _keras(process)}
        for step in steps.values():
            for _ in range(WARM_UP_STEPS):
                step()
        cpu_s: dict[str, list[float]] = {name: [] for name in steps}
        for pair in range(options.pairs):
            for name in list(steps)[:: 1 if pair % 2 else -1]:
                began = time.process_time()
                steps[name]()
                cpu_s[name].append(time.process_time() - began)
    for name, each_s in cpu_s.items():
        print(f"  {name:26}{1e3 * np.median(each_s) / options.batch_sizes[0]:9.2f} ms an image")
    ours, keras = map(np.array, cpu_s.values())
    low, middle, high = np.quantile(ours / keras, [0.25, 0.5, 0.75])
    print(f"  {middle:.3f} times, half of the pairs from {low:.3f} to {high:.3f}")


def _ours(process: _Process) -> Callable[[], object]:
    import tensorflow as tf

    step, batches = process.step(), process.batches(prepared=True)
    rate, batch = tf.Variable(RATE), next(batches)

    def one() -> None:
        nonlocal batch
        rate.assign(RATE)
        loss = float(step(*batch))
        batch = next(batches)
        process.workers.any_of(not math.isfinite(loss), False)

    return one


def _keras(process: _Process) -> Callable[[], object]:
    import tensorflow as tf

    from training.input.class_weights import catalogued_pixels, class_weights
    from training.network.loss import weight_of_class_id, weighted_cross_entropy
    from training.network.networks import build_network

    options, frames = process.options, Manifest.read(process.options.manifest)
    batches = process.batches(prepared=True)
    batch_count = options.frames // options.batch_sizes[0]
    images, labels = map(
        np.concatenate, zip(*(next(batches) for _ in range(batch_count)), strict=True)
    )
    batches.close()
    size, name = options.size, options.network
    model = build_network(
        name, size.height_px, size.width_px, len(frames.header.classes), trusted=name
    )
    weights = weight_of_class_id(class_weights(catalogued_pixels(frames)))
    model.compile(
        tf.keras.optimizers.Adam(RATE, global_clipnorm=1.0),
        lambda labels, logits: weighted_cross_entropy(labels, logits, weights),
    )
    arrays = tf.data.Dataset.from_tensor_slices((images, labels))
    of_fit = iter(arrays.repeat().batch(options.batch_sizes[0]).prefetch(tf.data.AUTOTUNE))
    function: Any = model.make_train_function()
    return lambda: function(of_fit)


if __name__ == "__main__":
    main()
