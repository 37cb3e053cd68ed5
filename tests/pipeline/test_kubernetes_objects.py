"""What the backend kubernetes hands to a cluster: settings, names, objects, scripts."""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from catalog.errors import InvalidInput, UnknownName
from pipeline.jobs.backends.kubernetes.backend import KubernetesBackend, stage_objects
from pipeline.jobs.backends.kubernetes.job import KubernetesJob
from pipeline.jobs.backends.kubernetes.names import MOST_CHARS, object_name
from pipeline.jobs.backends.kubernetes.objects import conductor, stage_job
from pipeline.jobs.backends.kubernetes.render import rendered
from pipeline.jobs.backends.kubernetes.script import script
from pipeline.jobs.backends.kubernetes.settings import KubernetesSettings, kubernetes_settings
from pipeline.jobs.queue import JobQueue
from pipeline.jobs.request import PYTHON, JobPaths, JobRequest, Stage
from pipeline.jobs.resources import Resources
from tests.api.servers import framesift
from tests.kubernetes_stand_in.failures import Failure
from tests.kubernetes_stand_in.kinds import BY_NAME
from tests.kubernetes_stand_in.schemas import Schemas
from tests.pipeline.homes import copy_home

GOLDEN = Path(__file__).with_name("described_on_kubernetes.yaml")
HERE = Path("/home/fs/jobs/job")
VERSIONS = ("1.31", "1.34", "1.37")
SETTINGS = KubernetesSettings(
    namespace="adas", image="registry/framesift:1", images=("registry/pytorch:2",),
    pull_secrets=("registry-login",), volumes=("/home/fs=scale:fs", "/data/cache=scale:cache:ro"),
    secrets=("WANDB_API_KEY=wandb:key",), uid=1075481000, gid=1075481000,
    node_selector=("gpu=a100",), tolerations=("nvidia.com/gpu:NoSchedule", "team=adas:NoExecute"),
    shm_mb=8192, resources=("rdma/shared_ib0=1",), queue="adas", nccl="gpudirect",
)  # fmt: skip
TRAIN = Stage("train", ((PYTHON, "-P", "-m", "training.main", "it's"),), ranks=5)
SHARDS = Stage("validate", tuple(("echo", str(n)) for n in range(4)), independent=True)
EXPORT = Stage("export", (("echo", "export"),), optional=True, uses_gpus=False)
REQUEST = JobRequest(
    "job", "train", (EXPORT, TRAIN, SHARDS), {"QUIET": "1 2"}, parallel=2, attempt=2, user="anna",
    submitted={"NCCL_DEBUG": "INFO", "PATH": "/opt/here/bin", "LANG": "C.UTF-8"},
    resources=Resources(
        ranks=5, ranks_per_node=2, gpus=1, cores=4, wall_minutes=90, memory_mb=4000,
        image="registry/pytorch:2", nodes="n1,n2", constraint="zone=a",
        mounts={"/data/cache/bikes": "/frames"},
    ),
)  # fmt: skip


def job(settings: KubernetesSettings = SETTINGS, request: JobRequest = REQUEST) -> KubernetesJob:
    """A job of it."""
    paths = JobPaths(HERE)
    return KubernetesJob(request, paths, "home.7-job-2", settings, "adas")


def objects(of: KubernetesJob) -> list[dict[str, Any]]:
    """All objects of a job."""
    stages = range(len(of.request.stages))
    return [conductor(of), *(thing for number in stages for thing in stage_objects(of, number))]


def test_objects_word_for_word() -> None:
    """The conductor, a Job for each stage, a Service for ranks of several pods."""
    assert objects(job()) == list(yaml.safe_load_all(GOLDEN.read_text()))


@pytest.mark.parametrize("version", VERSIONS)
def test_objects_are_of_the_schema(version: str) -> None:
    """Strictly: no field that a cluster does not know."""
    plain = job(KubernetesSettings(image="i", volumes=("/home/fs=home",)))
    shard = replace(REQUEST, resources=Resources(), stages=(SHARDS,))
    for thing in [*objects(job()), *objects(replace(plain, request=shard))]:
        kubernetes_validate.validate(thing, version, strict=True)
    wrong = conductor(job())
    wrong["spec"]["completion"] = 1
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, version, strict=True)


def test_names_are_labels_and_differ() -> None:
    """Of 50 characters at most, whatever an attempt is called."""
    attempts = ["a", "A", "a.b", "a-b", "7", "-", "é", "x" * 127, "x" * 127 + "y"]
    names = [
        object_name(HERE, attempt, *rest)
        for attempt in attempts
        for rest in ((), ("0",), ("10", "t3"))
    ]
    assert len(set(names)) == len(names)
    for name in names:
        assert len(name) <= MOST_CHARS
        assert name[0].isalpha()
        assert name.replace("-", "").isalnum()
        assert name.isascii()
        assert name == name.lower()
    assert object_name(HERE, "a") == object_name(HERE, "a") != object_name(HERE.parent, "a")


def test_no_key_in_objects_or_scripts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Programs have keys from the namespace's secrets."""
    monkeypatch.setenv("WANDB_API_KEY", "hidden")
    monkeypatch.setenv("WANDB_MODE", "offline")
    file = tmp_path / "backends.toml"
    file.write_text(
        "[kubernetes]\nimage = 'i'\nnamespace = 'n'\nvolumes = ['/home/fs=home']\n"
        "secrets = ['WANDB_API_KEY=wandb:key']\n"
    )
    queue = JobQueue(Path("/home/fs/jobs"), inherits=("WANDB_*",), backends=file)
    request = replace(REQUEST, submitted=None, resources=Resources())
    said = KubernetesBackend().describe(request, JobPaths(Path("/home/fs/jobs/j")), queue, "n")
    assert "hidden" not in said
    assert "export WANDB_MODE=offline" in said
    assert "secretKeyRef:\n              name: wandb" in said
    KubernetesBackend().check(Resources(environment=("WANDB_API_KEY", "WANDB_MODE")), queue)
    with pytest.raises(InvalidInput, match=r"OTHER_TOKEN: no key goes into .*OTHER_TOKEN=SECRET"):
        KubernetesBackend().check(Resources(environment=("OTHER_TOKEN",)), queue)


def test_a_script_has_what_an_image_lacks() -> None:
    """Variables of the submitter that an image has itself stay away."""
    text = script(job(), TRAIN, REQUEST.submitted or {})
    assert "export NCCL_DEBUG=INFO\n" in text
    assert "export NCCL_IB_DISABLE=0\nexport NCCL_NET_GDR_LEVEL=1\n" in text
    assert "export QUIET='1 2'\n" in text
    assert "/opt/here" not in text
    assert "training.slurm_ranks /home/fs/jobs/job/kubernetes/home.7-job-2 5 2 python3" in text
    for shell in ("sh", "dash"):
        subprocess.run([shell, "-n"], input=text.encode(), check=True)


def test_ranks_of_an_mpijob() -> None:
    """The operator's, whose launcher runs mpirun; other stages stay as they are."""
    settings = replace(SETTINGS, kind="mpijob", mpirun_arguments=("-mca", "pml", "ob1"))
    _, export, mpi, shards = objects(job(settings))
    assert (export["kind"], mpi["kind"], shards["kind"]) == ("Job", "MPIJob", "Job")
    assert mpi["apiVersion"] == "kubeflow.org/v2beta1"
    assert mpi["spec"]["runPolicy"] == {"cleanPodPolicy": "All", "backoffLimit": 0, "suspend": True}
    assert mpi["spec"]["slotsPerWorker"] == 2
    assert mpi["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] == 3
    assert "mpirun -np 5 -bind-to none -map-by slot -x PATH" in script(job(settings), TRAIN, {})
    old = objects(job(replace(settings, mpi_version="v1alpha2")))[2]
    assert old["spec"]["cleanPodPolicy"] == "All"
    assert "runPolicy" not in old["spec"]


def test_an_mpijob_is_of_the_operators_schema() -> None:
    """Strictly, with Kueue's queue and without."""
    if not (file := os.environ.get("MPIJOB_CRD")):
        pytest.skip("MPIJOB_CRD is unset: no CRD of MPIJobs here")
    schemas, kind = Schemas(Path(file)), BY_NAME["MPIJob"]
    for queue in ("", "adas"):
        mpi = objects(job(replace(SETTINGS, kind="mpijob", queue=queue)))[2]
        schemas.check(kind, mpi, "mpi")
        mpi["spec"]["cleanPodPolicy"] = "All"  # as in v1alpha2
        with pytest.raises(Failure):
            schemas.check(kind, mpi, "mpi")


BAD: Mapping[str, str] = {
    "image = 7": "expected a text",
    "": "no image is known",
    "image = 'i'\nvolumes = ['home']": "expected PATH=CLAIM, PATH=CLAIM:FOLDER or",
    "image = 'i'\nvolumes = ['/a=c:../b']": "expected PATH=CLAIM",
    "image = 'i'\nsecrets = ['A=hidden']": "secrets: 'A': expected VARIABLE=SECRET:KEY",
    "image = 'i'\ntolerations = ['gpu']": "expected KEY:EFFECT or KEY=VALUE:EFFECT",
    "image = 'i'\nnccl = 'ib'": "tcp, infiniband or gpudirect",
    "image = 'i'\nkind = 'trainjob'": "expected job or mpijob",
    "image = 'i'\nnamespace = 'A b'": "lower-case letters",
    "image = 'i'\nuid = -1": "expected 0 or more",
    "image = 'i'\nnode_selector = ['a']": "expected LABEL=VALUE, such as gpu=a100",
}


@pytest.mark.parametrize("text", BAD)
def test_settings_that_are_none(tmp_path: Path, text: str) -> None:
    """They are refused with what would do."""
    file = tmp_path / "backends.toml"
    file.write_text(f"[kubernetes]\n{text}\n")
    with pytest.raises(InvalidInput, match=BAD[text]) as error:
        kubernetes_settings(file, Resources())
    assert "hidden" not in str(error.value)


def test_what_a_job_may_not_ask(tmp_path: Path) -> None:
    """Images and claims that are not named, settings but its queue, folders that no claim holds."""
    file = tmp_path / "backends.toml"
    file.write_text(
        "[kubernetes]\nimage = 'i'\nnamespace = 'n'\nvolumes = ['/home/fs=home', '/w=work']\n"
    )
    queue, backend = JobQueue(Path("/home/fs/jobs"), backends=file), KubernetesBackend()
    backend.check(Resources(options={"queue": "q", "claim": "work"}), queue)
    with pytest.raises(InvalidInput, match=r"claim other: .* in backends.toml names: home, work"):
        backend.check(Resources(options={"claim": "other"}), queue)
    with pytest.raises(UnknownName, match=r"kubernetes.namespace"):
        backend.check(Resources(options={"namespace": "other"}), queue)
    with pytest.raises(InvalidInput, match="image other: expected one that"):
        backend.check(Resources(image="other"), queue)
    with pytest.raises(InvalidInput, match="mount /data=/d: no claim holds /data"):
        backend.check(Resources(mounts={"/data": "/d"}), queue)
    with pytest.raises(InvalidInput, match="pods would not see /elsewhere"):
        backend.check(Resources(), replace(queue, folder=Path("/elsewhere")))
    with pytest.raises(InvalidInput, match="wall minutes 2: expected more than the 120 s"):
        backend.check(Resources(wall_minutes=2), queue)


def test_a_next_turn_has_a_name_of_its_own() -> None:
    """So that it is created once, too."""
    first, second = stage_job(job(), 1, 0), stage_job(job(), 1, 1)
    assert second["metadata"]["name"] == first["metadata"]["name"] + "-t1"
    commands = [
        thing["spec"]["template"]["spec"]["containers"][0]["command"] for thing in (first, second)
    ]
    assert [command[-1] for command in commands] == ["0", "1"]


def test_what_an_administrator_applies() -> None:
    """Of the schema, but for OpenShift's own; a volume has the handle that the site gives."""
    storage = ["scale=scale:16217308676014575381;099B6A7A:5EB99743;path=/gpfs/ess/adas"]
    things = rendered(SETTINGS, "adas", storage)
    assert [thing["kind"] for thing in things] == [
        "Namespace", "ServiceAccount", "Role", "RoleBinding", "SecurityContextConstraints",
        "PersistentVolume", "PersistentVolumeClaim",
    ]  # fmt: skip
    for thing in things:
        if thing["kind"] != "SecurityContextConstraints":
            kubernetes_validate.validate(thing, VERSIONS[-1], strict=True)
    assert things[4]["allowedCapabilities"] == ["IPC_LOCK"]
    assert things[4]["users"] == ["system:serviceaccount:adas:framesift"]
    assert things[5]["spec"]["csi"] == {
        "driver": "spectrumscale.csi.ibm.com",
        "volumeHandle": "16217308676014575381;099B6A7A:5EB99743;path=/gpfs/ess/adas",
    }
    plain = replace(SETTINGS, nccl="tcp")
    _, volume, _ = rendered(plain, "adas", ["scale=nfs:nas.example:/export"])[3:]
    assert volume["spec"]["nfs"] == {"server": "nas.example", "path": "/export"}
    assert volume["spec"]["claimRef"] == {"namespace": "adas", "name": "scale"}
    volume = rendered(plain, "adas", ["scale=csi:driver.example:h:1"])[4]
    assert volume["spec"]["csi"] == {"driver": "driver.example", "volumeHandle": "h:1"}
    for text in ("scale", "scale=nfs:nas", "scale=nfs:nas:export", "scale=csi:d", "other=nfs:n:/e"):
        with pytest.raises(InvalidInput, match="expected"):
            rendered(plain, "adas", [text])


def test_the_command_that_renders(tmp_path: Path) -> None:
    """A file for each object; without a namespace it says what is missing."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "backends.toml").write_text("[kubernetes]\nimage = 'i'\n")
    command = ("backend", "kubernetes", "--render", str(tmp_path / "out"))
    refused = framesift(home, *command)
    assert refused.returncode != 0
    assert 'expected namespace = "NAME"' in refused.stderr
    (home / "backends.toml").write_text("[kubernetes]\nimage = 'i'\nnamespace = 'adas'\n")
    said = framesift(home, *command)
    assert said.returncode == 0, said.stderr
    files = sorted((tmp_path / "out").iterdir())
    assert said.stdout.split() == list(map(str, files))
    assert [yaml.safe_load(file.read_text())["kind"] for file in files] == [
        "Namespace", "ServiceAccount", "Role", "RoleBinding",
    ]  # fmt: skip


@pytest.mark.wide
def test_a_dry_run_of_the_published_form(catalogued: Path, tmp_path: Path) -> None:
    """It prints the cluster's objects as YAML, and begins nothing; a claim is one of the site's."""
    home = copy_home(catalogued, tmp_path)
    (home / "backends.toml").write_text(
        f"[kubernetes]\nimage = 'i'\nnamespace = 'adas'\nvolumes = ['{home}=fs', '/w=work']\n"
    )
    words = ("-min_car=1", "-oc_namespace=adas", "-cmd=cat {files}")
    command = ("run", "--backend", "kubernetes", "--resource", "gpus=1", "--dry-run", "--form")
    refused = framesift(home, *command, *words, "-oc_pvc=other")
    assert refused.returncode == 1
    assert "claim other: pods have no such claim; expected one" in refused.stderr
    assert refused.stderr.rstrip().endswith("in backends.toml names: fs, work")
    shown = framesift(home, *command, *words, "-oc_pvc=work")
    assert shown.returncode == 0, shown.stderr
    _, text = shown.stdout.split("==> run, on kubernetes <==\n")
    text, _ = text.split("==> evict, on local <==\n")
    things = [thing for thing in yaml.safe_load_all(text) if thing]
    for thing in things:
        kubernetes_validate.validate(thing, VERSIONS[-1], strict=True)
    roles = [thing["metadata"]["labels"]["framesift.io/role"] for thing in things]
    assert roles == ["conductor", "stage", "stage", "stage"]  # input, run, collect
    (program,) = things[2]["spec"]["template"]["spec"]["containers"]
    assert program["resources"] == {"limits": {"nvidia.com/gpu": "1"}}
    assert [mount["mountPath"] for mount in program["volumeMounts"]] == [
        str(home),
        "/w",
        "/dev/shm",
    ]
    assert "# FOLDER=" in text
    assert not list((home / "jobs").glob("*"))
