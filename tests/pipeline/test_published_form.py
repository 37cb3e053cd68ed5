"""The words of the published LSF form: what they choose, what is refused, from form to results."""

import shlex
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from api.cli.commands.jobs.published_form import run_words
from api.services.session import Session
from api.workspace import Workspace
from catalog.errors import InvalidInput
from pipeline.jobs.request import read_json
from query.frames.count_frames import count_frames
from query.question.question import Question
from tests.api.servers import FRAMESIFT, environment, framesift, wait_until
from tests.batch_stand_ins.stand_in import StandIn, lsf_stand_in
from tests.pipeline.homes import FRAMES, SAMPLE, make_home, open_home

RUN = "-oc_path_exec=run.sh"
WORDS = (RUN, "-p_fc=yes", "-p_rc=yes", "-min_car=1", "-max_car=2000000", "-min_sky=0")


def test_words_as_the_template_hands_them_on() -> None:
    """A range for each label, a camera for each box, files by name, and the cache given back."""
    words = [*WORDS, "-p_rr=no", "-max_bicycle=7", "-min_filename=a'b", "-queue=gpu"]
    assert run_words(words, "lsf") == [
        "--camera", "front_center", "--camera", "rear_center",
        "--range", "car=1:2000000", "--range", "sky=0:", "--range", "bicycle=:7",
        "--where", "filename >= 'a''b'", "--option", "lsf.queue=gpu",
        "--command", "/bin/sh run.sh {files} {job}", "--evict",
    ]  # fmt: skip
    assert "slurm.partition=gpu" in run_words(words, "slurm")
    words = ["-p_fl=", "-oc_namespace=dean", "-oc_pvc=work", "-cmd=a {job}"]
    assert run_words(words, "kubernetes") == [
        "--camera", "front_left", "--option", "kubernetes.namespace=dean",
        "--option", "kubernetes.claim=work", "--command", "a {job}", "--evict",
    ]  # fmt: skip
    assert run_words(["-min_car=1", "-oc_path_exec=a {b}.sh"], "local")[-2:] == [
        "/bin/sh 'a {{b}}.sh' {files} {job}", "--evict",
    ]  # fmt: skip


def test_words_of_a_file(tmp_path: Path) -> None:
    """One on each line, as the published main job keeps them: blanks need no quotes there."""
    file = tmp_path / "20201029-10h00m00s_recLSFArgs.txt"
    file.write_text("-min_car=5\r\n\n-cmd=python a.py --list {files}\n")
    assert run_words([str(file)], "local") == [
        "--range", "car=5:", "--command", "python a.py --list {files}", "--evict",
    ]  # fmt: skip
    with pytest.raises(
        InvalidInput, match=r"none: expected words .* \(No such file or directory\)"
    ):
        run_words([str(tmp_path / "none")], "local")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((RUN,), "no word chooses frames; give a label's range, such as -min_car=10000"),
        ((RUN, "-p_fc=no"), "no word chooses frames"),
        (("-min_car=1",), "no command; give -oc_path_exec=SCRIPT, or -cmd"),
        ((RUN, "-cmd=true", "-p_fc=yes"), "one job has one command; leave one of them out"),
        ((RUN, "-tags=night", "-p_fc=yes"), "-tags=night: unknown word -tags; expected -min_LABEL"),
        ((RUN, "-min_car=1", "two"), "'two': expected -NAME=VALUE, such as -min_car=10000; quote"),
        ((RUN, "-min_car"), "'-min_car': expected -NAME=VALUE"),
        ((RUN, "-min_car=1", "-min_car=2"), "-min_car=2: -min_car is there twice"),
        ((RUN, "-min_car=many"), "-min_car=many: expected a whole number of pixels"),
        ((RUN, "-max_car="), "-max_car=: expected a whole number"),
        ((RUN, "-p_fc=perhaps"), "-p_fc=perhaps: expected yes or no"),
        ((RUN, "-min_filename=b", "-max_filename=a"), "-min_filename=b is above -max_filename=a"),
        ((RUN, "-p_fc=yes", "-oc_pvc=w"), "-oc_pvc=w: the backend lsf has no claim; leave"),
        ((RUN, "-p_fc=yes", "-oc_namespace=w"), "the backend lsf has no namespace"),
    ],
)
def test_words_that_cannot_be_used(words: tuple[str, ...], message: str) -> None:
    """Each is refused in one sentence that says what was given, and what to do."""
    with pytest.raises(InvalidInput) as error:
        run_words(words, "lsf")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Workspace]:
    """A home whose frames lie in a tar archive, so that a job stages them."""
    with tarfile.open(tmp_path / "a2d2.tar", "w") as archive:
        archive.add(SAMPLE, ".")
    make_home(tmp_path / "home", tmp_path / "a2d2.tar")
    workspace = open_home(tmp_path / "home")
    yield workspace
    workspace.close()


@pytest.fixture
def lsf(tmp_path: Path) -> Iterator[StandIn]:
    """An LSF of two hosts of two slots."""
    with lsf_stand_in(tmp_path / "lsf", terminate_interval_s=0.5) as cluster:
        yield cluster


def wrapper(folder: Path, home: Path, backend: str) -> Path:
    """A site's script in the place of the published one: where the home is, and the backend."""
    (folder / "work").mkdir()
    (folder / "work" / "run.sh").write_text(
        'cut -f 1 "$1" > "$2/list"; echo "${LSB_QUEUE:-none}" > queue\n'
    )
    queue = ' "-queue=$LSB_QUEUE"' if backend == "lsf" else ""
    script = folder / "framesift-av.sh"
    script.write_text(
        f"#!/bin/sh\nexport FRAMESIFT_HOME={shlex.quote(str(home))}\n"
        f"exec {shlex.quote(str(FRAMESIFT))} run --backend {backend} --name av "
        f'--folder {shlex.quote(str(folder / "work"))} --form "$@"{queue}\n'
    )
    script.chmod(0o755)
    return script


def check(home: Workspace, folder: Path, backend: str, queue: str) -> None:
    """Every step is done, on that backend, with the frames of the form; the cache is empty."""
    session = Session(home, is_command=True)
    job = session.jobs.get("av")
    assert (job.state, job.backend, job.error) == ("done", backend, "")
    steps = ("select", "stage", "prepare", "run", "evict")
    assert [(task.name, task.state) for task in job.tasks] == [(step, "done") for step in steps]
    listed = (Path(job.paths["output"]) / "list").read_text().splitlines()
    asked = "camera in ('front_center', 'rear_center') and car >= 1 and car <= 2000000"
    count, _ = count_frames(home.catalog, Question(where=asked))
    assert 0 < count < FRAMES
    assert len(listed) == count
    assert {Path(line).parent.name for line in listed} == {"cam_front_center", "cam_rear_center"}
    assert (folder / "work" / "queue").read_text() == f"{queue}\n"
    assert not list(home.cache.rglob("*.png"))
    assert read_json(Path(job.paths["folder"]) / "result.json")["output_files"] == 1


@pytest.mark.wide
def test_from_the_form_to_results_on_lsf(home: Workspace, tmp_path: Path, lsf: StandIn) -> None:
    """As the template submits: its own job submits the one that runs, in the form's queue."""
    script = wrapper(tmp_path, home.home, "lsf")
    log = tmp_path / "main.log"
    line = f"bsub -J AV_20201029 -q short -o {log} {script} {' '.join(WORDS)} 2>&1"
    variables = {**environment(home.home, lsf), "FRAMESIFT_HOME": "/nowhere"}
    subprocess.run(["/bin/sh", "-c", line], env=variables, check=True)
    wait_until(lambda: {task["state"] for task in lsf.tasks()} <= {"DONE", "EXIT"})
    assert {task["state"] for task in lsf.tasks()} == {"DONE"}, log.read_text()
    check(home, tmp_path, "lsf", "short")


@pytest.mark.wide
def test_from_a_file_of_words_to_results(home: Workspace, tmp_path: Path) -> None:
    """On this machine; what the catalog does not have is refused before anything is recorded."""
    script = wrapper(tmp_path, home.home, "local")
    file = tmp_path / "words.txt"
    for word, message in (("-min_unicorn=1", "unicorn"), ("-min_sky=1\n-max_sky=0", "above")):
        file.write_text("\n".join([*WORDS[:-1], word, ""]))
        refused = framesift(home.home, "run", "--form", str(file))
        assert refused.returncode in (1, 2)
        assert message in refused.stderr
    assert Session(home, is_command=True).jobs.list() == []
    file.write_text("\n".join([*WORDS, ""]))
    subprocess.run([script, file], env=environment(home.home), check=True)
    check(home, tmp_path, "local", "none")
