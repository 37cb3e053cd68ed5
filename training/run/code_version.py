"""The code of a run: Framesift's release and commit."""

import json
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

_PACKAGE = Path(__file__).resolve().parents[1]
_LONGEST_S = 30


def code_version(package: Path = _PACKAGE) -> dict[str, Any]:
    """Version, commit, and whether files differ from it; None where nothing tells.

    Args:
        package: The folder of this package: at the top of a clone, or installed.

    Source: PEP 610, direct_url.json: the commit that an installed package was built from.
    """
    version, commit = _installed()
    top = _git(package.parent, "rev-parse", "--show-toplevel")
    # An environment may lie in a repository of the user's own, which says nothing about this code.
    if top is None or Path(top).resolve() != package.parent:
        return {"version": version, "commit": commit, "modified": None}
    changes = _git(package.parent, "status", "--porcelain", "--untracked-files=no")
    return {
        "version": version,
        "commit": _git(package.parent, "rev-parse", "HEAD"),
        "modified": None if changes is None else bool(changes),
    }


def _installed() -> tuple[str | None, str | None]:
    try:
        installed = distribution("framesift")
        direct = json.loads(installed.read_text("direct_url.json") or "{}")
        commit = direct.get("vcs_info", {}).get("commit_id")
    except PackageNotFoundError:
        return None, None
    except (OSError, ValueError, AttributeError):
        return installed.version, None
    return installed.version, commit if isinstance(commit, str) else None


def _git(folder: Path, *command: str) -> str | None:
    if (git := shutil.which("git")) is None:
        return None
    try:
        ended = subprocess.run(
            [git, "-C", str(folder), *command],
            capture_output=True, text=True, check=False, timeout=_LONGEST_S,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return None
    return ended.stdout.strip() if ended.returncode == 0 else None
