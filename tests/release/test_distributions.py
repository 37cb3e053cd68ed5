"""Two distributions of one repository: what their files say of each other, and the client alone."""

import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path
from typing import Any

from tests.test_import_circles import PACKAGES

REPOSITORY = Path(__file__).resolve().parents[2]


def settings(file: str) -> dict[str, Any]:
    """The content of a pyproject.toml."""
    return tomllib.loads((REPOSITORY / file).read_text(encoding="utf-8"))


def test_both_are_of_one_version() -> None:
    """The whole needs the client of its own release."""
    whole, client = settings("pyproject.toml"), settings("client/pyproject.toml")
    version = whole["project"]["version"]
    assert client["project"]["version"] == version
    assert f"framesift-client=={version}" in whole["project"]["dependencies"]
    assert whole["build-system"] == client["build-system"]


def test_each_package_is_in_one_of_them() -> None:
    """The client has framesift, the whole all others."""
    whole = settings("pyproject.toml")["tool"]["hatch"]["build"]["only-include"]
    client = settings("client/pyproject.toml")["tool"]["hatch"]["build"]["targets"]
    assert client["wheel"]["packages"] == client["sdist"]["only-include"] == ["framesift"]
    assert sorted([*whole, "framesift"]) == sorted(PACKAGES)


def test_horovod_is_compiled_beside_the_tensorflow_that_it_runs_with() -> None:
    """Its pin is the Makefile's; the index's files stay in uv's cache, and the wheel with them."""
    whole = settings("pyproject.toml")
    pins = [one.partition(";")[0] for one in whole["project"]["optional-dependencies"]["train"]]
    (horovod,) = [one for one in pins if one.startswith("horovod==")]
    (tensorflow,) = [one for one in pins if one.startswith("tensorflow-cpu==")]
    uv = whole["tool"]["uv"]
    assert tensorflow in uv["extra-build-dependencies"]["horovod"]
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    assert f"HOROVOD_VERSION := {horovod.removeprefix('horovod==')}\n" in makefile
    (index,) = uv["index"]
    assert "immutable" in index["cache-control"]["files"]
    assert (index["default"], index["url"]) == (True, "https://pypi.org/simple")


def test_a_staging_needs_the_whole_and_a_file_list_does_not(tmp_path: Path) -> None:
    """An error says what to install; the order of an epoch is the client's own."""
    (tmp_path / "framesift").symlink_to(REPOSITORY / "framesift")
    (tmp_path / "staging.json").write_text("{}")
    program = """\
import sys
from pathlib import Path
sys.path[:0] = sys.argv[1:]
from framesift.data.epoch_order import epoch_order
from framesift.data.waiting import Staging
from framesift.errors import MissingPackage
print(epoch_order(4, 1, 0).tolist())
assert Staging.beside(Path(sys.argv[1]) / "framesift") is None
try:
    Staging.beside(Path(sys.argv[1]))
except MissingPackage as error:
    print(error)
"""
    # -S: the clone itself is on the path by a file of site-packages.
    run = subprocess.run(
        [sys.executable, "-S", "-c", program, tmp_path, sysconfig.get_path("purelib")],
        capture_output=True, text=True, check=True, cwd=tmp_path,
    )  # fmt: skip
    order, error = run.stdout.splitlines()
    assert sorted(map(int, order.strip("[]").split(", "))) == [0, 1, 2, 3]
    assert error.startswith("a staging beside the job needs all of Framesift")
    assert "pip install --find-links" in error
