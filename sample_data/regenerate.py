"""Makes the committed set again: ``python -m sample_data.regenerate``."""

import json
import shutil
from pathlib import Path

from sample_data.generate import MANIFEST_FILE, write_sample_data

COMMITTED_SET = Path(__file__).with_name("a2d2")
COMMITTED_COUNTS = Path(__file__).with_name("counts.json")
COMMITTED_FRAMES = 24


def regenerate() -> None:
    """Replaces the folder a2d2 and the file counts.json."""
    if (COMMITTED_SET / MANIFEST_FILE).exists():
        shutil.rmtree(COMMITTED_SET)
    write_sample_data(COMMITTED_SET, frames=COMMITTED_FRAMES)
    frames = json.loads((COMMITTED_SET / MANIFEST_FILE).read_text(encoding="utf-8"))["counts"]
    lines = (
        f"{json.dumps(name)}: {json.dumps(counts)}" for name, counts in frames["frames"].items()
    )
    COMMITTED_COUNTS.write_text('{"frames": {\n' + ",\n".join(lines) + "\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    regenerate()
