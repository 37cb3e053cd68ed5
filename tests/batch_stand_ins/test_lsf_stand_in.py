"""The stand-in of LSF, against the words of its manuals and published outputs."""

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.batch_stand_ins.lsf_words import Refused, dependency, gpus, job_name, requirements
from tests.batch_stand_ins.stand_in import StandIn, lsf_stand_in

Run = Callable[..., "subprocess.CompletedProcess[str]"]
ASKED = "jobid jobindex stat exit_code exit_reason exec_host queue job_name pend_reason"


@pytest.fixture(scope="module")
def lsf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandIn]:
    """A cluster of host1 and host2 with two slots each; a minute takes 0.4 s."""
    folder = tmp_path_factory.mktemp("lsf") / "cluster"
    with lsf_stand_in(folder, minute_s=0.4, terminate_interval_s=0.2, after_limit_s=0.2) as cluster:
        yield cluster


@pytest.fixture
def run(lsf: StandIn, tmp_path: Path) -> Run:
    """Runs a program of the cluster's in a folder of the test's own."""

    def run(*words: str, **options: Any) -> "subprocess.CompletedProcess[str]":
        variables = {**os.environ, **lsf, **options.pop("more", {})}
        return subprocess.run(
            words, env=variables, cwd=tmp_path, capture_output=True, text=True,
            timeout=options.pop("timeout", 60), check=False, **options,
        )  # fmt: skip

    return run


def submitted(run: Run, *words: str, **options: Any) -> str:
    """The number of a job."""
    said = run("bsub", *words, **options)
    assert said.returncode == 0, said.stderr
    return said.stdout.split("<")[1].split(">")[0]


def records(run: Run, *jobs: str) -> list[dict[str, str]]:
    """What bjobs says of jobs."""
    rows: list[dict[str, str]] = json.loads(run("bjobs", "-json", "-o", ASKED, *jobs).stdout)[
        "RECORDS"
    ]
    return rows


def until(run: Run, job: str, *states: str) -> dict[str, str]:
    """The first record of a job once it has one of the states."""
    for _ in range(200):
        if (row := records(run, job)[0])["STAT"] in states:
            return row
        time.sleep(0.03)
    raise AssertionError(row)


def test_a_script_and_its_environment(run: Run, tmp_path: Path) -> None:
    """Spooled, run by its #! line, with the submitter's variables and LSF's.

    bsub(1); "Environment variables set for job execution"; "Passing arguments on the command line":
    LSB_JOBINDEX is 0 for what is no array.
    """
    script = (
        "#!/bin/bash\n#BSUB -n 3\n[[ $0 == *.shell ]] || exit 9\n"
        "echo $LSB_JOBID $LSB_JOBINDEX $LSB_JOBNAME $LSB_QUEUE $MINE $LS_SUBCWD\n"
        "echo $LSB_HOSTS; echo $LSB_MCPU_HOSTS; cat $LSB_DJOB_HOSTFILE; pwd; exit 3\n"
    )
    words = ("-J", "it", "-q", "gpu", "-R", "span[ptile=2]", "-o", "out.%J", "-cwd", "/tmp")
    said = run("bsub", *words, input=script, more={"MINE": "a  b", "LSB_JOBID": "9999"})
    number = said.stdout.split("<")[1].split(">")[0]
    assert said.stdout == f"Job <{number}> is submitted to queue <gpu>.\n"
    row = until(run, number, "EXIT")
    assert (row["EXIT_CODE"], row["EXEC_HOST"]) == ("3", "host1:host1:host2")
    assert Path(f"/tmp/out.{number}").read_text().splitlines() == [
        f"{number} 0 it gpu a b {tmp_path}", "host1 host1 host2", "host1 2 host2 1", "host1",
        "host1", "host2", "/tmp",
    ]  # fmt: skip
    Path(f"/tmp/out.{number}").unlink()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-q", "night"), "night: No such queue. Job not submitted."),
        (("-R", "span[ptile=x]"), "Bad resource requirement syntax. Job not submitted."),
        (("-R", "span[ptile=1]", "-R", "span[hosts=1]"), "Bad resource requirement syntax."),
        (("-W", "1h"), "1h: Bad argument for option -W. Job not submitted."),
        (("-n", "0"), "0: Bad argument for option -n. Job not submitted."),
        (("-n", "9"), "Too many processors requested. Job not submitted."),
        (("-gpu", "num=1/rank"), "num=1/rank: Bad argument for option -gpu. Job not submitted."),
        (("-w", "done(98765)"), "98765: No matching job found. Job not submitted."),
        (("-w", "done(1"), "done(1: Dependency condition syntax error. Job not submitted."),
        (("-J", "a[0-3]"), "Job array index error. Job not submitted."),
        (("-J", "a[1-1001]"), "Job array index too large. Job not submitted."),
        (("-m", "host3"), "host3: Bad host name, host group name or cluster name."),
        (("--job-name", "a"), "--job-name: Illegal option. Job not submitted."),
        (("-ti",), "-ti: goes with -w only. Job not submitted."),
    ],
)
def test_what_bsub_refuses(run: Run, words: tuple[str, ...], message: str) -> None:
    """Messages: lsb.err.c. "No such queue" as users of 10.1 published it. Exit code 255."""
    said = run("bsub", *words, "true")
    assert (said.returncode, said.stdout) == (255, "")
    assert said.stderr.startswith(message), said.stderr


def test_an_array_holds_and_ends(run: Run) -> None:
    """-H and bresume, %limit, "12[2]", bkill: SIGINT first.

    bsub -J, -H; bkill(1): "sends the signals INT, TERM, and KILL in sequence"; bjobs -json: all
    values are texts.
    """
    number = submitted(run, "-J", "many[1-4]%1", "-H", "sleep", "30")
    rows = records(run, number)
    assert [(row["JOBINDEX"], row["JOB_NAME"], row["STAT"]) for row in rows] == [
        (str(n), f"many[{n}]", "PSUSP") for n in range(1, 5)
    ]
    assert rows[0]["PEND_REASON"] == "Job was suspended by the user while pending;"
    assert run("bresume", number).stdout == f"Job <{number}> is being resumed\n"
    until(run, number, "RUN")
    assert records(run, f"{number}[2]")[0]["PEND_REASON"] == (
        "The job array has reached its job slot limit;"
    )
    assert run("bkill", f"{number}[1]").stdout == f"Job <{number}[1]> is being terminated\n"
    row = until(run, f"{number}[1]", "EXIT")
    assert (row["EXIT_CODE"], row["EXIT_REASON"]) == ("130", "TERM_OWNER: job killed by owner")
    run("bkill", "-J", "many", "0")
    assert until(run, f"{number}[4]", "EXIT")["EXIT_CODE"] == ""
    said = run("bkill", f"{number}[4]")
    assert (said.returncode, said.stderr) == (
        255, f"Job <{number}[4]>: Job has already finished\n",
    )  # fmt: skip


def test_unknown_jobs(run: Run, lsf: StandIn) -> None:
    """bjobs(1); LSB_BJOBS_CONSISTENT_EXIT_CODE; what is forgotten is in bhist alone."""
    said = run("bjobs", "5555")
    assert (said.returncode, said.stdout, said.stderr) == (255, "", "Job <5555> is not found\n")
    assert run("bkill", "5555").stderr == "Job <5555>: No matching job found\n"
    number = submitted(run, "-J", "gone", "sh -c 'exit 4'")
    until(run, number, "EXIT")
    lsf.forget()
    assert run("bjobs", "-a", number).stderr == f"Job <{number}> is not found\n"
    history = run("bhist", "-l", "-UF", number).stdout
    assert f"Job <{number}>, Job Name <gone>, User <" in history
    assert ": Exited with exit code 4. The CPU time used is 0.1 seconds;\n" in history
    assert ": Completed <exit>;\n" in history
    said = run("bjobs", "-o", "jobid nosuch", "-noheader")
    assert (said.returncode, said.stdout) == (255, "")


def test_dependencies(run: Run) -> None:
    """done, ended and numdone; an orphan ends with -ti, and pends for ever without.

    "Job dependency syntax"; bsub -ti; "Dependency condition invalid or never satisfied" is a
    pending reason of lsb.reason.c.
    """
    first = submitted(run, "-H", "false")
    after = submitted(run, "-w", f"ended({first})", "true")
    orphan = submitted(run, "-w", f"done({first})", "-ti", "true")
    waits = submitted(run, "-w", f"done({first}) && ended({after})", "true")
    assert records(run, after)[0]["PEND_REASON"] == "Job dependency condition not satisfied;"
    run("bresume", first)
    until(run, after, "DONE")
    assert until(run, orphan, "EXIT")["EXIT_REASON"].startswith("TERM_ORPHAN_SYSTEM: ")
    assert (
        records(run, waits)[0]["PEND_REASON"] == "Dependency condition invalid or never satisfied;"
    )
    run("bkill", waits)
    array = submitted(run, "-J", "two[1-2]", "exit $((LSB_JOBINDEX - 1))")
    until(run, submitted(run, "-w", f"numdone({array}, >= 1)", "true"), "DONE")


def test_requeue_and_the_run_limit(run: Run, tmp_path: Path) -> None:
    """A requeue keeps the number; SIGUSR2 at the limit, and time to end by oneself.

    brequeue(1): "The requeued job keeps the same job ID"; bsub -W; exit code 140 and TERM_RUNLIMIT
    as users published them.
    """
    script = f"#!/bin/sh\necho run >> {tmp_path}/runs\n[ -e {tmp_path}/go ] || exec sleep 30\n"
    number = submitted(run, input=script)
    until(run, number, "RUN")
    while not (tmp_path / "runs").exists():
        time.sleep(0.02)
    assert run("brequeue", submitted(run, "-H", "true")).stderr.endswith("has not started yet\n")
    (tmp_path / "go").touch()
    assert run("brequeue", number).stdout == f"Job <{number}> is being requeued\n"
    until(run, number, "DONE")
    assert (tmp_path / "runs").read_text() == "run\nrun\n"
    row = until(run, submitted(run, "-W", "1", "exec sleep 30"), "EXIT")
    assert row["EXIT_REASON"] == "TERM_RUNLIMIT: job killed after reaching LSF run time limit"
    keeps = f"trap 'echo kept > {tmp_path}/kept; exit 0' USR2; while :; do sleep 0.02; done"
    until(run, submitted(run, "-W", "0:1", input=f"#!/bin/bash\n{keeps}\n"), "DONE")
    assert (tmp_path / "kept").read_text() == "kept\n"


def test_blaunch(run: Run, tmp_path: Path) -> None:
    """On hosts of the job alone; each slot without names; codes and signals come through.

    blaunch(8): "can be used only to launch tasks on remote hosts that are part of a job
    allocation"; "When no host names are specified, LSF runs tasks on all allocated hosts, one
    remote task per job slot".
    """
    assert run("blaunch", "host1", "true").returncode == 255
    script = (
        "#!/bin/bash\nexport A='b c'\nblaunch echo slot\nblaunch -z 'host1 host2' 'echo $A'\n"
        "blaunch host2 exit 5; echo $?\nblaunch -z host3 true 2>&1; echo $?\n"
        'blaunch -no-shell host1 /bin/sh -c \'trap "echo got; exit 4" TERM; touch ready; '
        "while :; do sleep 0.02; done' &\n"
        "until [ -e ready ]; do sleep 0.02; done; kill $!; wait $!; echo $?\n"
    )
    words = ("-n", "2", "-R", "span[ptile=1]", "-o", "out")
    until(run, submitted(run, *words, input=script), "DONE", "EXIT")
    said = (tmp_path / "out").read_text().splitlines()
    # The signal may meet the shell's sleep, too, of which the shell then says so.
    assert [line for line in said if line != "Terminated"] == [
        "slot", "slot", "b c", "b c", "5", "blaunch: Host <host3> is not allocated for this job",
        "255", "got", "4",
    ]  # fmt: skip


def test_gpus(run: Run, tmp_path: Path) -> None:
    """Of a host, or with /task of a slot; CUDA_VISIBLE_DEVICES; what is exclusive keeps others out.

    bsub -gpu: "By default, the number is per host".
    """
    script = "#!/bin/sh\necho $CUDA_VISIBLE_DEVICES\nuntil [ -e go ]; do sleep 0.05; done\n"
    both = submitted(run, "-n", "2", "-R", "span[hosts=1]", "-o", "both", "-m", "host1",
                     "-gpu", "num=1/task:mode=shared:j_exclusive=yes", input=script)  # fmt: skip
    until(run, both, "RUN")
    late = submitted(run, "-m", "host1", "-gpu", "-", "true")
    assert records(run, late)[0]["STAT"] == "PEND"
    (tmp_path / "go").touch()
    until(run, late, "DONE")
    assert (tmp_path / "both").read_text() == "0,1\n"


def test_a_host_that_dies(run: Run, lsf: StandIn) -> None:
    """UNKWN, then EXIT; or once more with LSB_RESTART for -r.

    bsub -r; LSB_RESTART: "has been restarted because of a host failure".
    """
    number = submitted(run, "exec sleep 30")
    again = submitted(run, "-r", '[ -n "$LSB_RESTART" ] || exec sleep 30')
    for job in (number, again):
        until(run, job, "RUN")
        lsf.lose(job)
    assert records(run, number)[0]["STAT"] in ("UNKWN", "EXIT")
    assert until(run, number, "EXIT")["EXIT_REASON"].startswith("TERM_ZOMBI: ")
    until(run, again, "DONE")


def test_silence(run: Run, lsf: StandIn) -> None:
    """Commands wait, with or without a word."""
    lsf.silence("refuse")
    with pytest.raises(subprocess.TimeoutExpired) as raised:
        run("bjobs", timeout=1.5)
    assert b"Cannot connect to LSF. Please wait ...\n" in (raised.value.stderr or b"")
    lsf.silence()
    lsf.refuse("Request aborted by esub")
    assert run("bsub", "true").stderr == "Request aborted by esub. Job not submitted.\n"
    lsf.refuse()


def test_root(tmp_path: Path) -> None:
    """LSF_ROOT_USER of lsf.conf: root may not submit without it. Nothing is left at the end."""
    if os.getuid() != 0:
        pytest.skip("root is refused, and nobody else")
    with lsf_stand_in(tmp_path / "lsf", root_user=False) as cluster:
        variables = {**os.environ, **cluster}
        said = subprocess.run(
            ["bsub", "true"], env=variables, capture_output=True, text=True, check=False
        )
    assert said.stderr == "User permission denied. Job not submitted.\n"
    assert not list((tmp_path / "lsf").glob("spool/*"))


def test_words_of_bsub() -> None:
    """The pages of -J, -R, -gpu and -w."""
    assert job_name("a[1-7:3,2]%2", 1000).indices == (1, 2, 4, 7)
    assert requirements(["select[type==any] rusage[mem=4G:ngpus_physical=1] span[ptile=2]"]) == {
        "select": "type==any", "rusage": "mem=4G:ngpus_physical=1", "span": "ptile=2",
    }  # fmt: skip
    assert requirements(["affinity[core(2)]", "mem>100"]) == {
        "affinity": "core(2)", "select": "mem>100",
    }  # fmt: skip
    for text in ("span[hosts=2]", "span(ptile=2)", "rusage[mem]", "spam[ptile=2]", "span[ptile=2"):
        with pytest.raises(Refused):
            requirements([text])
    assert gpus("num=2/task:mode=exclusive_process").alone
    assert dependency('done(1) && !ended("a b") || numdone(3[1-2], *)') == (
        "or", ("and", ("done", "1", "", 0), ("not", ("ended", "a b", "", 0))),
        ("numdone", "3[1-2]", "*", 0),
    )  # fmt: skip
    for text in ("done()", "done(1) &&", "numdone(1)", "done(1, 2)", "1 2"):
        with pytest.raises(Refused):
            dependency(text)
