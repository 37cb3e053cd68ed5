"""The backbone's weights from a file."""

from pathlib import Path

import numpy as np
import pytest

from catalog.errors import BadFile

pytestmark = pytest.mark.training


def test_a_backbone_has_the_weights_of_its_file(tmp_path: Path) -> None:
    """Proves Keras' file of ResNet-50 without its top fits the dilated one, and no other does."""
    import tensorflow as tf

    from training.network.deeplab import BACKBONE, build_deeplab, load_backbone

    published = tf.keras.applications.ResNet50(include_top=False, weights=None)
    published.save_weights(tmp_path / "resnet50.h5")
    model = build_deeplab(64, 96, 4)
    load_backbone(model, tmp_path / "resnet50.h5")
    ours = model.get_layer(BACKBONE).get_weights()
    for one, other in zip(ours, published.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)
    tf.keras.Sequential([tf.keras.layers.Dense(2, input_shape=(3,))]).save_weights(
        tmp_path / "other.h5"
    )
    (tmp_path / "text.h5").write_text("no HDF5")
    for name in ("other.h5", "text.h5", "none.h5"):
        with pytest.raises(
            BadFile, match=r"\.h5: holds no weights of ResNet-50 .* expected an \.h5"
        ):
            load_backbone(model, tmp_path / name)
