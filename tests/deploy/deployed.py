"""What the files of deploy/ say: the commands and variables that they name."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

DEPLOY = Path(__file__).parents[2] / "deploy"
IMAGES = ("framesift-server", "framesift-worker", "framesift-worker-gpu")
OF_OTHERS = {
    "PGSERVICE", "PGSERVICEFILE", "PGPASSFILE", "AWS_SHARED_CREDENTIALS_FILE",
}  # fmt: skip
"""Variables of libpq and boto3 that the files set for Framesift."""


@dataclass(frozen=True)
class Named:
    """A command or a variable, and the file that names it."""

    file: str
    words: tuple[str, ...]


def files() -> list[Path]:
    """All of them that git knows or may know."""
    return sorted(
        path for path in DEPLOY.rglob("*") if path.is_file() and "secrets" not in path.parts
    )


def documents(path: Path) -> list[Any]:
    """Documents of a file of YAML."""
    return [each for each in yaml.safe_load_all(path.read_text("utf-8")) if each is not None]


def settings() -> Iterator[Named]:
    """Each variable FRAMESIFT_* that a file names, in a comment, too."""
    for path in files():
        for name in re.findall(r"\bFRAMESIFT_[A-Z0-9_]*[A-Z0-9]\b", path.read_text("utf-8")):
            yield Named(_name(path), (name,))


def variables() -> Iterator[Named]:
    """Each variable that a container of ours, or a unit, gets."""
    for path in files():
        text = path.read_text("utf-8")
        if path.suffix in (".yaml", ".yml"):
            for name in _of_ours(documents(path)):
                yield Named(_name(path), (name,))
        elif path.suffix == ".environment":
            for name in re.findall(r"^#?([A-Z][A-Z0-9_]*)=", text, re.MULTILINE):
                yield Named(_name(path), (name,))


def _of_ours(tree: Any) -> Iterator[str]:
    """Names in compose's environment of our images, and in literals of kustomize."""
    if isinstance(tree, dict):
        if tree.get("image") in IMAGES:
            yield from tree.get("environment", {})
        for literal in tree.get("literals", ()):
            yield literal.partition("=")[0]
    for each in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from _of_ours(each)


def commands() -> Iterator[Named]:
    """Each command of Framesift: of containers and units, and as prose and scripts show it."""
    for path in files():
        text = path.read_text("utf-8")
        if path.suffix in (".yaml", ".yml"):
            for words in _arguments(documents(path)):
                yield Named(_name(path), words)
        if path.name.endswith("Containerfile") and '"framesift"]' in text:  # its entry point
            for words in re.findall(r"^CMD \[(.*)\]$", text, re.MULTILINE):
                yield Named(_name(path), tuple(yaml.safe_load(f"[{words}]")))
        shown = [
            *re.findall(r"`framesift ([^`]+)`", text),
            *re.findall(r"^[^#\n]*\bbin/framesift ([^'\n]+)", text, re.MULTILINE),
            *re.findall(r"^\s*- framesift ([^&\n]+)", text, re.MULTILINE),
            *re.findall(r"^#.*(?:worker\.sif|exec server) framesift (.+)$", text, re.MULTILINE),
        ]
        for line in shown:
            yield Named(_name(path), tuple(shlex.split(line.replace('"', ""))))


def _arguments(tree: Any) -> Iterator[tuple[str, ...]]:
    """Arguments of containers that run our images' own entry point."""
    if isinstance(tree, dict) and tree.get("image") in IMAGES:
        if "args" in tree and "command" not in tree:  # Kubernetes
            yield tuple(tree["args"])
        if "command" in tree and "entrypoint" not in tree and "args" not in tree:  # compose
            yield tuple(tree["command"])
    for each in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from _arguments(each)


def _name(path: Path) -> str:
    return str(path.relative_to(DEPLOY.parent))
