"""The stand-in of OpenPBS, against the words of its manuals and sources."""

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.batch_stand_ins.pbs_words import Refused, array_range, depend, resources, variables
from tests.batch_stand_ins.stand_in import StandIn, pbs_stand_in

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def pbs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandIn]:
    """A cluster of host1 and host2 with two CPUs each; a minute takes 0.4 s."""
    folder = tmp_path_factory.mktemp("pbs") / "cluster"
    with pbs_stand_in(folder, minute_s=0.4, kill_delay_s=0.3) as cluster:
        yield cluster


@pytest.fixture
def run(pbs: StandIn, tmp_path: Path) -> Run:
    """Runs a program of the cluster's in a folder of the test's own."""

    def run(*words: str, **options: Any) -> "subprocess.CompletedProcess[str]":
        variables = {**os.environ, **pbs, **options.pop("more", {})}
        return subprocess.run(
            words, env=variables, cwd=tmp_path, capture_output=True, text=True,
            timeout=options.pop("timeout", 60), check=False, **options,
        )  # fmt: skip

    return run


def submitted(run: Run, *words: str, **options: Any) -> str:
    """The identifier of a job."""
    said = run("qsub", *words, **options)
    assert said.returncode == 0, said.stderr
    return said.stdout.strip()


def record(run: Run, job: str) -> dict[str, Any]:
    """What qstat says of a job."""
    said = run("qstat", "-x", "-f", "-F", "json", job)
    rows: dict[str, dict[str, Any]] = json.loads(said.stdout)["Jobs"]
    return rows[job]


def until(run: Run, job: str, *states: str) -> dict[str, Any]:
    """The record of a job once it has one of the states."""
    for _ in range(200):
        if (row := record(run, job))["job_state"] in states:
            return row
        time.sleep(0.03)
    raise AssertionError(row)


def written(path: Path) -> str:
    """The text of a file once it is there."""
    for _ in range(300):
        if path.exists() and path.read_text():
            return path.read_text()
        time.sleep(0.02)
    raise AssertionError(path)


def test_a_script_and_its_environment(run: Run, tmp_path: Path) -> None:
    """Nothing of the submitter's but PBS_O_*; in the home, by its #! line, under the umask 077.

    qsub(1B), environment variables; start_exec.c: finish_exec, generate_pbs_nodefile.
    """
    script = (
        "#!/bin/bash\n#PBS -N it\n#PBS -j oe\n"
        "echo $PBS_JOBID $PBS_JOBNAME $PBS_QUEUE $PBS_ENVIRONMENT $NCPUS ${MINE:-none} $GIVEN\n"
        "echo $PBS_O_WORKDIR; [ $PWD = $HOME ]; echo $?; umask; cat $PBS_NODEFILE; exit 3\n"
    )
    words = ("-l", "select=2:ncpus=2:mpiprocs=2", "-l", "place=scatter", "-v", "GIVEN='a,b'")
    job = submitted(run, *words, input=script, more={"MINE": "hidden"})
    number = job.partition(".")[0]
    assert job == f"{number}.pbs"
    row = until(run, job, "F")
    assert (row["Exit_status"], row["substate"], row["run_count"]) == (3, 93, 1)
    assert row["comment"].endswith(" on (host1:ncpus=2)+(host2:ncpus=2) and failed")
    assert row["exec_host"] == "host1/0*2+host2/0*2"
    assert (tmp_path / f"it.o{number}").read_text().splitlines() == [
        f"{job} it workq PBS_BATCH 2 none a,b", str(tmp_path), "0", "0077", "host1", "host1",
        "host2", "host2",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "message", "code"),
    [
        (("-q", "night"), "qsub: Unknown queue\n", 170),
        (("-l", "nodes=1", "-l", "select=1"), "qsub: Cannot be used with select or place", 6),
        (("-l", "select=1", "-l", "ncpus=2"), 'qsub: "-lresource=" cannot be used with "sel', 5),
        (("-l", "place=pack"), 'qsub: Cannot have "place" without "select"\n', 7),
        (("-l", "select=1:cpus=2"), "qsub: Unknown resource Resource_List.cpus\n", 187),
        (("-l", "select=1:ncpus=x"), "qsub: Illegal attribute or resource value Resource", 166),
        (("-J", "0-0"), "qsub: illegal -J value\n", 2),
        (("-J", "0-10000"), "qsub: Array job exceeds server or queue size limit\n", 3),
        (("-W", "depend=afterok"), "qsub: illegal -W value\n", 2),
        (("-W", "afterok:1"), "qsub: illegal -W value\n", 2),
        (("-N", "a b"), "qsub: illegal -N value\n", 2),
        (("-r", "yes"), "qsub: illegal -r value\n", 2),
        (("-v", "NO_SUCH_ONE"), "qsub: cannot send environment with the job\n", 3),
        (("--name", "a"), "qsub: invalid option -- '-'\n", 2),
    ],
)
def test_what_qsub_refuses(run: Run, words: tuple[str, ...], message: str, code: int) -> None:
    """Messages and codes: pbs_messages.c, pbs_error.h modulo 256, qsub.c.

    "-J X-Y requires Y > X", and "Unknown resource Resource_List." as users published them.
    """
    said = run("qsub", *words, input="true\n")
    assert (said.returncode, said.stdout) == (code, "")
    assert said.stderr.startswith(message), said.stderr


def test_an_array_holds_and_ends(run: Run) -> None:
    """-h and qrls, %limit, states of the array and its elements, qdel: SIGTERM first.

    qsub(1B) -J; qstat(1B) -t; job_state in pbs_job_attributes(7B); exit codes 35 and 153.
    """
    job = submitted(run, "-h", "-J", "0-2%1", "--", "/bin/sleep", "30")
    number = job.partition("[")[0]
    assert job == f"{number}[].pbs"
    row = record(run, job)
    assert (row["job_state"], row["Hold_Types"], row["array"]) == ("H", "u", "True")
    assert run("qrls", "-h", "u", job).returncode == 0
    assert until(run, job, "B")["array_state_count"] == "Queued:2 Running:1 Exiting:0 Expired:0 "
    assert run("qdel", f"{number}[0]").returncode == 0
    said = json.loads(run("qstat", "-x", "-t", "-f", "-F", "json", job).stdout)["Jobs"]
    assert list(said) == [job, *(f"{number}[{n}].pbs" for n in range(3))]
    assert said[f"{number}[1].pbs"]["array_index"] == 1
    for _ in range(100):
        said = json.loads(run("qstat", "-xtfFjson", job).stdout)["Jobs"]
        if said[f"{number}[0].pbs"]["job_state"] == "X":
            break
    assert said[f"{number}[0].pbs"]["Exit_status"] == 256 + 15
    run("qdel", job)
    assert until(run, job, "F")["Exit_status"] == 1
    for program in ("qdel", "qsig", "qrerun", "qrls"):
        said_again = run(program, job)
        assert (said_again.returncode, said_again.stderr) == (
            35, f"{program}: Job has finished {job}\n",
        )  # fmt: skip
    assert run("qselect", "-N", "sleep").stdout == ""
    assert job in run("qselect", "-x", "-N", "sleep").stdout.splitlines()
    assert run("qselect", "-x", "-N", "slee").stdout == ""
    gone = run("qstat", job)
    assert gone.returncode == 35
    assert gone.stderr.startswith(f"qstat: {job} Job has finished, use -x or -H to obtain")
    unknown = run("qstat", "-x", "5555")
    assert (unknown.returncode, unknown.stderr) == (153, "qstat: Unknown Job Id 5555.pbs\n")
    assert run("qstat", number).stderr == f"qstat: Unknown Job Id {number}.pbs\n"
    assert run("qdel", "x").stderr == "qdel: illegally formed job identifier: x\n"


def test_dependencies(run: Run) -> None:
    """What waits is held by the system; a broken dependency deletes the job.

    qsub(1B) -W depend: "the new job will be deleted by the server"; "This job will not run if a
    job in the arg_list was deleted without ever having been run".
    """
    first = submitted(run, "-h", input="exit 4\n")
    after = submitted(run, "-W", f"depend=afterany:{first}", input="true\n")
    broken = submitted(run, "-W", f"depend=afterok:{first}", input="true\n")
    next_one = submitted(run, "-W", f"depend=afterany:{broken}", input="true\n")
    row = record(run, after)
    assert (row["job_state"], row["Hold_Types"], row["substate"]) == ("H", "s", 22)
    run("qrls", first)
    assert until(run, after, "F")["Exit_status"] == 0
    row = until(run, broken, "F")
    assert "Exit_status" not in row
    assert row["comment"] == f"Job deleted as result of dependency on job {first}"
    assert "Exit_status" not in until(run, next_one, "F")
    unknown = submitted(run, "-W", "depend=afterok:9999", input="true\n")
    assert "Exit_status" not in until(run, unknown, "F")


def test_signals_go_to_the_session(run: Run, tmp_path: Path) -> None:
    """The shell that reads the script's name dies of them, and takes the script with it.

    mom_mach.c: kill_session; catch_child.c: scan_for_exiting kills all once the top shell ended.
    With `qsub -- PROGRAM` that is the program; what setsid moved away gets nothing.
    """
    keeps = f"trap 'sleep 0.2; echo kept > {tmp_path}/$1; exit 7' TERM USR1; touch {tmp_path}/$1-on"
    script = tmp_path / "script"
    script.write_text(f"#!/bin/bash\nset -- ${{1:-shell}}\n{keeps}\nwhile :; do sleep 0.02; done\n")
    script.chmod(0o700)
    by_shell = submitted(run, str(script))
    by_itself = submitted(run, "--", str(script), "program")
    for name in ("shell-on", "program-on"):
        while not (tmp_path / name).exists():
            time.sleep(0.02)
    assert run("qsig", "-s", "USR1", by_shell, by_itself).returncode == 0
    assert until(run, by_shell, "F")["Exit_status"] == 256 + 10
    assert until(run, by_itself, "F")["Exit_status"] == 7
    assert not (tmp_path / "shell").exists()
    assert (tmp_path / "program").read_text() == "kept\n"
    assert run("qsig", "-s", "NOPE", submitted(run, "-h", "--", "/bin/true")).returncode == 165


def test_rerun_and_the_wall_time(run: Run, pbs: StandIn, tmp_path: Path) -> None:
    """A rerun keeps the number, and leaves what is marked; SIGTERM, then SIGKILL at the wall time.

    qrerun(1B): "If a job is marked as not rerunnable, qrerun neither kills nor requeues the job";
    Exit_status -29 and the line on standard error as users published them; held after 20 runs.
    """
    job = submitted(run, "--", "/bin/sh", "-c", f"echo >> {tmp_path}/runs; exec sleep 30")
    written(tmp_path / "runs")
    assert run("qrerun", job).returncode == 0
    for _ in range(100):
        if (tmp_path / "runs").read_text() == "\n\n":
            break
        time.sleep(0.03)
    assert record(run, job)["run_count"] == 2
    run("qdel", "-W", "force", job)
    fixed = submitted(run, "-r", "n", "--", "/bin/sleep", "30")
    until(run, fixed, "R")
    assert run("qrerun", fixed).stderr == f"qrerun: job is not rerunnable {fixed}\n"
    run("qdel", fixed)
    often = submitted(run, "-W", "run_count=20", "--", "/bin/true")
    row = record(run, often)
    assert (row["job_state"], row["Hold_Types"], row["run_count"]) == ("H", "s", 21)
    assert row["comment"] == "job held, too many failed attempts to run"
    long = submitted(
        run, "-l", "walltime=00:01:00", "-k", "doe", "-e", "err", "--", "/bin/sleep", "30"
    )
    assert until(run, long, "F")["Exit_status"] == -29
    assert (tmp_path / "err").read_text() == (
        "=>> PBS: job killed: walltime 65 exceeded limit 60\n"
    )


def test_tasks_on_hosts(run: Run, tmp_path: Path) -> None:
    """pbs_tmrsh: the job's environment, home and output; its code. pbsdsh: every line, code 0.

    pbs_tmrsh.c; pbsdsh(1B); start_exec.c: start_process.
    """
    script = (
        "#!/bin/bash\nexport A=mine; cd /tmp\n"
        "say='echo \"${A:-none} $PBS_NODENUM $CUDA_VISIBLE_DEVICES\"; pwd; exit 5'\n"
        'pbs_tmrsh host2 /bin/bash -c "$say" > "$PBS_O_WORKDIR/here"\n'
        "echo $?\npbs_tmrsh host3 /bin/true 2>&1; echo $?\n"
        "pbs_tmrsh host1 /bin/sh -c 'kill -9 $$'; echo $?\npbsdsh -n 1 -- /bin/false; echo $?\n"
    )
    words = (
        "-N",
        "t",
        "-j",
        "oe",
        "-l",
        "select=2:ncpus=1:ngpus=1:mpiprocs=1",
        "-l",
        "place=scatter",
    )
    job = submitted(run, *words, input=script)
    until(run, job, "F")
    assert (tmp_path / f"t.o{job.partition('.')[0]}").read_text().splitlines() == [
        "none 1 0", str(Path.home()), "5",
        f'pbs_tmrsh: host "host3" is not a node in job <{job}>', "255", "9",
        "pbsdsh: task 0x00000000 exit status 1", "0",
    ]  # fmt: skip
    assert (tmp_path / "here").read_text() == ""
    assert run("pbs_tmrsh", "host1", "true").stderr == "pbs_tmrsh: not executing under PBS\n"


def test_a_host_that_dies(run: Run, pbs: StandIn) -> None:
    """Its job begins once more, unless it is marked."""
    again = submitted(run, "--", "/bin/sleep", "30")
    fixed = submitted(run, "-r", "n", "--", "/bin/sleep", "30")
    for job in (again, fixed):
        until(run, job, "R")
        pbs.lose(job.partition(".")[0])
    assert until(run, fixed, "F")["Exit_status"] == -20
    for _ in range(100):
        if record(run, again).get("run_count") == 2:
            break
        time.sleep(0.03)
    assert until(run, again, "R")["run_count"] == 2
    run("qdel", again)


def test_silence_and_history(run: Run, pbs: StandIn) -> None:
    """Programs hang, or cannot connect; what is forgotten is unknown."""
    job = submitted(run, "--", "/bin/true")
    until(run, job, "F")
    pbs.silence("refuse")
    said = run("qstat", job)
    assert (said.returncode, said.stderr.splitlines()[-1]) == (
        111, "qstat: cannot connect to server pbs (errno=111)",
    )  # fmt: skip
    pbs.silence("hang")
    with pytest.raises(subprocess.TimeoutExpired):
        run("qstat", timeout=0.6)
    pbs.silence()
    pbs.forget()
    assert run("qstat", "-x", job).returncode == 153
    pbs.refuse("hook rejected request")
    assert run("qsub", "--", "/bin/true").stderr == "qsub: hook rejected request\n"
    pbs.refuse()


def test_who_may(tmp_path: Path) -> None:
    """Only managers and operators rerun; root may submit where acl_roots says so."""
    with pbs_stand_in(tmp_path / "pbs", operator=False, root_jobs=os.getuid() != 0) as cluster:
        variables = {**os.environ, **cluster}

        def run(*words: str) -> tuple[int, str]:
            said = subprocess.run(words, env=variables, capture_output=True, text=True, check=False)
            return said.returncode, said.stderr

        code, said = run("qsub", "--", "/bin/true")
        if os.getuid() == 0:
            assert (code, said) == (175, "qsub: Bad UID for job execution\n")
    with pbs_stand_in(tmp_path / "other", operator=False) as cluster:
        variables = {**os.environ, **cluster}
        run("qsub", "--", "/bin/sleep", "30")
        assert run("qrerun", "1") == (159, "qrerun: Unauthorized Request  1.pbs\n")


def test_words_of_qsub() -> None:
    """pbs_resources(7B), -J, -W depend and -v."""
    asked = resources(
        ["select=1:ncpus=4:ngpus=2+2:ncpus=1:mpiprocs=3", "place=scatter:excl,walltime=1:00:30"], []
    )
    assert [(chunk.cpus, chunk.gpus, chunk.ranks) for chunk in asked.chunks] == [
        (4, 2, 1), (1, 0, 3), (1, 0, 3),
    ]  # fmt: skip
    assert (asked.arrangement, asked.alone, asked.walltime_s) == ("scatter", True, 3630)
    assert array_range("2-7:2%2", 10).indices == (2, 4, 6)
    assert depend("afterok:1:2.pbs,afterany:3[]") == [
        ("afterok", "1"), ("afterok", "2.pbs"), ("afterany", "3[]"),
    ]  # fmt: skip
    assert variables("A=1,B,C='x,y',D=a\\,b", {"B": "two"}) == {
        "A": "1", "B": "two", "C": "x,y", "D": "a,b",
    }  # fmt: skip
    for text in ("afterwards:1", "afterok:", "afterok:1;2", "afterok:3[1]"):
        with pytest.raises(Refused):
            depend(text)
