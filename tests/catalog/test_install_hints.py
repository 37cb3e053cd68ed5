"""What is said of packages that are not installed."""

import re
import tomllib
from pathlib import Path

from catalog.errors import not_installed

ROOT = Path(__file__).parents[2]
PARTS = ("api", "catalog", "docs", "framesift", "ingest", "pipeline", "query", "training")


def test_the_hint_names_extras_that_there_are() -> None:
    """Every extra that the code asks for is in pyproject.toml, by its own name."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    asked = set()
    for part in PARTS:
        for file in (ROOT / part).rglob("*.py"):
            text = file.read_text(encoding="utf-8")
            asked |= set(re.findall(r'(?:not_installed\(.*, |installs\()[\'"](\w+)[\'"]\)', text))
    assert {"train", "team", "iceberg", "mcp", "mlflow", "map", "dask", "report"} <= asked
    assert asked <= set(extras)
    assert str(not_installed("PostgreSQL", "team")) == (
        "PostgreSQL is not installed here: 'uv sync --inexact --extra team' in Framesift's clone "
        "installs it"
    )


def test_nobody_is_sent_to_a_registry_for_framesift() -> None:
    """No message and no page has the package installed from where it is not."""
    wrong = [
        str(file.relative_to(ROOT))
        for file in (
            *(each for part in PARTS for each in (ROOT / part).rglob("*")),
            ROOT / "README.md",
        )
        if file.suffix in (".py", ".md", ".html")
        and re.search(r"install ['\"]?framesift\b(?! \{)", file.read_text(encoding="utf-8"))
    ]
    assert wrong == []
