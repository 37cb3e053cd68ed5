"""The client alone, in an environment of its own: python client_alone.py URL MANIFEST.

Without its extras where NumPy is not installed, else with "data" and "pandas".
"""

import subprocess
import sys
import time
from importlib.util import find_spec

began = time.perf_counter()
import framesift  # noqa: E402  # what is measured

IMPORT_MS = 1000 * (time.perf_counter() - began)
NOT_OF_THE_CLIENT = (
    "api", "catalog", "duckdb", "fastapi", "framesift_start", "ingest", "pipeline", "query",
    "sample_data", "sqlalchemy", "training",
)  # fmt: skip


def _asks(url: str) -> None:
    client = framesift.connect(url)
    selection = client.select(rd_normal_street=(1, None), order="rd_normal_street desc")
    assert len(selection), "no frames"
    pixels = [frame["rd_normal_street"] for frame in selection]
    assert pixels == sorted(pixels, reverse=True), pixels
    (counted,) = client.sql("select count(*) as frames from t_rd_normal_street")
    assert int(counted["frames"]) >= len(selection), dict(counted)
    if not find_spec("pandas"):
        assert "pip install" in _refusal(selection)
    else:
        assert len(selection.to_pandas()) == len(selection)


def _refusal(selection: framesift.Selection) -> str:
    try:
        return f"no error, but a table: {selection.to_pandas()}"
    except framesift.MissingPackage as error:
        return str(error)


def _needs_the_rest_in_a_sentence() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "framesift"], capture_output=True, text=True, check=False
    )
    assert run.returncode == 1, run
    assert "needs all of Framesift" in run.stderr, run.stderr
    assert "pip install --find-links" in run.stderr, run.stderr
    assert "Traceback" not in run.stderr, run.stderr


def _opens(manifest: str) -> None:
    from framesift.data import open_frames

    frames = open_frames(manifest)
    image, class_ids = frames[0]
    assert class_ids is not None
    assert image.shape[:2] == class_ids.shape, image.shape
    assert len({*class_ids.flat}) > 2, "a label of one class"


def main(url: str, manifest: str) -> None:
    """Run each check; the last line has the time of the first import."""
    alone = [name for name in NOT_OF_THE_CLIENT if find_spec(name)]
    assert not alone, f"{alone}: not the client alone"
    _asks(url)
    _needs_the_rest_in_a_sentence()
    if find_spec("numpy"):
        _opens(manifest)
    print(f"import framesift {IMPORT_MS:.0f} ms")


main(*sys.argv[1:])
