"""docs/examples/loop.ipynb: it has no outputs, and every cell of it runs against a server."""

import json
import re
import subprocess
from pathlib import Path

import httpx
import pytest

from tests.api.servers import environment, framesift, serving
from tests.exports.test_readers import ENVIRONMENTS
from tests.pipeline.homes import REPOSITORY

NOTEBOOK = REPOSITORY / "docs" / "examples" / "loop.ipynb"


def test_it_is_committed_without_outputs() -> None:
    """So that a change of it shows in a diff, and nothing in it is of another time."""
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert len(code) >= 8
    assert [cell["id"] for cell in code if cell["outputs"] or cell["execution_count"]] == []


@pytest.mark.readers
def test_it_runs(tmp_path: Path) -> None:
    """From a question to the next: what its cells print is what the server answers."""
    home, frames = tmp_path / "home", tmp_path / "streets"
    draw = ["sample-data", "--frames", "24", "--reduce", "8", "--layout", "cityscapes"]
    commands = (
        [*draw, "--out", frames], ["source", "add", "streets", frames], ["ingest", "streets"],
    )  # fmt: skip
    for command in commands:
        done = framesift(home, *command)
        assert done.returncode == 0, done.stderr
    python = REPOSITORY / ENVIRONMENTS["openapi"] / "bin" / "python"
    script = Path(__file__).with_name("execute_notebook.py")
    with serving(home) as (url, _):
        variables = {
            "PYTHONPATH": str(REPOSITORY), "FRAMESIFT_SERVER": url,
            "JUPYTER_RUNTIME_DIR": str(tmp_path), "IPYTHONDIR": str(tmp_path),
        }  # fmt: skip
        done = subprocess.run(
            [python, script, NOTEBOOK], capture_output=True, text=True, check=False,
            timeout=1200, cwd=tmp_path, env=environment(tmp_path / "none", variables),
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-4000:]
        printed = json.loads(done.stdout)
        (scores,) = (job["name"] for job in httpx.get(f"{url}/v1/jobs", timeout=300).json()["jobs"]
                     if job["kind"] == "validate" and job["name"] != "loop-first")  # fmt: skip
        report = httpx.get(f"{url}/v1/jobs/{scores}/report", timeout=300).json()
        versions = httpx.get(f"{url}/v1/datasets?name=loop", timeout=300).json()["datasets"]
    assert "car" in printed["connect"]
    (found,) = re.findall(r"^(\d+) frames: ", printed["select"])
    assert 0 < int(found) <= 24
    assert "car_pixels" in printed["sql"]
    train, validation = map(int, re.findall(r"'(?:train|validation)': (\d+)", printed["save"]))
    assert train + validation == 24
    before, after = map(float, re.findall(r"[\d.]+", printed["first"]))
    assert after < before
    assert printed["scores"] == f"mean IoU {report['miou']} of {validation} frames\n"
    names, matrix = report["classes"], report["confusion_matrix"]
    pixels, label, said = max(
        (count, names[row], names[column])
        for row, counts in enumerate(matrix)
        for column, count in enumerate(counts)
        if row != column
    )
    asked = re.fullmatch(r"(.+) taken for (.+): (\d+) pixels in (\d+) frames\n", printed["ask"])
    assert asked, printed["ask"]
    assert asked.groups()[:3] == (label, said, str(pixels))
    assert 0 < int(asked[4]) <= validation
    assert len(versions) == (2 if "instead of" in printed["improve"] else 1)
    assert printed["improve"]
