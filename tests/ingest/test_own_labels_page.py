"""docs/own-labels.md: its commands are run as they stand, in an empty folder."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.api.servers import framesift

REPOSITORY = Path(__file__).parents[2]
PAGE = (REPOSITORY / "docs" / "own-labels.md").read_text(encoding="utf-8")


def example(name: str) -> str:
    """The text below the page's mark of that name."""
    match = re.search(rf"<!-- example: {name} -->\n```\w+\n(.*?)```", PAGE, re.DOTALL)
    assert match, name
    return match[1]


@pytest.mark.wide
def test_a_layout_by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step says what the page says; the last question finds the drawn frames."""
    monkeypatch.chdir(tmp_path)
    home = tmp_path / "home"

    def run(name: str) -> list[str]:
        printed = []
        for line in example(name).splitlines():
            program, *arguments = shlex.split(line)
            if program == "mv":
                shutil.move(arguments[0], arguments[1])
                continue
            done = framesift(home, *arguments)
            assert done.returncode == 0, (line, done.stderr)
            printed.append(done.stdout)
        return printed

    _, added = run("draw")
    patterns = example("layout").splitlines()[:2]
    assert "no preset pairs its images with labels" in added
    assert "\n".join(patterns) in added
    Path("mine.toml").write_text(example("layout"))
    checked, _, ingested, found = run("check")
    assert (
        "4 frames with image and label, 0 images without label, 0 labels without image" in checked
    )
    assert "counted 4 frames" in ingested
    assert "pixels of no class:" in ingested
    assert re.findall(r"(\d+) keys that no class has:\n  (\d+): ", found) == [("15", "23")]
    with Path("mine.toml").open("a") as file:
        file.write("\n" + example("more"))
    *_, classes, selected = run("again")
    assert [line.split()[0] for line in classes.splitlines()] == [
        "tag",
        "void",
        "road",
        "car",
        "sky",
    ]
    assert selected.splitlines()[-1].startswith("3 frames, snapshot")


def test_the_table_says_what_the_program_says() -> None:
    """What `source add` and scans print, in the page's words."""
    sources = [path.read_text() for folder in ("ingest", "api/cli") for path in
               (REPOSITORY / folder).rglob("*.py")]  # fmt: skip
    for words in (
        "looks like ", "several layouts fit: ", " has no classes", "has its own layout: ",
        "no preset pairs its images with labels", " pixels of no class", "its camera image",
        "JPEG is truncated", "name does not follow", "its frame has", " already", "no frames",
    ):  # fmt: skip
        assert words in PAGE
        assert any(words in re.sub(r'"\s+f?"', "", source) for source in sources), words
