"""Layers that compute in halves, beside float32 weights, logits and losses."""

from pathlib import Path

import pytest

from pipeline.runs.networks import NETWORKS
from tests.training.commands import (
    NETWORK,
    ONE_THREAD,
    TINY,
    horovodrun,
    run_several,
    run_tensorflow,
)
from tests.training.drawn_frames import draw_frames, every_fourth, write_manifest
from training.run.checkpoint import Checkpoint
from training.run.metrics_log import read_metrics

pytestmark = pytest.mark.training


def test_logits_and_weights_stay_float32() -> None:
    """Proves it of each network of Framesift's; the layers before compute in halves."""
    import tensorflow as tf

    from pipeline.runs.precision import MIXED
    from training.network.gpus import layers_in
    from training.network.networks import build_network

    for name in NETWORKS:
        with layers_in(MIXED):
            model = build_network(name, 64, 96, 5)
        assert tf.as_dtype(model.outputs[0].dtype) == tf.float32, name
        assert {weight.dtype for weight in model.weights} == {tf.float32}, name
        convolutions = [layer for layer in model.submodules if type(layer).__name__ == "Conv2D"]
        computed = {layer.compute_dtype for layer in convolutions}
        assert computed == {"float16", "float32"}, name
        (last,) = (layer for layer in convolutions if layer.compute_dtype == "float32")
        assert last.name == "class_logits"
    assert tf.keras.mixed_precision.global_policy().name == "float32"


def test_an_overflow_lowers_the_scale() -> None:
    """Proves that gradients come back unscaled, and that many good steps raise the scale again."""
    import tensorflow as tf

    from training.network.loss_scale import FIRST_SCALE, STEPS_TO_GROW, LossScale

    scale = LossScale()
    assert float(scale.scaled(2.0)) == 2 * FIRST_SCALE
    assert scale.unscaled([tf.constant([FIRST_SCALE]), None])[0].numpy() == [1.0]
    assert not scale.update([tf.constant([1.0]), tf.constant([float("inf")]), None])
    assert [float(each) for each in scale.variables] == [FIRST_SCALE / 2, 0]
    scale.variables[1].assign(STEPS_TO_GROW - 2)
    for expected in (FIRST_SCALE / 2, FIRST_SCALE):
        assert scale.update([tf.constant([1.0])])
        assert float(scale.variables[0]) == expected
    assert float(scale.variables[1]) == 0


def test_xla_is_tried_before_it_is_used() -> None:
    """Proves that a function compiles here, and that none changes how graphs run without a GPU."""
    import tensorflow as tf

    from training.network.gpus import compile_for_gpus, xla_error

    assert xla_error() is None
    compile_for_gpus()
    assert not tf.config.optimizer.get_jit()


def test_two_workers_train_in_halves(tmp_path: Path) -> None:
    """Proves the loss falls, weights are float32, and the precision is part of the run.

    The checkpoint keeps the scale of the loss. Without a GPU a run chooses float32.
    """
    manifest, model = tmp_path / "manifest", tmp_path / "model"
    write_manifest(manifest, tmp_path, every_fourth(draw_frames(tmp_path, 16)))
    flags = [
        "--exec_mode", "train", "--manifest", str(manifest), "--model_dir", str(model),
        "--batch_size", "2", "--max_steps", "10", *TINY,
    ]  # fmt: skip
    mixed = [*flags, "--precision", "mixed_float16"]
    ended = run_tensorflow("-m", "training.main", *mixed, launcher=horovodrun(2))
    assert ended.status == 0, ended.err
    assert "computing in mixed_float16; weights, logits and loss in float32" in ended.out
    lines = read_metrics(model)
    assert lines[-1]["loss"] < 0.8 * lines[0]["loss"]
    checkpoint = Checkpoint.read(model)
    assert checkpoint is not None
    assert {each.dtype.name for each in checkpoint.weights} == {"float32"}
    assert [float(each) for each in checkpoint.optimizer[-2:]] == [2.0**15, 10]
    out = ["--manifest", str(manifest), "--model_dir", str(model), *ONE_THREAD, *NETWORK]
    validation = ["--exec_mode", "evaluate", "--results_dir", str(tmp_path / "results"), *out]
    once_more, refused, validated = run_several(mixed, flags, validation)
    assert once_more.status == validated.status == 0, once_more.err + validated.err
    assert "going on from the checkpoint of step 10" in once_more.out
    assert refused.status == 1
    assert "--precision mixed_float16 there, float32 here" in refused.error
