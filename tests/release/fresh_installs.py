"""The release's wheels in fresh environments, on every Python at hand: `make test-wheels`.

Versions of what else is installed are those of the lock, on the Pythons that it holds, so that a
release of another project fails no change of this one.
"""

import filecmp
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
CLIENT_PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
PYTHONS = ("3.11", "3.12", "3.13")
FRAMES = 12
NOT_OF_THE_BASE = ("tensorflow", "horovod", "boto3", "matplotlib", "pandas", "pytest")


def said(
    *command: str | Path,
    code: int = 0,
    home: Path | None = None,
    variables: Mapping[str, str] | None = None,
) -> str:
    """Run a command outside of the clone; what it said on both outputs."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("FRAMESIFT_", "PYTHON"))}
    ended = subprocess.run(
        list(map(str, command)),
        env=inherited | ({"FRAMESIFT_HOME": str(home)} if home else {}) | dict(variables or {}),
        cwd=tempfile.gettempdir(),
        check=False,
        capture_output=True,
        text=True,
        timeout=600,
    )
    text = ended.stdout + ended.stderr
    assert ended.returncode == code, f"{command}: exit code {ended.returncode}: {text}"
    return text


def python_at_hand(number: str) -> Path | None:
    """The interpreter of a version, of pyenv or on PATH; None where there is none."""
    of_pyenv = (Path.home() / ".pyenv" / "versions").glob(f"{number}.*/bin/python")
    on_path = shutil.which(f"python{number}")
    for python in (*of_pyenv, *([Path(on_path)] if on_path else [])):
        run = subprocess.run([python, "-c", ""], check=False, capture_output=True)
        if run.returncode == 0:
            return python
    return None


@dataclass(frozen=True)
class Release:
    """Wheels in a folder, and what is installed beside them."""

    uv: str
    wheels: Path

    def install(self, folder: Path, number: str, python: Path, *requirements: str) -> Path:
        """Python of a new environment with the requirements."""
        constraints = ("--constraint", self.wheels / "constraints.txt") if number in PYTHONS else ()
        if not folder.exists():
            said(self.uv, "venv", "--quiet", "--python", python, folder)
        own = folder / "bin" / "python"
        said(
            self.uv, "pip", "install", "--quiet", "--python", own, "--find-links", self.wheels,
            "--refresh-package", "framesift", "--refresh-package", "framesift-client",
            *constraints, *requirements,
        )  # fmt: skip
        return own


def check_builds(release: Release, scratch: Path) -> None:
    """A second build has the same bytes, and a wheel of the tree those of the sdist's."""
    # `uv build` alone makes the wheel of the sdist, and with both options of the tree.
    said(
        release.uv, "build", "--quiet", "--project", REPOSITORY, "--directory", REPOSITORY,
        "--all-packages", "--sdist", "--wheel", "--out-dir", scratch,
    )  # fmt: skip
    names = sorted(file.name for file in release.wheels.glob("framesift*"))
    assert len(names) == 4, names
    for name in names:
        same = filecmp.cmp(release.wheels / name, scratch / name, shallow=False)
        assert same, f"{name}: another build has other bytes"


def check_whole(release: Release, scratch: Path, number: str, python: Path) -> Path:
    """The main job but for training; the folder of the environment and of its home."""
    folder = scratch / f"whole-{number}"
    began = time.monotonic()
    own = release.install(folder / "environment", number, python, "framesift")
    installed_s = time.monotonic() - began
    listed = said(own, "-c", "import importlib.util as u, sys; "
                  "print([name for name in sys.argv[1:] if u.find_spec(name)])",
                  *NOT_OF_THE_BASE)  # fmt: skip
    assert listed.strip() == "[]", f"{listed}: not the base alone"
    command = own.with_name("framesift")
    version = re.sub(
        r"\S+-([\d.]+)\.tar\.gz", r"\1", next(release.wheels.glob("framesift-*.gz")).name
    )
    assert said(command, "--version") == f"framesift {version}\n"
    demo = ("demo", "--folder", str(folder / "demo"), "--frames", str(FRAMES))
    refused = said(command, *demo, code=1)
    needs = "'framesift[train]'" if number == "3.11" else "need Python 3.11"
    assert needs in refused, refused
    assert "Stage it near the job" in said(command, *demo, "--no-train")
    frames = said(command, "sql", "select count(*) from t_car", home=folder / "demo" / "home")
    assert frames.strip().endswith(f",{FRAMES}"), frames
    print(f"ok framesift on {number}: installed in {installed_s:.1f} s")
    return folder


def check_client(
    release: Release, scratch: Path, number: str, python: Path, url: str, manifest: Path
) -> None:
    """The client asks a server, without its extras and with them."""
    folder = scratch / f"client-{number}"
    began = time.monotonic()
    own = release.install(folder, number, python, "framesift-client")
    installed_s = time.monotonic() - began
    program = REPOSITORY / "tests" / "release" / "client_alone.py"
    told = [said(own, program, url, manifest)]
    assert "import framesift" in told[0], told
    release.install(folder, number, python, "framesift-client[data,pandas]")
    told.append(said(own, program, url, manifest))
    said(own, "-c", "import pandas, PIL, pyarrow, simplejpeg")
    print(f"ok framesift-client on {number}: installed in {installed_s:.1f} s, {told[0].strip()}")


def check_tool(release: Release, scratch: Path, python: Path) -> None:
    """`uv tool install` puts the command on PATH, in an environment of its own."""
    folder = scratch / "tool"
    variables = {"UV_TOOL_DIR": str(folder / "tools"), "UV_TOOL_BIN_DIR": str(folder / "bin")}
    said(
        release.uv, "tool", "install", "--quiet", "--python", python,
        "--find-links", release.wheels, "--constraints", release.wheels / "constraints.txt",
        "--refresh-package", "framesift", "--refresh-package", "framesift-client",
        "framesift", variables=variables,
    )  # fmt: skip
    assert said(folder / "bin" / "framesift", "--version").startswith("framesift ")
    print("ok framesift by uv tool install")


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """URL of a server of the home that the demo has made."""
    command = folder / "environment" / "bin" / "framesift"
    with subprocess.Popen(
        [command, "serve", "--port", "0", "--no-auth", "--log-level", "warning"],
        env={**os.environ, "FRAMESIFT_HOME": str(folder / "demo" / "home")},
        cwd=folder,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout
            for line in process.stdout:
                if url := re.search(r"http://127\.0\.0\.1:\d+", line):
                    yield url[0]
                    break
            else:
                raise AssertionError("the server said no URL")
        finally:
            process.terminate()


def main(uv: str, wheels: str) -> None:
    """Run each check; a line for each, and the last says how many."""
    at_hand = {number: python_at_hand(number) for number in CLIENT_PYTHONS}
    missing = [number for number, python in at_hand.items() if python is None]
    pythons = {number: python for number, python in at_hand.items() if python is not None}
    of_whole = [number for number in PYTHONS if number in pythons]
    assert "3.11" in of_whole, "expected a Python 3.11, which everything else needs, too"
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as two:
        scratch = Path(folder)
        release = Release(uv, Path(wheels).resolve())
        built = two.submit(check_builds, release, scratch / "again")
        homes = list(
            two.map(lambda number: check_whole(release, scratch, number, pythons[number]), of_whole)
        )
        built.result()
        check_tool(release, scratch, pythons["3.11"])
        print("ok two builds are the same, and so is the sdist's wheel")
        manifest = homes[0] / "demo" / "home" / "datasets" / "streets" / "v1"
        with served(homes[0]) as url:
            list(
                two.map(
                    lambda number: check_client(
                        release, scratch, number, pythons[number], url, manifest
                    ),
                    pythons,
                )
            )
    for number in missing:
        print(f"skipped {number}: not at hand")
    passed = 2 + len(of_whole) + len(pythons)
    print(f"{passed} passed, 0 failed, {len(missing)} skipped")


if __name__ == "__main__":
    main(*sys.argv[1:])
