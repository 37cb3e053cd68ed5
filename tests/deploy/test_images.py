"""The images of deploy/images, built and run without an engine: `make test-images`."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.api.servers import wait_until

pytestmark = pytest.mark.images
REPOSITORY = Path(__file__).parents[2]
_FOLDER = Path(
    os.environ.get("FRAMESIFT_TEST_IMAGES") or Path.home() / ".cache/framesift-tests/images"
)
"""Where build_image.sh keeps Debian and images."""
_HERE = Path(__file__).parent
_USER = 12345
_FRAMES = 12
_PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"


class Image:
    """An image's file system and what its configuration says."""

    def __init__(self, name: str) -> None:
        """One that has been built."""
        self.root = _FOLDER / name
        described = json.loads((_FOLDER / f"{name}.json").read_text("utf-8"))
        self.config: dict[str, Any] = described["Docker"]["config"]

    def run(self, home: Path, *command: str, **more: str) -> "subprocess.Popen[str]":
        """A process in it as a user that it does not know, with variables besides its own."""
        own = [*self.config["Env"], *(f"{name}={value}" for name, value in more.items())]
        return subprocess.Popen(
            [_HERE / "run_image.sh", self.root, home, str(_USER), *own, "--", *command],
            env={**os.environ, "PATH": _PATH}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def said(self, home: Path, *command: str, **more: str) -> str:
        """What a command writes; it must succeed."""
        with self.run(home, *command, **more) as process:
            text = process.communicate(timeout=1800)[0]
        assert process.returncode == 0, text
        return text


@pytest.fixture(scope="module")
def wheels() -> Path:
    """The release's folder, where images can be built."""
    missing = [name for name in ("buildah", "debootstrap", "unshare", "nsenter", "ip")
               if shutil.which(name, path=_PATH) is None]  # fmt: skip
    if missing or os.geteuid() != 0:
        pytest.skip(
            "images are built by root with buildah and debootstrap: apt-get install buildah "
            f"debootstrap util-linux iproute2 (missing: {', '.join(missing) or 'root'})"
        )
    wheels = REPOSITORY / "dist"
    assert list(wheels.glob("framesift-*.whl")), "no wheels in dist/: make wheels"
    return wheels


def build(wheels: Path, name: str, *options: str) -> Image:
    """An image of the wheels, with more options of buildah."""
    recipe = REPOSITORY / "deploy" / "images" / "Containerfile"
    built = subprocess.run(
        [_HERE / "build_image.sh", _FOLDER, name, recipe, wheels, *options],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert built.returncode == 0, (built.stdout + built.stderr)[-4000:]
    return Image(name)


@pytest.fixture(scope="module")
def server_image(wheels: Path) -> Image:
    """The server's."""
    return build(wheels, "framesift-server")


@pytest.fixture(scope="module")
def worker_image(wheels: Path) -> Image:
    """That of a worker which trains on cores, by the command of docs/deploy.md."""
    return build(wheels, "framesift-worker", "--build-arg", "EXTRAS=onnx,s3,team,train")


@pytest.fixture(scope="module")
def home(server_image: Image, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A mounted folder with the home that the demo has made in the image."""
    folder = tmp_path_factory.mktemp("home")
    os.chown(folder, _USER, 0)
    text = server_image.said(
        folder, "tini", "--", "framesift", "demo", "--no-train", "--frames", str(_FRAMES),
        "--folder", "/srv/framesift/demo",
    )  # fmt: skip
    assert "Stage it near the job" in text, text
    return folder


@contextmanager
def served(image: Image, home: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """The image's own command on the demo's home; the process and its number 1's."""
    own = [*image.config["Entrypoint"], *image.config["Cmd"]]
    with image.run(home, *own, FRAMESIFT_HOME="/srv/framesift/demo/home") as process:

        def first() -> int:
            """Number of the process that is number 1 inside; 0 before and after it."""
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            return int(children[0]) if children else 0

        def is_tini() -> bool:
            assert process.poll() is None
            return first() > 0 and Path(f"/proc/{first()}/comm").read_text().strip() == "tini"

        try:
            wait_until(is_tini)
            yield process, first()
        finally:
            # Having become another user it does not end with its parent.
            if process.poll() is None and first():
                os.kill(first(), signal.SIGKILL)
            process.kill()


def inside(image: Image, number: int, *command: str) -> "subprocess.CompletedProcess[str]":
    """A command beside a process, as an engine's `exec` runs one."""
    own = ["env", "--ignore-environment", *image.config["Env"],
           "FRAMESIFT_HOME=/srv/framesift/demo/home"]  # fmt: skip
    return subprocess.run(
        ["nsenter", "--target", str(number), "--mount", "--pid", "--net", "--root", "--wd",
         "--setuid", str(_USER), "--setgid", "0", *own, *command],
        env={**os.environ, "PATH": _PATH}, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_an_image_has_no_root_and_a_first_process(server_image: Image) -> None:
    """User, entry point, command, health check; pip did not stay."""
    config = server_image.config
    assert config["User"] == "10001:0"
    assert config["Entrypoint"] == ["tini", "--", "framesift"]
    assert config["Cmd"] == ["serve", "--host", "0.0.0.0"]
    assert config["Healthcheck"]["Test"][0] == "CMD"
    assert not list(server_image.root.glob("opt/framesift/bin/pip*"))
    assert list(server_image.root.glob("opt/framesift/lib/python3.11/site-packages/psycopg"))


def test_the_server_runs_as_any_user_on_a_read_only_root(server_image: Image, home: Path) -> None:
    """The main job is done, its home served to a token; SIGTERM ends it with code 0."""
    health = server_image.config["Healthcheck"]["Test"][1:]
    with served(server_image, home) as (process, number):

        def asked(*command: str) -> str:
            done = inside(server_image, number, *command)
            assert done.returncode == 0, done.stdout + done.stderr
            return done.stdout

        wait_until(lambda: inside(server_image, number, *health).returncode == 0)
        assert asked("id", "-u").strip() == str(_USER)
        refused = inside(server_image, number, "touch", "/opt/framesift/x")
        assert "Read-only file system" in refused.stderr
        asked("framesift", "user", "add", "prometheus", "--role", "dataadmin", "--no-password")
        token = asked(
            "framesift", "token", "create", "metrics", "--user", "prometheus", "--scope", "read",
            "--json",
        )  # fmt: skip
        rows = asked(
            "framesift", "--server", "http://127.0.0.1:8008", "--token",
            json.loads(token)["token"], "sql", "select count(*) from t_car",
        )  # fmt: skip
        assert rows.strip().endswith(str(_FRAMES)), rows
        assert home.joinpath("demo", "home", "records").stat().st_uid == _USER
        os.kill(number, signal.SIGTERM)
        text = process.communicate(timeout=600)[0]
        assert process.returncode == 0, text


def test_the_worker_trains_on_two_processes(worker_image: Image, home: Path) -> None:
    """On two ranks of Horovod's wheel, as a user without a name; the model is the user's."""
    text = worker_image.said(
        home, *worker_image.config["Entrypoint"], "train", "streets", "--workers", "2",
        "--batch-size", "1", "--max-steps", "4", "--width", "96", "--height", "64",
        "--name", "first", FRAMESIFT_HOME="/srv/framesift/demo/home",
    )  # fmt: skip
    assert "job first: done" in text, text
    job = home / "demo" / "home" / "jobs" / "first"
    metrics = json.loads(next(job.rglob("metrics.json")).read_text("utf-8"))
    assert metrics["step"] == 4, metrics
    assert metrics["frames_seen"] == 2 * 4, metrics
    assert job.stat().st_uid == _USER
