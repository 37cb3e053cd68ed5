r"""A training in TensorFlow: tf.data over framesift.data.

framesift run city --split train --prepare 240x152 \
    --command 'python train_tf_data.py --frames {prepared} --out {job}'
"""

import argparse
import json
import os
from pathlib import Path

import numpy as np
import tensorflow as tf

from framesift.data import UNKNOWN_CLASS, open_frames


def write_json(path, data):
    """Write a file that is there whole or not at all."""
    path.with_suffix(".part").write_text(json.dumps(data))
    path.with_suffix(".part").replace(path)


def main():
    """Train for some epochs; write the weights and what was measured."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--frames", required=True, help="manifest, prepared arrays or list")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=1)
    options = parser.parse_args()

    tf.keras.utils.set_random_seed(0)
    frames = open_frames(options.frames)
    examples = tf.data.Dataset.from_generator(
        lambda: frames,
        output_signature=(
            tf.TensorSpec((None, None, 3), tf.uint8),
            tf.TensorSpec((None, None), tf.uint8),
        ),
    )
    batches = examples.batch(4).prefetch(2)
    classes = len(frames.classes)
    model = tf.keras.Sequential(
        [
            tf.keras.layers.Rescaling(1 / 255, input_shape=(None, None, 3)),
            tf.keras.layers.Conv2D(16, 3, padding="same", activation="relu"),
            tf.keras.layers.Conv2D(classes, 1),
        ]
    )
    loss = tf.keras.losses.SparseCategoricalCrossentropy(
        from_logits=True, ignore_class=UNKNOWN_CLASS
    )
    model.compile(tf.keras.optimizers.Adam(1e-2), loss)
    begin = 0
    if checkpoint := os.environ.get("FRAMESIFT_CHECKPOINT"):  # of an earlier attempt
        model.build((None, None, None, 3))
        model.load_weights(checkpoint)
        begin = int(Path(checkpoint).name.split(".")[0].removeprefix("epoch-"))

    def note(epoch, logs):
        path = options.out / f"epoch-{epoch + 1}.weights.h5"
        model.save_weights(path)
        line = {"step": epoch + 1, "name": "loss", "value": logs["loss"]}
        with (options.out / "metrics.jsonl").open("a") as curves:
            curves.write(json.dumps(line) + "\n")
        write_json(options.out / "checkpoints.json", {"checkpoints": [line | {"path": path.name}]})

    noting = tf.keras.callbacks.LambdaCallback(on_epoch_end=note)
    model.fit(batches, epochs=options.epochs, initial_epoch=begin, callbacks=[noting], verbose=2)
    np.savez(options.out / "weights.npz", *model.get_weights())
    write_json(options.out / "metrics.json", {"frames": len(frames)})


if __name__ == "__main__":
    main()
