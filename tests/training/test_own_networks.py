"""A user's network that cannot be built says where, in the user's own file."""

import sys
from pathlib import Path

import pytest

from catalog.errors import InvalidInput

pytestmark = pytest.mark.training

_FINE = "import tensorflow as tf\nlayers = tf.keras.layers\n"
_SUBCLASS = """
class Mine(tf.keras.Model):
    def call(self, images):
        return images
def net(height, width, classes):
    return Mine()
"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import numpy\nx = numpie\n", r"{file}, line 2: NameError: name 'numpie'"),
        ("def net(:\n", r"{file}, line 1: SyntaxError"),
        ("import no_such_package\n", r"{file}, line 1: ModuleNotFoundError: No module named"),
        ("other = 1\n", r"AttributeError: .* no attribute 'net'; expected MODULE:FUNCTION"),
        (
            "def net(h, w, n):\n    m = n\n    return klasses\n",
            r"net\(64, 96, 4\) failed at {file}, line 3: NameError: name 'klasses'",
        ),
        (
            _FINE + "def net(h, w, n):\n    return layers.Conv2D(n, 0)(layers.Input((h, w, 3)))\n",
            r"failed at {file}, line 4: ValueError: .*kernel_size",
        ),
        ("def net(h, w, n):\n    return 7\n", "gives a int; expected a keras.Model"),
        (_FINE + _SUBCLASS, r"gives a Mine whose layers .* expected tf.keras.Model\(images"),
    ],
)
def test_what_cannot_be_built_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    """Proves each is an error with the user's file and line where there is one."""
    from training.network.networks import build_network

    file = tmp_path / "broken_net.py"
    file.write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "broken_net", raising=False)
    with pytest.raises(InvalidInput, match=message.replace("{file}", str(file))) as refused:
        build_network("broken_net:net", 64, 96, 4, trusted="broken_net:net")
    assert "\n" not in str(refused.value)
