"""Fixtures that tests of several folders share, and how patient all of them are."""

import fcntl
import gc
import json
import os
import re
import shutil
import signal
from collections.abc import Generator
from functools import cache
from pathlib import Path

import httpx._config
import httpx._transports.default
import httpx2._config
import httpx2._transports.default
import pytest
from hypothesis import HealthCheck, settings

from ingest.labels.class_list import ClassList
from tests.cheap_passwords import make_passwords_cheap
from tests.engine_threads import set_engine_threads, usual_engine_threads
from tests.patient_providers import wait_for_providers
from tests.profiling import Spent
from tests.templates import Templates

# A machine may stand still for seconds: no time limit is a test's, but where it says so. The same
# cases every time: a run fails for what was changed, and not for what was drawn.
settings.register_profile(
    "tests",
    deadline=None,
    derandomize=True,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
# Others every time, for `make test-fresh`, which loads it once this file is read.
settings.register_profile("fresh", settings.get_profile("tests"), derandomize=False)
# MANY cases at most for `make test-wide`, the same ones each time, else FEW; as many as each test
# asks for, new ones, for `make test-fresh`.
settings.register_profile("wide", settings.get_profile("tests"))
FEW, MANY = 15, 30
_SETTINGS = "_hypothesis_internal_use_settings"  # hypothesis has no other name for a test's own
settings.load_profile("tests")
make_passwords_cheap()
wait_for_providers()
set_engine_threads(usual_engine_threads())
# A shell starts what runs in its background with Ctrl-C ignored, and the commands that tests
# interrupt would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
for usual in (httpx._config.DEFAULT_TIMEOUT_CONFIG, httpx2._config.DEFAULT_TIMEOUT_CONFIG):
    vars(usual).update(connect=120.0, read=120.0, write=120.0, pool=120.0)  # instead of 5 s
# A client reads all authorities' certificates, 25 ms of CPU: all clients of a worker share them.
for transports in (httpx._transports.default, httpx2._transports.default):
    vars(transports)["create_ssl_context"] = cache(transports.create_ssl_context)


def pytest_configure(config: pytest.Config) -> None:
    """For `make test-profile`, what each test costs."""
    file = os.environ.get("FRAMESIFT_TEST_PROFILE")
    if file and (hasattr(config, "workerinput") or not config.getoption("numprocesses", None)):
        config.pluginmanager.register(Spent(Path(file)))


_HERE = Path(__file__).parent
_FOLDERS = {"attacks", "browser"}
"""Those that hold the suite of their name and nothing else."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave unread the files and folders of suites that ``-m "not (a or b)"`` leaves out.

    They are 65 files and two folders: 2 s of CPU in each worker.
    """
    left_out = re.search(r"\bnot \(([\w ]+)\)$", config.option.markexpr)
    if left_out is None:
        return None
    suites = left_out[1].split(" or ")
    if collection_path.suffix != ".py":
        return True if collection_path in (_HERE / name for name in _FOLDERS & {*suites}) else None
    of_file = re.search(r"^pytestmark = pytest\.mark\.(\w+)$", collection_path.read_text(), re.M)
    return True if of_file and of_file[1] in suites else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Import all tests without garbage collection, which took half of the time, nor later of it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(10_000)  # of 700: half of the collections' time
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Property tests with more than FEW cases run twice: with FEW, and wide."""
    for item in items:
        test = item.function if isinstance(item, pytest.Function) else None
        own: settings | None = getattr(test, _SETTINGS, None)
        if own is None or own.max_examples <= FEW or item.get_closest_marker("slow"):
            continue
        if settings.get_current_profile_name() == "wide":
            item.add_marker("wide")
            setattr(test, _SETTINGS, settings(own, max_examples=min(own.max_examples, MANY)))
        elif settings.get_current_profile_name() == "tests":
            setattr(test, _SETTINGS, settings(own, max_examples=FEW))


_ALL_CORES = ("catalog", "query")
"""Folders whose wide tests have DuckDB's usual threads: what is planned and locked by them."""


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Say how many threads the catalogs of a test take, and those of its processes."""
    folder = item.path.relative_to(_HERE).parts[0]
    has_all = folder in _ALL_CORES and item.get_closest_marker("wide") is not None
    set_engine_threads(None if has_all else usual_engine_threads())


_SAMPLE = _HERE.parent / "sample_data"


@pytest.fixture(scope="session")
def sample_root() -> Path:
    """The committed sample frames, in A2D2's layout."""
    return _SAMPLE / "a2d2"


@pytest.fixture(scope="session")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Templates:
    """Folders that other fixtures make once, and copy."""
    return Templates(tmp_path_factory.mktemp("templates"))


@pytest.fixture(scope="session")
def catalogued(sample_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the sample frames catalogued; not to be changed: tests copy it."""
    from tests.pipeline.homes import make_home  # imports all of api

    home = tmp_path_factory.mktemp("catalogued") / "home"
    if "PYTEST_XDIST_WORKER" not in os.environ:
        make_home(home, sample_root)
        return home
    # The first worker makes one, 1.3 s of CPU; nobody opens it, and each worker copies it.
    of_all = tmp_path_factory.getbasetemp().parent / "catalogued"
    of_all.mkdir(exist_ok=True)
    with (of_all / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (of_all / "done").exists():
            make_home(of_all / "home", sample_root)
            (of_all / "done").touch()
    shutil.copytree(of_all / "home", home)
    return home


@pytest.fixture(scope="session")
def palette() -> ClassList:
    """A2D2's 55 colours and 38 classes."""
    listed = _SAMPLE / "a2d2" / "camera_lidar_semantic" / "class_list.json"
    return ClassList.from_colours(json.loads(listed.read_bytes()))


@pytest.fixture(scope="session")
def a2d2_root() -> Path:
    """Real A2D2 frames, read where they are; the test skips where there are none."""
    root = os.environ.get("A2D2_ROOT")
    if not root:
        pytest.skip("A2D2_ROOT is unset: no real A2D2 frames here")
    if not Path(root).is_dir():
        pytest.skip(f"A2D2_ROOT={root} is no folder: no real A2D2 frames here")
    return Path(root)
