"""Wherever labels are counted, the catalog ends the same."""

import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask
import pytest
from dask_jobqueue import LSFCluster
from distributed import Client, LocalCluster

from catalog.errors import AlreadyExists, EngineFailed, InvalidInput
from catalog.records.scans import last_scan, recorded_problems
from catalog.records.sources import recorded_source
from catalog.records.tables import Source
from ingest.engines.choice import EngineChoice, open_engine
from ingest.engines.dask import DaskEngine
from ingest.scan.array_scan import collect_units, write_units
from ingest.scan.engine import Engine
from ingest.scan.scan import ScanOptions
from ingest.scan.scan_counts import ScanCounts
from ingest.scan.thread_engine import ThreadEngine
from ingest.scan.unit_files import UnitFolder
from tests.ingest.scene_folders import Home, add_frame, frame_key, make_tree, put
from tests.ingest.test_killed_scan import state
from tests.zygote import run_python

pytestmark = pytest.mark.wide

REPOSITORY = Path(__file__).parent.parent.parent
FRAMES = 12


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    """Two Dask workers of this machine."""
    with LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=50
    ) as cluster:
        yield cluster


@pytest.fixture
def client(cluster: LocalCluster) -> Iterator[Client]:
    """A client of them."""
    with Client(cluster) as client:
        client.wait_for_workers(2, timeout=300)
        yield client


def tree_of_everything(root: Path) -> Path:
    """Good frames, a bad label, an orphan, a label alone in a scene of its own, other files."""
    make_tree(root, FRAMES)
    put(root, frame_key("label", 3), b"no png")
    put(root, frame_key("label", 40), b"orphan")
    (root / frame_key("camera", 5)).unlink()
    add_frame(root, 1, [(255, 0, 0)] * 3)
    alone = frame_key("label", 7).replace("20180807", "20190807")
    put(root, alone, (root / frame_key("label", 7)).read_bytes())
    put(root, "readme.txt", b"text")
    return root


def change(root: Path) -> None:
    """What a second scan finds."""
    (root / frame_key("label", 2)).unlink()
    add_frame(root, 4, [(0, 255, 0)] * 9)
    add_frame(root, 30, [(255, 0, 0)])


def everything(home: Home) -> list[Any]:
    """What catalog and records hold of the files, whenever they were scanned."""
    problems = recorded_problems(home.records, source_id=1)
    return [state(home), sorted((p.kind, p.key, p.reason) for p in problems)]


@pytest.fixture
def expected(empty_home: Path, tmp_path: Path) -> tuple[Path, list[object], list[object]]:
    """A tree, and what a scan in threads makes of it, before and after the change."""
    root = tree_of_everything(tmp_path / "tree")
    (tmp_path / "reference").mkdir()
    reference = Home.at(tmp_path / "reference")
    source = reference.add(root)
    reference.scan(source, engine=ThreadEngine(1))
    first = everything(reference)
    untouched = tmp_path / "untouched"
    _copy(root, untouched)
    change(root)
    reference.scan(source, engine=ThreadEngine(1))
    second = everything(reference)
    _copy(untouched, root)
    return root, first, second


def _copy(source: Path, target: Path) -> None:
    subprocess.run(["rm", "-rf", str(target)], check=True)
    subprocess.run(["cp", "-a", str(source), str(target)], check=True)


@contextmanager
def engine_called(name: str, client: Client) -> Iterator[Engine]:
    if name == "dask":
        yield DaskEngine(client, frames_each=2)
    else:
        yield ThreadEngine(int(name), frames_each=3)


@pytest.mark.parametrize("name", ["5", "dask"])
def test_the_engine_makes_no_difference(
    home: Home, client: Client, expected: tuple[Path, list[object], list[object]], name: str
) -> None:
    """Row for row what a scan in one thread gives, problems too, for a first and a second scan."""
    root, first, second = expected
    source = home.add(root)
    with engine_called(name, client) as engine:
        counts = home.scan(source, engine=engine).counts
        assert (counts.frames, counts.labels_alone, counts.bad_files) == (FRAMES - 1, 1, 1)
        assert _without_times(everything(home)) == _without_times(first)
        change(root)
        assert home.scan(source, engine=engine).counts.frames == 2
    assert _without_times(everything(home)) == _without_times(second)


def _without_times(rows: list[Any]) -> list[Any]:
    """Copying a tree changes inodes and the times of change of its files' metadata."""
    (metaocean, view, *tags), problems = rows
    return [len(metaocean), len(view), tags, problems]


def test_members_of_an_archive(home: Home, client: Client, tmp_path: Path) -> None:
    """A worker reads an archive's members by their place in it: it needs no index."""
    root = make_tree(tmp_path / "tree", FRAMES)
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        archive.add(root, "")
    source = home.add(tmp_path / "a.tar")
    index = tmp_path / "index"
    result = home.scan(source, engine=DaskEngine(client, 5), index_folder=index)
    assert result.counts.frames == FRAMES
    assert home.rows("SELECT sum(value::INT) FROM t_car") == [(sum(range(1, FRAMES + 1)),)]
    write = write_units(
        home.store, home.records, source, ScanOptions(full=True, index_folder=index),
        tmp_path / "units", unit_frames=FRAMES,
    )  # fmt: skip
    (index / next(os.walk(index))[2][0]).unlink()
    assert write >= 1
    assert UnitFolder(tmp_path / "units").count(1) == FRAMES


def test_a_killed_worker_is_survived(home: Home, client: Client, tmp_path: Path) -> None:
    """SIGKILL of one worker in the middle: its units are counted by another."""
    source = home.add(make_tree(tmp_path / "tree", 40))
    pids = list(client.run(os.getpid).values())

    def kill(counts: ScanCounts) -> None:
        if counts.frames >= 5 and pids:
            os.kill(pids.pop(), signal.SIGKILL)
            pids.clear()

    assert home.scan(source, engine=DaskEngine(client, 1), progress=kill).counts.frames == 40
    assert not pids
    rows = home.rows("SELECT value FROM t_car ORDER BY value::INT")
    assert rows == [(str(n),) for n in range(1, 41)]


def test_workers_that_always_die_end_the_scan(home: Home, tmp_path: Path) -> None:
    """A unit that no worker survives ends the scan with its name; the next one goes on."""
    source = home.add(make_tree(tmp_path / "tree", 6))
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        LocalCluster(
            n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=50
        ) as cluster,
        Client(cluster) as client,
    ):

        class Deadly(DaskEngine):
            def _submit(self, unit: bytes, key: str) -> object:
                return self.client.submit(_die, unit, key=key, pure=False)

        with pytest.raises(EngineFailed, match=r"count-.*: the workers that counted it died"):
            home.scan(source, engine=Deadly(client))
    scan = last_scan(home.records, source.id)
    assert scan is not None
    assert scan.state == "failed"
    assert home.scan(source).counts.frames == 6


def _die(_unit: bytes) -> bytes:
    os.kill(os.getpid(), signal.SIGKILL)
    return b""


def test_a_scheduler_that_goes_away(home: Home, tmp_path: Path) -> None:
    """A clear error, not a traceback of a network library; the scan is recorded as failed."""
    source = home.add(make_tree(tmp_path / "tree", 30))
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--no-dashboard"]
    port_file = tmp_path / "scheduler.json"
    scheduler = subprocess.Popen(
        [*command, "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(port_file)],
        stderr=subprocess.DEVNULL,
    )
    worker = None
    try:
        while not port_file.exists():
            assert scheduler.poll() is None, "the scheduler ended"
            time.sleep(0.05)
        worker = subprocess.Popen(
            [sys.executable, "-m", "distributed.cli.dask_worker", "--scheduler-file",
             str(port_file), "--no-dashboard", "--nthreads", "1"],
            stderr=subprocess.DEVNULL, cwd=REPOSITORY,
        )  # fmt: skip
        with Client(scheduler_file=str(port_file), timeout=120) as client:
            client.wait_for_workers(1, timeout=300)
            address = client.scheduler.address

            def end(counts: ScanCounts) -> None:
                if counts.frames >= 3:
                    scheduler.kill()

            with pytest.raises(EngineFailed, match=r"scheduler is gone|does not answer"):
                home.scan(source, engine=DaskEngine(client, 1), progress=end)
    finally:
        scheduler.kill()
        scheduler.wait()
        if worker is not None:
            worker.kill()
            worker.wait()
    refused = EngineChoice(engine="dask", scheduler=address, insecure=True)
    with pytest.raises(EngineFailed, match="does not answer"), open_engine(refused):
        pass
    assert home.scan(source).counts.frames == 30


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        (EngineChoice("mpi"), "engine 'mpi': expected one of threads, dask"),
        (EngineChoice(scheduler="tcp://x:1"), "add --engine dask"),
        (EngineChoice("dask", cluster="pbs"), "cluster 'pbs': expected one of local, slurm, lsf"),
        (EngineChoice("dask", scheduler="tcp://x:1", cluster="lsf"), "exclude each other"),
        (EngineChoice("dask", scheduler="tcp://x:1"), "expected tls://host:port.*--insecure"),
        (EngineChoice("dask", scheduler="x:1"), "expected tls://host:port.*--insecure"),
        (EngineChoice(workers=-1), "workers: got -1"),
    ],
)
def test_engines_that_cannot_be(choice: EngineChoice, message: str) -> None:
    """A clear error for each."""
    with pytest.raises(InvalidInput, match=message), open_engine(choice):
        pass


@pytest.mark.attacks
def test_a_cluster_of_this_machine_answers_its_own_client_only(home: Home, tmp_path: Path) -> None:
    """Other users reach the ports of scheduler and worker; without the key neither answers."""
    source = home.add(make_tree(tmp_path / "tree", 3))
    with open_engine(EngineChoice("dask", workers=1)) as engine:
        assert isinstance(engine, DaskEngine)
        assert home.scan(source, engine=engine).counts.frames == 3
        information = engine.client.scheduler_info()
        addresses = [information["address"], *information["workers"]]
        assert len(addresses) == 2
        for address in addresses:
            assert address.startswith("tls://127.0.0.1:")
            assert re.match("SSL|Connection|BrokenPipe", _refusal(address))
            with pytest.raises((OSError, TypeError)):
                Client(address.replace("tls:", "tcp:"), timeout=5)


def _refusal(address: str) -> str:
    """What a client hears that speaks TLS and has no certificate."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    address_pair = ("127.0.0.1", int(address.rpartition(":")[2]))
    try:
        with (
            socket.create_connection(address_pair, 60) as plain,
            context.wrap_socket(plain) as client,
        ):
            client.sendall(bytes(8))
            return str(client.recv(100))
    except OSError as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize(("cluster", "command"), [("slurm", "sbatch"), ("lsf", "bsub")])
def test_where_no_jobs_can_be_submitted(
    cluster: str, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Said at once, not after waiting for workers that cannot come."""
    monkeypatch.setenv("PATH", "/nowhere")
    choice = EngineChoice("dask", cluster=cluster)
    with pytest.raises(EngineFailed, match=f"no {command} here"), open_engine(choice):
        pass


def test_the_script_of_an_lsf_job() -> None:
    """What bsub would be given: a Dask worker of this Python, with the queue of Dask's settings."""
    with dask.config.set({"jobqueue.lsf.queue": "night", "jobqueue.lsf.use-stdin": True}):
        cluster = LSFCluster(cores=1, processes=1, memory="2 GiB", lsf_units="MB")
        script = cluster.job_script()
        cluster.close()
    assert "#BSUB -q night" in script
    assert f"{sys.executable} -m distributed.cli.dask_worker" in script


def units_of(home: Home, source: Source, folder: Path, unit_frames: int = 2) -> int:
    return write_units(
        home.store, home.records, source, ScanOptions(), folder, unit_frames=unit_frames
    )


def collect(home: Home, source: Source, folder: Path) -> ScanCounts:
    return collect_units(home.store, home.records, source, ScanOptions(), folder).counts


def test_a_job_array_without_an_engine(
    home: Home, expected: tuple[Path, list[object], list[object]], tmp_path: Path
) -> None:
    """Units written, each counted by a process of its own (some twice), collected: the same."""
    root, first, second = expected
    source = home.add(root)
    for number, unit in enumerate((first, second)):
        folder = tmp_path / f"units-{number}"
        units = units_of(home, source, folder)
        assert home.rows("SELECT count(*) FROM t_car") == [(number * (FRAMES - 1),)]
        elements = [*range(1, units + 1), 1]
        for element in elements:
            done = run_python("-m", "ingest.scan.unit_files", folder, str(element), check=True)
            assert done.stdout.startswith(f"unit {element}: ")
        collect(home, source, folder)
        assert _without_times(everything(home)) == _without_times(unit)
        if number == 0:
            change(root)
    scan = last_scan(home.records, source.id)
    assert scan is not None
    assert (scan.state, scan.counts["frames"]) == ("done", 2)


def test_units_that_cannot_be_collected(home: Home, tmp_path: Path) -> None:
    """Uncounted, collected before, overtaken by another scan, of another class list: refused."""
    root = make_tree(tmp_path / "tree", 4)
    source = home.add(root)
    folder = tmp_path / "units"
    with pytest.raises(InvalidInput, match="holds no units"):
        collect(home, source, folder)
    assert units_of(home, source, folder) == 3
    with pytest.raises(AlreadyExists, match="units"):
        units_of(home, source, folder)
    with pytest.raises(InvalidInput, match=r"3 of 3 units are not counted \(1, 2, 3\)"):
        collect(home, source, folder)
    units = UnitFolder(folder)
    with pytest.raises(InvalidInput, match="units are 1 to 3"):
        units.count(4)
    for number in (1, 2, 3):
        units.count(number)
    home.scan(source)
    with pytest.raises(InvalidInput, match="another scan of a2d2 began"):
        collect(home, source, folder)
    put(root, "class_list.json", b'{"#ff0000": "Car"}')
    other = tmp_path / "other"
    units_of(home, source, other)
    for number in range(1, UnitFolder(other).header()["units"] + 1):
        UnitFolder(other).count(number)
    put(root, "class_list.json", b'{"#ff0000": "Bus"}')
    with pytest.raises(InvalidInput, match="class list changed"):
        collect(home, source, other)


def test_units_that_nobody_collects(home: Home, tmp_path: Path) -> None:
    """Written for another class list and then forgotten: the next scan counts everything again."""
    root = make_tree(tmp_path / "tree", 4)
    source = home.add(root)
    home.scan(source)
    put(root, "class_list.json", b'{"#ff0000": "Bus"}')
    units_of(home, source, tmp_path / "units")
    assert home.scan(recorded_source(home.records, "a2d2")).counts.frames == 4
    assert home.rows("SELECT sum(value::INT) FROM t_bus") == [(10,)]


def test_an_element_says_what_is_wrong(home: Home, tmp_path: Path) -> None:
    """A source that is not mounted there, a damaged unit: exit 1 and one line, and no counts."""
    root = make_tree(tmp_path / "tree", 2)
    folder = tmp_path / "units"
    units_of(home, home.add(root), folder)
    root.rename(tmp_path / "away")
    for message in ("no such folder; is the source mounted?", "is damaged"):
        done = run_python("-m", "ingest.scan.unit_files", folder, "1")
        assert done.returncode == 1
        assert message in done.stderr
        assert done.stderr.count("\n") == 1
        (folder / "unit-000001.z").write_bytes(b"cut")
    assert UnitFolder(folder).missing() == [1, 2]
