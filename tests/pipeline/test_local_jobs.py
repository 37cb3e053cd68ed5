"""Jobs on this machine: real runners, real commands, real signals."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from catalog.errors import InvalidInput, StorageError, UnknownName
from pipeline.job_state import FINISHED
from pipeline.jobs.backends.interface import JobStatus
from pipeline.jobs.backends.local import LocalBackend
from pipeline.jobs.backends.process import ProcessId
from pipeline.jobs.backends.registry import backend
from pipeline.jobs.backends.turn import turn
from pipeline.jobs.environment import Need, inherited
from pipeline.jobs.queue import JobQueue, Slots
from pipeline.jobs.request import JobPaths, JobRequest, Stage, read_json
from pipeline.jobs.resources import Resources
from tests.pipeline.homes import REPOSITORY
from tests.zygote import Forked

pytestmark = pytest.mark.wide

LOCAL = LocalBackend()


def shell(script: str) -> tuple[str, ...]:
    """A command that runs a shell script."""
    return ("/bin/sh", "-c", script)


def submit(
    folder: Path,
    *stages: Stage,
    parallel: int = 2,
    attempt: int = 1,
    queue: JobQueue | None = None,
    **environment: str,
) -> str:
    """Start a job in the folder; its handle."""
    folder.mkdir(parents=True, exist_ok=True)
    request = JobRequest("job", "train", stages, environment, parallel, attempt=attempt)
    return LOCAL.submit(request, JobPaths(folder), queue or JobQueue(folder), "name")


def eventually(condition: Callable[[], object], seconds: float = 120.0) -> None:
    """Wait until it holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come to hold"
        time.sleep(0.02)


def local_status(handle: str, paths: JobPaths) -> JobStatus:
    """Where one job stands."""
    return LOCAL.statuses({handle: paths})[handle]


def ended(handle: str, folder: Path) -> JobStatus:
    """The status once the job has ended."""
    eventually(lambda: local_status(handle, JobPaths(folder)).state in FINISHED)
    return local_status(handle, JobPaths(folder))


def runs(pid_file: Path) -> bool:
    """Whether the process whose number a script wrote still runs."""
    return ProcessId.of(int(pid_file.read_text())).start_ticks != 0


def test_a_stage_that_only_saves_time_may_fail(tmp_path: Path) -> None:
    """A killed one, or the real one that finds nothing to prepare; the next runs all the same."""
    preparing = (
        sys.executable, "-P", "-m", "pipeline.prepared.before_training", str(tmp_path), "40x32",
        "--job", "job",
    )  # fmt: skip
    killed = Stage("first", (shell("kill -9 $$"),), optional=True)
    nothing = Stage("prepare", (preparing,))
    after = Stage("train", (shell("echo trained"),))
    handle = submit(tmp_path / "job", killed, nothing, after)
    status, paths = ended(handle, tmp_path / "job"), JobPaths(tmp_path / "job")
    assert (status.state, status.error) == ("done", "")
    assert "no prepared form of 40x32: " in paths.log("prepare", 0).read_text()
    assert paths.log("train", 0).read_text() == "trained\n"


def test_stages_run_in_order_and_commands_leave_logs(tmp_path: Path) -> None:
    """The second stage sees what every command of the first left; output goes to logs."""
    first = Stage(
        "first", tuple(shell(f"sleep 0.1; echo made {n}; echo {n} > {tmp_path}/{n}") for n in "abc")
    )
    second = Stage("second", (shell(f"cat {tmp_path}/a {tmp_path}/b {tmp_path}/c; echo $WHO"),))
    handle = submit(tmp_path / "job", first, second, WHO="me")
    status = ended(handle, tmp_path / "job")
    assert (status.state, status.error) == ("done", "")
    assert status.started is not None
    assert status.finished is not None
    assert status.started <= status.finished
    paths = JobPaths(tmp_path / "job")
    assert paths.log("first", 1).read_text() == "made b\n"
    assert paths.log("second", 0).read_text() == "a\nb\nc\nme\n"


def test_so_many_commands_run_at_once_and_no_more(tmp_path: Path) -> None:
    """With parallel=2, two of five run at any time."""
    # The first ones wait for each other, and who looks then still sees the other.
    script = f"""
        cd {tmp_path}; touch $$.on
        for _ in $(seq 2400); do
            [ ! -e met ] || break
            [ $(ls *.on | wc -l) -lt 2 ] || touch met
            sleep 0.05
        done
        ls *.on | wc -l; sleep 0.15; rm $$.on
    """
    handle = submit(tmp_path / "job", Stage("many", (shell(script),) * 5), parallel=2)
    assert ended(handle, tmp_path / "job").state == "done"
    paths = JobPaths(tmp_path / "job")
    seen = [int(paths.log("many", index).read_text()) for index in range(5)]
    assert max(seen) == 2


def test_a_failing_command_gives_its_own_error_and_ends_its_siblings(tmp_path: Path) -> None:
    """The last `error:` line is the reason; nothing of the stage, or after it, runs on."""
    bad = shell(
        f"while [ ! -s {tmp_path}/pid ]; do sleep 0.02; done; echo 'working'; "
        "echo '[1]<stderr>:error: no such manifest' >&2; exit 1"
    )
    sibling = shell(f"echo $$ > {tmp_path}/pid; exec sleep 60")
    after = Stage("after", (shell(f"touch {tmp_path}/after"),))
    handle = submit(tmp_path / "job", Stage("both", (sibling, bad)), after)
    status = ended(handle, tmp_path / "job")
    assert status.state == "failed"
    log = JobPaths(tmp_path / "job").log("both", 1)
    assert status.error == f"no such manifest (both 1, log {log})"
    assert not runs(tmp_path / "pid")
    assert not (tmp_path / "after").exists()


def test_independent_commands_end_none_of_the_others(tmp_path: Path) -> None:
    """The first that failed gives the reason; the others come to their end; nothing follows."""
    scripts = ("echo error: bad frame; exit 1", *(f"touch {tmp_path}/{n}" for n in "abc"))
    first = Stage("shards", tuple(shell(script) for script in scripts), independent=True)
    after = Stage("after", (shell(f"touch {tmp_path}/after"),))
    status = ended(submit(tmp_path / "job", first, after, parallel=1), tmp_path / "job")
    assert (status.state, status.error.partition(" (")[0]) == ("failed", "bad frame")
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("exit 3", "only 0 ended with exit code 3; see "),
        ("kill -9 $$", "only 0 was killed by signal 9 (out of memory?); see "),
        ("exit 137", "only 0 was killed by signal 9 (out of memory?); see "),
        (
            "echo 'error: another worker ended'; echo 'Exit code: -9'; exit 247",
            "a worker of only 0 was killed by signal 9 (out of memory?); see ",
        ),
    ],
)
def test_a_command_that_says_nothing_is_described(tmp_path: Path, script: str, reason: str) -> None:
    """Exit code or signal, also that of a rank by its launcher's word, and the log's place."""
    status = ended(submit(tmp_path, Stage("only", (shell(script),))), tmp_path)
    assert status.state == "failed"
    assert status.error.startswith(reason)


def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    """A missing launcher is the job's error, not a traceback in the runner's log."""
    handle = submit(tmp_path, Stage("train", (("/no/such/horovodrun", "-np", "2"),)))
    status = ended(handle, tmp_path)
    assert status.state == "failed"
    assert status.error == "train: /no/such/horovodrun: No such file or directory"
    assert (tmp_path / "logs" / "runner.log").read_text() == ""


STUBBORN = """
trap '' TERM
echo $$ > {0}/parent
sh -c 'trap "" TERM; echo $$ > {0}/child; while :; do sleep 0.1; done' &
setsid sh -c 'echo $$ > {0}/stranger; while :; do sleep 0.1; done' &
while [ ! -s {0}/stranger ] || [ ! -s {0}/child ]; do sleep 0.02; done
echo ready > {0}/ready
{1}
"""


@pytest.mark.parametrize("last", ["while :; do sleep 0.1; done", "exit 1", "exit 0"])
def test_nothing_a_command_started_outlives_its_stage(tmp_path: Path, last: str) -> None:
    """Cancelled, failed or done: children that ignore SIGTERM and sessions of their own end too."""
    patient = "import pipeline.jobs.backends.local_runner as r, sys; from pathlib import Path\n"
    patient += "r._GRACE_S = r._CHECKPOINT_S = 0.3; folder = Path(sys.argv[1])\n"
    patient += "sys.exit(r.main('name', folder, r.Slots(folder / 'slots', 1)))"
    script = STUBBORN.format(tmp_path, last)
    paths = JobPaths(tmp_path / "job")
    paths.logs.mkdir(parents=True)
    request = JobRequest("job", "train", (Stage("only", (shell(script),)),))
    paths.request.write_text(json.dumps(request.to_json()))
    runner = Forked(["-c", patient, str(paths.folder)])
    handle = str(ProcessId.of(runner.pid))
    eventually((tmp_path / "ready").exists)
    if last.startswith("while"):
        LOCAL.cancel(handle, paths)
    runner.wait(120)
    state = local_status(handle, paths).state
    assert state == {"exit 1": "failed", "exit 0": "done"}.get(last, "cancelled")
    for name in ("parent", "child", "stranger"):
        assert not runs(tmp_path / name), name


def test_cancel_ends_the_job(tmp_path: Path) -> None:
    """Running commands end, later stages do not begin, and a second cancel does nothing."""
    stages = (
        Stage("one", (shell(f"echo $$ > {tmp_path}/pid; exec sleep 60"),)),
        Stage("two", (shell(f"touch {tmp_path}/two"),)),
    )
    handle = submit(tmp_path / "job", *stages)
    eventually(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
    LOCAL.cancel(handle, JobPaths(tmp_path / "job"))
    status = ended(handle, tmp_path / "job")
    assert (status.state, status.error) == ("cancelled", "cancelled")
    assert status.finished is not None
    assert not runs(tmp_path / "pid")
    assert not (tmp_path / "two").exists()
    LOCAL.cancel(handle, JobPaths(tmp_path / "job"))
    assert local_status(handle, JobPaths(tmp_path / "job")).state == "cancelled"


LAUNCHER = """#!/bin/sh
trap 'kill -9 $worker; exit 1' TERM
setsid "$@" &
worker=$!
wait $worker
"""
WORKER = """
trap 'sleep 0.5; echo kept > {0}/kept; exit 3' TERM
touch {0}/works
while :; do sleep 0.05; done
"""


def test_a_cancelled_program_may_keep_what_it_has(tmp_path: Path) -> None:
    """It is asked to end before its launcher is, which would kill it at once."""
    launcher = tmp_path / "launcher"
    launcher.write_text(LAUNCHER)
    launcher.chmod(0o755)
    stage = Stage("only", ((str(launcher), *shell(WORKER.format(tmp_path))),))
    handle = submit(tmp_path / "job", stage)
    eventually((tmp_path / "works").exists)
    LOCAL.cancel(handle, JobPaths(tmp_path / "job"))
    assert ended(handle, tmp_path / "job").state == "cancelled"
    assert (tmp_path / "kept").exists()


def test_a_cancel_right_after_the_start_counts(tmp_path: Path) -> None:
    """A runner that has only begun, and one that never got to read its request, are cancelled."""
    handle = submit(tmp_path, Stage("only", (shell("sleep 60"),)))
    LOCAL.cancel(handle, JobPaths(tmp_path))
    assert ended(handle, tmp_path).state == "cancelled"


def test_a_killed_runner_is_a_failed_job_and_its_commands_end(tmp_path: Path) -> None:
    """SIGKILL of the runner: not running for ever, and its orphaned commands go with it."""
    handle = submit(
        tmp_path / "job",
        Stage("only", (shell(f"echo $$ > {tmp_path}/pid; exec sleep 60"),)),
    )
    eventually(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
    assert local_status(handle, JobPaths(tmp_path / "job")).state == "running"
    os.kill(ProcessId.parse(handle).pid, signal.SIGKILL)
    status = ended(handle, tmp_path / "job")
    assert status.state == "failed"
    assert "exited without writing its final status" in status.error
    assert status.started is not None
    eventually(lambda: not runs(tmp_path / "pid"))


def test_the_job_outlives_its_submitter(tmp_path: Path) -> None:
    """The submitting process ends at once, and its session with it; the job is done later."""
    code = (
        "import sys; from pathlib import Path\n"
        "from tests.pipeline.test_local_jobs import *\n"
        "wait = 'for _ in $(seq 2400); do [ ! -e %s/go ] || break; sleep 0.05; done; echo late'\n"
        "print(submit(Path(sys.argv[1]), Stage('only', (shell(wait % sys.argv[1]),))))"
    )
    submitter = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        cwd=REPOSITORY, capture_output=True, text=True, check=True, start_new_session=True,
    )  # fmt: skip
    handle = submitter.stdout.strip()
    assert local_status(handle, JobPaths(tmp_path)).state not in FINISHED
    (tmp_path / "go").touch()
    assert ended(handle, tmp_path).state == "done"
    assert JobPaths(tmp_path).log("only", 0).read_text() == "late\n"


def test_a_job_whose_handle_was_lost_is_still_found(tmp_path: Path) -> None:
    """The runner says who it is, so that a submitter that died early does not lose it."""
    handle = submit(tmp_path, Stage("only", (shell("sleep 60"),)))
    eventually(lambda: read_json(JobPaths(tmp_path).status).get("state") == "running")
    assert local_status("", JobPaths(tmp_path)).state == "running"
    assert read_json(JobPaths(tmp_path).status)["hosts"] == [socket.gethostname()]
    assert LOCAL.find("name", JobPaths(tmp_path)) == handle
    assert LOCAL.find("framesift-job-2", JobPaths(tmp_path)) is None
    (tmp_path / "status.json").unlink()  # as before the runner's first word
    assert LOCAL.find("name", JobPaths(tmp_path)) == handle
    assert LOCAL.find("nam", JobPaths(tmp_path)) is None
    LOCAL.cancel("", JobPaths(tmp_path))
    assert ended(handle, tmp_path).state == "cancelled"


def test_status_json_is_never_half_written(tmp_path: Path) -> None:
    """A reader that looks all the time sees whole documents only."""
    bad: list[str] = []
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            text = (tmp_path / "status.json").read_text()
            try:
                json.loads(text)
            except ValueError:
                bad.append(text)

    stages = [Stage(f"stage-{number}", (("/bin/true",),)) for number in range(12)]
    handle = submit(tmp_path, *stages)
    reader = threading.Thread(target=look)
    reader.start()
    assert ended(handle, tmp_path).state == "done"
    done.set()
    reader.join()
    assert bad == []
    assert not list(tmp_path.glob("*.part"))


def test_the_users_own_folders_are_not_taken_for_ours(tmp_path: Path) -> None:
    """A folder named pipeline where the user stands does not get in the way of the runner."""
    (tmp_path / "pipeline").mkdir()
    (tmp_path / "pipeline" / "__init__.py").write_text("raise SystemExit('not ours')")
    code = (
        "import sys; sys.path.insert(0, sys.argv[2]); from pathlib import Path\n"
        "from pipeline.jobs.backends.local import LocalBackend\n"
        "from pipeline.jobs.queue import JobQueue\n"
        "from pipeline.jobs.request import JobPaths, JobRequest, Stage\n"
        "request = JobRequest('j', 'train', (Stage('only', (('/bin/true',),)),))\n"
        "folder = Path(sys.argv[1])\n"
        "print(LocalBackend().submit(request, JobPaths(folder), JobQueue(folder), 'name'))"
    )
    job = tmp_path / "job"
    job.mkdir()
    submitter = subprocess.run(
        [sys.executable, "-P", "-c", code, str(job), str(REPOSITORY)],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert ended(submitter.stdout.strip(), job).state == "done"


def test_a_number_used_again_is_another_process(tmp_path: Path) -> None:
    """A process is its number and its start: another start is not it, and gets no signal."""
    with subprocess.Popen(["/bin/sleep", "60"]) as process:
        it = ProcessId.of(process.pid)
        assert it.is_alive()
        assert ProcessId.parse(str(it)) == it
        later = ProcessId(it.pid, it.start_ticks + 1)
        assert not later.is_alive()
        later.signal(signal.SIGKILL)
        time.sleep(0.05)
        assert process.poll() is None
        it.signal(signal.SIGKILL)
        eventually(lambda: not it.is_alive())  # a zombie until it is waited for
    assert ProcessId.of(process.pid).start_ticks == 0
    it.signal(signal.SIGKILL)
    assert not ProcessId.parse("").is_alive()
    assert not ProcessId(0, 0).is_alive()


def test_a_folder_that_cannot_be_written_is_a_storage_error(tmp_path: Path) -> None:
    """The folder is named; no process is left behind."""
    (tmp_path / "file").touch()
    queue = JobQueue(tmp_path / "file")
    with pytest.raises(StorageError, match="the job cannot be started: Not a directory"):
        LOCAL.submit(JobRequest("j", "train", ()), JobPaths(tmp_path / "file" / "job"), queue, "j")


def test_an_unknown_backend_names_the_known_ones() -> None:
    """Backends are found by name."""
    assert backend("local").name == "local"
    with pytest.raises(UnknownName, match="unknown backend 'lokal': did you mean local"):
        backend("lokal")


SECRETS = {
    "FRAMESIFT_CATALOG_METADATA": "postgresql://u:hidden@db/catalog",
    "FRAMESIFT_RECORDS": "postgresql://u:hidden@db/records",
    "FRAMESIFT_SECRET_KEY": "hidden", "FRAMESIFT_TOKEN": "hidden", "PGPASSWORD": "hidden",
    "AWS_SECRET_ACCESS_KEY": "hidden", "SLURM_JWT": "hidden", "WANDB_API_KEY": "hidden",
    "HTTPS_PROXY": "http://u:hidden@proxy", "KAFKA_PASSWORD": "hidden", "OTHER": "hidden",
}  # fmt: skip


def test_a_training_gets_no_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither its command nor its runner, as /proc shows them; what training needs, they get."""
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/opt/cuda")
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    stage = Stage("only", (shell("env; tr '\\0' '\\n' < /proc/$PPID/environ"),))
    handle = submit(tmp_path, stage, queue=JobQueue(tmp_path, inherits=("WANDB_*",)), GIVEN="1")
    assert ended(handle, tmp_path).state == "done"
    lines = JobPaths(tmp_path).log("only", 0).read_text().splitlines()
    assert {line for line in lines if "hidden" in line} == {"WANDB_API_KEY=hidden"}
    for line in ("CUDA_VISIBLE_DEVICES=1", "LD_LIBRARY_PATH=/opt/cuda", "GIVEN=1"):
        assert line in lines
    # Our own Python leads, as no other environment is active.
    assert f"PATH={Path(sys.executable).parent}:{os.environ['PATH']}" in lines


@pytest.mark.parametrize(
    ("needs", "expected"),
    [
        ((), set()),
        (
            ("sources",),
            {"FRAMESIFT_HOME", "FRAMESIFT_RECORDS", "FRAMESIFT_SECRET_KEY", "PGPASSWORD"}
            | {"AWS_SECRET_ACCESS_KEY", "HTTPS_PROXY"},
        ),
        (
            ("catalog",),
            {"FRAMESIFT_HOME", "FRAMESIFT_RECORDS", "FRAMESIFT_CATALOG_METADATA", "PGPASSWORD"}
            | {"AWS_SECRET_ACCESS_KEY", "HTTPS_PROXY"},
        ),
    ],
)
def test_a_command_gets_the_keys_that_it_needs(needs: tuple[Need, ...], expected: set[str]) -> None:
    """A staging opens sources and no catalog; none asks a server by its starter's token."""
    environment = {**SECRETS, "FRAMESIFT_HOME": "/h", "FRAMESIFT_SERVER": "https://s"}
    assert inherited(environment, needs, ()).keys() == expected
    assert inherited(environment, needs, ("OTH*",)).keys() == {*expected, "OTHER"}


def test_a_relative_python_path_means_the_starters_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`PYTHONPATH=. framesift train`: the job, which runs in its own folder, imports from it."""
    (tmp_path / "my_nets.py").write_text("print('imported')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", f".:nets:{REPOSITORY}")
    assert inherited(os.environ, (), ())["PYTHONPATH"] == f"{tmp_path}:{tmp_path}/nets:{REPOSITORY}"
    imports = Stage("only", ((sys.executable, "-c", "import my_nets"),))
    assert ended(submit(tmp_path / "job", imports), tmp_path / "job").state == "done"


def test_jobs_wait_for_a_slot_in_their_order(tmp_path: Path) -> None:
    """One slot: two wait and say for what; one of them is killed; the next begins as it is free."""
    queue = JobQueue(tmp_path, training_slots=1)
    stage = Stage("only", (shell("exec sleep 600"),))

    def begun(name: str) -> str:
        handle = submit(tmp_path / name, stage, queue=queue)
        eventually(lambda: read_json(paths(name).status).get("waits") or state(name) == "running")
        return handle

    def paths(name: str) -> JobPaths:
        return JobPaths(tmp_path / name)

    def state(name: str) -> str:
        return str(read_json(paths(name).status).get("state"))

    handles = {name: begun(name) for name in ("first", "killed", "second", "third")}
    assert [state(name) for name in handles] == ["running", "queued", "queued", "queued"]
    status = local_status(handles["third"], paths("third"))
    assert (status.state, status.waits) == ("queued", "for one of 1 slot; 2 came before it")
    assert status.started is None
    # Scans wait for no training.
    scan = JobRequest("scan", "scan", (Stage("only", (shell("exit 0"),)),))
    (tmp_path / "scan").mkdir()
    assert (
        ended(LOCAL.submit(scan, paths("scan"), queue, "scan"), tmp_path / "scan").state == "done"
    )
    os.kill(ProcessId.parse(handles["killed"]).pid, signal.SIGKILL)
    LOCAL.cancel(handles["first"], paths("first"))
    eventually(lambda: state("second") == "running")
    eventually(lambda: read_json(paths("third").status).get("waits") == "for one of 1 slot")
    LOCAL.cancel(handles["third"], paths("third"))
    assert ended(handles["third"], tmp_path / "third").state == "cancelled"
    LOCAL.cancel(handles["second"], paths("second"))
    assert ended(handles["second"], tmp_path / "second").state == "cancelled"
    assert not list((queue.slots("train").folder / "slot.waiting").iterdir())


def test_all_that_run_are_counted_whatever_their_slot(tmp_path: Path) -> None:
    """Where fewer may run than before, a free slot below a taken one is no place; of two, it is."""
    fewer, more = Slots(tmp_path, 1), Slots(tmp_path, 2)
    with turn(more) as place:
        first, second = place.slot(), place.slot()
        assert first is not None
        assert second is not None
        assert place.slot() is None
        os.close(first)
    with turn(fewer) as place:
        assert place.slot() is None
        with turn(more) as later:
            assert later.slot() is None  # one came before it
    with turn(more) as place:
        again = place.slot()
        assert again is not None
        os.close(again)
    os.close(second)
    with turn(fewer) as place:
        last = place.slot()
        assert last is not None
        os.close(last)


def test_more_slots_run_more_jobs_and_fewer_fewer(tmp_path: Path) -> None:
    """Each submission brings the number that counts for it."""
    stage = Stage("only", (shell("exec sleep 600"),))

    def begun(name: str, slots: int) -> str:
        return submit(tmp_path / name, stage, queue=JobQueue(tmp_path, training_slots=slots))

    def state(name: str) -> str:
        return str(read_json(JobPaths(tmp_path / name).status).get("state"))

    handles = {"a": begun("a", 2), "b": begun("b", 2)}
    eventually(lambda: state("a") == state("b") == "running")
    handles["c"] = begun("c", 1)
    eventually(lambda: read_json(JobPaths(tmp_path / "c").status).get("waits"))
    for name in "ab":
        assert state("c") == "queued"
        LOCAL.cancel(handles[name], JobPaths(tmp_path / name))
        ended(handles[name], tmp_path / name)
    eventually(lambda: state("c") == "running")
    LOCAL.cancel(handles["c"], JobPaths(tmp_path / "c"))
    ended(handles["c"], tmp_path / "c")


def test_jobs_have_gpus_and_cores_for_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that a job asks for, or it waits; a shard sees its own, ranks those of their job."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,MIG-a/1,2")
    queue = JobQueue(tmp_path, training_slots=3)
    wait = f"until [ -e {tmp_path}/go ]; do sleep 0.1; done"
    says = shell(f"echo gpus=$CUDA_VISIBLE_DEVICES cores=$(nproc); {wait}")
    handles: dict[str, str] = {}

    def begin(name: str, resources: Resources, commands: int = 1) -> JobPaths:
        paths = JobPaths(tmp_path / name)
        paths.folder.mkdir()
        stage = Stage("only", (says,) * commands)
        request = JobRequest(name, "train", (stage,), resources=resources)
        handles[name] = LOCAL.submit(request, paths, queue, name)
        return paths

    def said(paths: JobPaths, index: int = 0) -> str:
        log = paths.log("only", index)
        eventually(lambda: log.exists() and "cores=" in log.read_text())
        return log.read_text().split()[0]

    shards = begin("shards", Resources(ranks=2, gpus=1), 2)
    assert {said(shards), said(shards, 1)} == {"gpus=0", "gpus=MIG-a/1"}
    large = begin("large", Resources(ranks=2, gpus=1))
    eventually(lambda: local_status(handles["large"], large).waits == "for 2 free GPUs of 3")
    assert local_status(handles["large"], large).state == "queued"
    LOCAL.cancel(handles["shards"], shards)
    assert said(large) == "gpus=0,MIG-a/1"
    one = begin("one", Resources(gpus=1, cores=1))
    assert said(one) == "gpus=2"
    assert one.log("only", 0).read_text().split()[1] == "cores=1"
    assert said(begin("rest", Resources())) == "gpus=0,MIG-a/1,2"  # which asks for none
    (tmp_path / "go").touch()
    for name in ("large", "one", "rest"):
        assert ended(handles[name], tmp_path / name).state == "done"
    with pytest.raises(InvalidInput, match="GPUs: a job of 2 processes asks for 4, and this machi"):
        LOCAL.check(Resources(ranks=2, gpus=2), queue)
    with pytest.raises(InvalidInput, match="cores: a job of 1 process asks for 100000"):
        LOCAL.check(Resources(cores=100_000), queue)


def test_the_next_attempt_waits_for_what_the_last_one_left(tmp_path: Path) -> None:
    """Its runner was killed, and a command of it still writes: one attempt at a time."""
    script = (
        f"trap '' TERM; touch {tmp_path}/works; until [ -e {tmp_path}/go ]; do sleep 0.05; done"
    )
    handle = submit(tmp_path / "job", Stage("only", (shell(script + "; echo error: old >&2"),)))
    eventually((tmp_path / "works").exists)
    os.kill(ProcessId.parse(handle).pid, signal.SIGKILL)
    assert ended(handle, tmp_path / "job").state == "failed"
    again = submit(tmp_path / "job", Stage("only", (shell("exit 5"),)), attempt=2)
    paths = JobPaths(tmp_path / "job")
    eventually(lambda: local_status(again, paths).waits)
    assert local_status(again, paths).waits == "for the end of what its last attempt started"
    (tmp_path / "go").touch()
    status = ended(again, tmp_path / "job")
    # The reason is its own, and not what the last attempt printed.
    assert status.error.startswith("only 0 ended with exit code 5")
    assert paths.log("only", 0).read_text() == "error: old\n==> attempt 2 <==\n"
