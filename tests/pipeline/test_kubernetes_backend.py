"""The backend kubernetes, against a stand-in of a cluster whose pods run as processes."""

import os
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from catalog.errors import JobFailed
from pipeline.jobs.backends.interface import Backend
from pipeline.jobs.backends.kubernetes import api
from pipeline.jobs.backends.kubernetes import backend as of_backend
from pipeline.jobs.backends.kubernetes import conductor as of_conductor
from pipeline.jobs.backends.kubernetes.api import Api
from pipeline.jobs.backends.kubernetes.backend import KubernetesBackend
from pipeline.jobs.backends.kubernetes.cluster import cluster as cluster_of
from pipeline.jobs.backends.kubernetes.names import object_name
from pipeline.jobs.backends.kubernetes.notes import Plan
from pipeline.jobs.backends.kubernetes.render import rendered
from pipeline.jobs.backends.kubernetes.settings import kubernetes_settings
from pipeline.jobs.queue import JobQueue
from pipeline.jobs.request import PYTHON, JobRequest, Stage, read_json
from pipeline.jobs.resources import Resources
from tests.kubernetes_stand_in.stand_in import KubernetesStandIn, node
from tests.pipeline.backend_suite import BackendSuite, Run, eventually, shell
from tests.pipeline.mpi_operator import MpiOperator
from tests.pipeline.on_kubernetes import NAMESPACE, folder_of_all, prepared_cluster, settings_of

pytestmark = pytest.mark.wide

_PLACES = "RANK WORLD_SIZE LOCAL_RANK HOROVOD_LOCAL_SIZE HOROVOD_CROSS_RANK FRAMESIFT_RANKS WHO"


@pytest.fixture(scope="module")
def cluster() -> Iterator[KubernetesStandIn]:
    """A cluster of two nodes."""
    with prepared_cluster() as running:
        yield running


class TestKubernetes(BackendSuite):
    """What all backends do, and what a cluster does besides."""

    @pytest.fixture
    def backend(self) -> Backend:
        """The cluster's."""
        return KubernetesBackend()

    @pytest.fixture
    def queue(self, cluster: KubernetesStandIn) -> Iterator[JobQueue]:
        """Jobs of a home that pods see, and whose user may write there."""
        self.cluster, self.folder = cluster, cluster.folder.parent
        with folder_of_all(cluster) as jobs:
            yield JobQueue(jobs, backends=settings_of(self.folder))

    def pods(self, run: Run, role: str = "stage") -> list[str]:
        """Names of a job's pods that have not ended."""
        name = object_name(run.paths.folder, run.name)
        return [
            pod["metadata"]["name"]
            for pod in self.cluster.objects("pods", NAMESPACE)
            if pod["metadata"]["name"].startswith(name)
            and pod["metadata"]["labels"]["framesift.io/role"] == role
            and pod["status"]["phase"] in ("Pending", "Running")
        ]

    def lose(self, run: Run) -> None:
        """Somebody deletes the pod that runs its program."""
        for pod in self.pods(run):
            path = f"/api/v1/namespaces/{NAMESPACE}/pods/{pod}"
            assert self.cluster.admin.delete(path, params={"gracePeriodSeconds": 0}).is_success

    def test_ranks_over_pods(self, backend: Backend, queue: JobQueue) -> None:
        """Three in two pods know their places; each has the job's variables."""
        words = f"' '.join(os.environ[name] for name in {_PLACES.split()!r})"
        program = (PYTHON, "-c", f"import os, sys; sys.stdout.write({words} + '\\n')")
        request = JobRequest(
            "ranks", "train", (Stage("train", (program,), ranks=3),), {"WHO": "it's $HOME"},
            resources=Resources(ranks=3, ranks_per_node=2),
        )  # fmt: skip
        run = Run(backend, queue, request)
        assert run.ended().state == "done", (run.status, run.log("train"))
        assert sorted(run.log("train").splitlines()) == [
            "0 3 0 2 0 3 it's $HOME", "1 3 1 2 0 3 it's $HOME", "2 3 0 1 1 3 it's $HOME",
        ]  # fmt: skip

    def test_ranks_of_an_mpijob(self, backend: Backend, queue: JobQueue) -> None:
        """The operator's launcher starts them; the next stage begins when no worker is left."""
        if not os.environ.get("MPIJOB_CRD"):
            pytest.skip("MPIJOB_CRD is unset: no CRD of MPIJobs here")
        here = queue.folder
        of_mpi = kubernetes_settings(settings_of(self.folder, "kind = 'mpijob'"), Resources())
        self.cluster.apply(*rendered(of_mpi, NAMESPACE))
        operator = MpiOperator(self.cluster, NAMESPACE, here)
        script = (
            'echo "$OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE: $WHO"; '
            f"[ $OMPI_COMM_WORLD_RANK = 0 ] || exit $(cat {here}/code)"
        )
        stages = Stage("train", (shell(script),), ranks=2), Stage("after", (shell("echo x"),))
        request = JobRequest(
            "mpi", "train", stages, {"WHO": "it's $HOME"},
            resources=Resources(ranks=2, ranks_per_node=1),
        )  # fmt: skip
        (here / "code").write_text("0")
        run = Run(backend, queue, request)
        job = operator.created()
        eventually(lambda: run.status.waits)
        assert (run.status.state, run.status.waits) == ("queued", "for Kubernetes: a pod")
        operator.bring_on(job)
        assert run.ended().state == "done", run.status
        assert run.log("train") == "0 of 2: it's $HOME\n1 of 2: it's $HOME\n"
        assert run.log("after") == "x\n"
        (here / "code").write_text("3")
        fails = Run(backend, queue, replace(request, name="fails"))
        operator.bring_on(operator.created())
        assert (fails.ended().state, fails.status.is_lost) == ("failed", False), fails.status
        assert fails.status.error.startswith("train 0 ended with exit code 3")
        assert not (fails.paths.logs / "after-0.log").exists()

    def test_a_rank_that_dies(self, backend: Backend, queue: JobQueue) -> None:
        """It ends the other one, in another pod, and the job has failed with its words."""
        program = (
            "import os, sys, time\n"
            "if os.environ['RANK'] == '1': sys.exit('error: no GPU here')\n"
            "time.sleep(600)\n"
        )
        resources = Resources(ranks=2, ranks_per_node=1)
        stage = Stage("train", ((PYTHON, "-c", program),), ranks=2)
        run = Run(backend, queue, JobRequest("dies", "train", (stage,), resources=resources))
        assert run.ended().error.startswith("no GPU here (train 0, log ")

    def test_a_turn_that_ends_goes_on_in_the_next(self, backend: Backend, queue: JobQueue) -> None:
        """Before its wall time ends a program keeps what it has, and begins again."""
        here = queue.folder
        script = (
            f"trap 'touch {here}/kept; exit 1' TERM; [ ! -e {here}/kept ] || exit 0; "
            "while :; do sleep 0.1; done"
        )
        stage = Stage("train", (shell(script),))
        request = JobRequest("turns", "train", (stage,), resources=Resources(wall_minutes=1))
        settings = settings_of(self.folder)
        text = settings.read_text().replace("_seconds = 20", "_seconds = 58")
        settings.write_text(text)
        run = Run(backend, queue, request)
        assert run.ended().state == "done", run.status
        assert run.log("train").endswith("==> turn 2 <==\n")
        settings.write_text(f"{text}\nmost_requeues = 0\n")
        (here / "kept").unlink()
        status = Run(backend, queue, replace(request, name="last")).ended()
        assert (status.state, status.is_lost) == ("failed", True)
        assert "train 0 was ended before its wall time did, and has no further" in status.error

    def test_a_node_that_goes_away(self, backend: Backend, queue: JobQueue) -> None:
        """The attempt is lost, nothing of it runs; a conductor goes on elsewhere."""
        here = queue.folder
        stage = Stage("train", (shell(f"touch {here}/works; exec sleep 600"),))
        run = Run(backend, queue, JobRequest("gone", "train", (stage,)))
        eventually((here / "works").exists)
        (pod,) = self.pods(run)
        nodes = {
            each["metadata"]["name"]: each["spec"]["nodeName"]
            for each in self.cluster.objects("pods", NAMESPACE)
            if each["metadata"]["name"] in (pod, *self.pods(run, "conductor"))
        }
        self.cluster.lose_node(nodes[pod])
        try:
            status = run.ended()
        finally:
            self.cluster.add_node(node(nodes[pod]))
        assert (status.state, status.is_lost) == ("failed", True), status
        assert "Kubernetes ended train 0 (" in status.error
        assert not self.pods(run)

    def test_a_conductor_that_is_ended(self, backend: Backend, queue: JobQueue) -> None:
        """Its node is emptied while a program runs: the next one goes on with that program."""
        here = queue.folder
        script = f"echo once >> {here}/began; until [ -e {here}/go ]; do sleep 0.1; done"
        after = Stage("after", (shell("echo after"),))
        request = JobRequest("moves", "train", (Stage("train", (shell(script),)), after))
        run = Run(backend, queue, request)
        eventually((here / "began").exists)
        (first,) = self.pods(run, "conductor")
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/{first}"
        assert self.cluster.admin.delete(path).is_success
        eventually(lambda: self.pods(run, "conductor") not in ([], [first]))
        (here / "go").touch()
        assert run.ended().state == "done", run.status
        assert (here / "began").read_text() == "once\n"
        assert run.log("after") == "after\n"

    def test_a_job_that_is_deleted_by_hand(self, backend: Backend, queue: JobQueue) -> None:
        """Its Job of a stage, or its conductor: nothing runs on, and the attempt is lost."""
        here = queue.folder
        for role in ("stage", "conductor"):
            stage = Stage("train", (shell(f"touch {here}/{role}-began; exec sleep 600"),))
            run = Run(backend, queue, JobRequest(role, "train", (stage,)))
            eventually((here / f"{role}-began").exists)
            name = object_name(run.paths.folder, run.name, *(["0"] if role == "stage" else []))
            path = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs/{name}"
            body = {"propagationPolicy": "Background"}
            assert self.cluster.admin.request("DELETE", path, json=body).is_success
            status = run.ended()
            assert (status.state, status.is_lost) == ("failed", True), status
            assert "deleted by hand" in status.error
            assert not self.pods(run)

    def test_an_image_or_a_secret_that_is_not_there(
        self, backend: Backend, queue: JobQueue
    ) -> None:
        """What waits for it says so, and does not wait for ever."""
        stage = Stage("train", (shell("true"),))
        asked = Resources(image="missing/image:1")
        image = Run(backend, queue, JobRequest("image", "train", (stage,), resources=asked))
        settings_of(self.folder, "secrets = ['WANDB_API_KEY=none:key']")
        secret = Run(backend, queue, JobRequest("secret", "train", (stage,)))
        for run, words in (
            (image, "image missing/image:1 cannot be pulled"), (secret, 'secret "none" not found'),
        ):  # fmt: skip
            eventually(lambda run=run, words=words: words in run.status.waits)  # type: ignore[misc]
            assert run.status.state == "queued"
            assert "in backends.toml" in run.status.waits
            backend.cancel(run.handle, run.paths)
            assert run.ended().state == "cancelled"

    def test_what_waits_says_why(self, backend: Backend, queue: JobQueue) -> None:
        """More GPUs than there are, in the scheduler's words."""
        stage = Stage("train", (shell("true"),))
        request = JobRequest("big", "train", (stage,), resources=Resources(gpus=9))
        run = Run(backend, queue, request)
        eventually(lambda: "nvidia.com/gpu" in run.status.waits)
        assert run.status.waits == "for Kubernetes: Unschedulable: 2 Insufficient nvidia.com/gpu"
        assert run.status.state == "queued"
        backend.cancel(run.handle, run.paths)
        assert run.ended().state == "cancelled"

    def test_an_api_server_that_does_not_answer(
        self, backend: Backend, queue: JobQueue, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What runs is unknown until it answers; nothing new is submitted, and nothing twice."""
        here = queue.folder
        stage = Stage("train", (shell(f"until [ -e {here}/go ]; do sleep 0.1; done"),))
        run = Run(backend, queue, JobRequest("long", "train", (stage,)))
        eventually(lambda: run.status.state == "running")
        monkeypatch.setattr(api, "PATIENCE_S", 1.0)
        monkeypatch.setattr(of_backend, "_LOOK_S", 1.0)
        for how, words in (("429", "is busy"), ("500", "answers"), ("drop", "does not answer")):
            self.cluster.fail(how)
            assert run.status.state == "unknown", run.status
            with pytest.raises(JobFailed, match=f"job new-{how}: .*{words}"):
                Run(backend, queue, JobRequest(f"new-{how}", "train", (stage,)))
            self.cluster.recover()
        monkeypatch.undo()
        assert run.status.state == "running", run.status
        (here / "go").touch()
        assert run.ended().state == "done"
        assert not list(queue.folder.glob("new-*/logs/train-0.log"))

    def test_an_api_server_that_is_silent_for_long(
        self, backend: Backend, queue: JobQueue, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Longer than its conductor asks (10 s): programs end and begin, once, as without it.

        It takes questions without an answer while the first program ends, and is down while the
        second one does.
        """
        here, ran = queue.folder, queue.folder / "ran"
        ran.touch()
        until = f"until [ -e {here}/go-$0 ]; do sleep 0.1; done"
        stages = tuple(
            Stage(name, (("/bin/sh", "-c", f"echo $0 >> {ran}; {until}", name),))
            for name in ("first", "second", "third")
        )
        run = Run(backend, queue, JobRequest("silence", "train", stages))
        eventually(lambda: run.status.state == "running")
        monkeypatch.setattr(api, "PATIENCE_S", 1.0)
        monkeypatch.setattr(api, "_ANSWER_S", 1.0)
        monkeypatch.setattr(of_backend, "_LOOK_S", 1.0)
        silences: dict[str, Callable[[], None]] = {
            "first": lambda: self.cluster.fail("hang", seconds=15.0),
            "second": lambda: self.cluster.refuse(15.0),
        }
        begun = ""
        for name, silence in silences.items():
            begun += f"{name}\n"
            eventually(lambda expected=begun: ran.read_text() == expected)  # type: ignore[misc]
            silence()
            (here / f"go-{name}").touch()
            eventually(lambda: "does not answer" in read_json(run.paths.status).get("waits", ""))
            assert run.status.state == "unknown", run.status
            assert "does not answer" in run.status.error
            with pytest.raises(JobFailed, match=f"job not-{name}: .* does not answer"):
                Run(backend, queue, JobRequest(f"not-{name}", "train", stages))
        (here / "go-third").touch()
        assert run.ended().state == "done", run.status
        assert ran.read_text() == "first\nsecond\nthird\n"
        names = [
            each["metadata"]["name"] for each in self.cluster.objects("batch/v1/jobs", NAMESPACE)
        ]
        assert not [name for name in names if "-not-" in name]

    def test_a_list_that_is_forgotten_in_its_middle(
        self, backend: Backend, queue: JobQueue, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It is asked for again from its beginning: each object is there once."""
        monkeypatch.setattr(api, "_PAGE", 2)
        names = [f"account-{number}" for number in range(5)]
        self.cluster.apply(
            {"kind": "Namespace", "metadata": {"name": "pages"}},
            *(
                {
                    "kind": "Service",
                    "metadata": {"name": name, "namespace": "pages"},
                    "spec": {"clusterIP": "None"},
                }
                for name in names
            ),
        )
        of_admin = self.folder / "admin"
        of_admin.write_text(self.cluster.kubeconfig(self.cluster.admin_token))
        self.cluster.fail("410", times=1)
        self.cluster.requests()
        with Api(cluster_of(str(of_admin), "")) as asked:
            rows = asked.list(api.core_path("pages", "services"))
            assert [row["metadata"]["name"] for row in rows] == names
            asks = [path for _, path in self.cluster.requests() if "/pages/" in path]
            assert ["continue" in path for path in asks] == [False, True, False, True, True]
            self.cluster.fail("410")
            asked.patience_s = 0.1
            with pytest.raises(api.ClusterSilent, match="continue parameter is too old"):
                asked.list(api.core_path("pages", "services"))
            self.cluster.recover()

    def test_a_mistake_does_not_wait_for_ever(
        self, backend: Backend, queue: JobQueue, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """An image that nobody makes: the job fails with what to do, and is not tried again."""
        settings = settings_of(self.folder)
        text = settings.read_text()
        settings.write_text(
            text.replace("image = 'registry/framesift:1'", "image = 'missing/image:1'")
        )
        request = JobRequest("mistake", "train", (Stage("train", (shell("true"),)),))
        run = Run(backend, queue, request)
        eventually(lambda: "cannot be pulled" in run.status.waits)
        # Its conductor has no image, either: this process is one, with less patience.
        monkeypatch.setattr(of_conductor, "_MISTAKE_S", 1.0)
        plan = Plan.read(run.paths, run.name)
        assert plan is not None
        with Api(cluster_of(plan.settings.kubeconfig, "")) as asked:
            of_conductor.Conductor(run.name, request, run.paths, plan, asked).run()
        status = run.status
        assert (status.state, status.is_lost) == ("failed", False)
        assert status.error.startswith("image missing/image:1 cannot be pulled (")
        assert status.error.endswith("name one that is there, or its pull secret, in backends.toml")
        assert not self.pods(run)

    def test_answers_that_are_all_lost(
        self, backend: Backend, queue: JobQueue, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A submission that fails runs nothing, also where the cluster had it."""
        monkeypatch.setattr(api, "PATIENCE_S", 0.1)
        here = queue.folder
        stage = Stage("one", (shell(f"echo x >> {here}/ran"),))
        self.cluster.fail("lost", ["POST"])
        try:
            with pytest.raises(JobFailed, match="does not answer"):
                Run(backend, queue, JobRequest("lost", "train", (stage,)))
        finally:
            self.cluster.recover()
        eventually(lambda: not [
            pod for pod in self.cluster.objects("pods", NAMESPACE)
            if "-lost-" in pod["metadata"]["name"]
            and pod["status"]["phase"] in ("Pending", "Running")
        ])  # fmt: skip
        assert not (here / "ran").exists()

    def test_an_answer_that_is_lost(self, backend: Backend, queue: JobQueue) -> None:
        """The job was created: it is met, and runs once."""
        self.cluster.fail("lost", ["POST"], times=1)
        run = Run(backend, queue, JobRequest("met", "train", (Stage("one", (shell("echo x"),)),)))
        assert run.ended().state == "done"
        assert run.log("one") == "x\n"

    def test_credentials_that_do_not_do(self, backend: Backend, queue: JobQueue) -> None:
        """An expired token, an account without rights: one sentence says what to do."""
        config = self.folder / "kubeconfig"
        before = config.read_text()
        stage = Stage("train", (shell("true"),))
        try:
            token = self.cluster.token("framesift", NAMESPACE)
            config.write_text(self.cluster.kubeconfig(token, NAMESPACE))
            self.cluster.expire(token)
            with pytest.raises(JobFailed, match=r"does not accept .* log in again"):
                Run(backend, queue, JobRequest("expired", "train", (stage,)))
            token = self.cluster.token("default", NAMESPACE)
            config.write_text(self.cluster.kubeconfig(token, NAMESPACE))
            with pytest.raises(JobFailed, match=r"jobs.batch.* is forbidden.*--render DIR"):
                Run(backend, queue, JobRequest("forbidden", "train", (stage,)))
        finally:
            config.write_text(before)

    def test_kueue_admits_and_takes_back(self, backend: Backend, queue: JobQueue) -> None:
        """What it does not admit waits; what it takes back goes on in a next turn."""
        here = queue.folder
        script = (
            f"trap 'touch {here}/kept; exit 1' TERM; [ ! -e {here}/kept ] || exit 0; "
            f"touch {here}/works; while :; do sleep 0.1; done"
        )
        stage = Stage("train", (shell(script),))
        resources = Resources(options={"queue": "lab"})
        run = Run(backend, queue, JobRequest("kueue", "train", (stage,), resources=resources))
        eventually(lambda: "Kueue" in run.status.waits)
        assert run.status.state == "queued"
        assert run.status.waits == "for Kueue: queue lab has not admitted it"
        assert not (here / "works").exists()
        name = object_name(run.paths.folder, run.name, "0")
        self.cluster.admit(name, NAMESPACE)
        eventually((here / "works").exists)
        eventually(lambda: run.status.state == "running")
        self.cluster.preempt(name, NAMESPACE)
        eventually((here / "kept").exists)
        eventually(lambda: run.status.state == "queued")
        self.cluster.admit(name, NAMESPACE)
        assert run.ended().state == "done", run.status
        assert run.log("train") == "==> turn 2 <==\n"

    def test_a_quota_that_is_used_up(self, backend: Backend, queue: JobQueue) -> None:
        """A job waits for it, and begins when there is room."""
        quota = {
            "apiVersion": "v1", "kind": "ResourceQuota",
            "metadata": {"name": "few", "namespace": NAMESPACE}, "spec": {"hard": {"pods": "0"}},
        }  # fmt: skip
        self.cluster.apply(quota)
        try:
            stage = Stage("one", (shell("echo x"),))
            run = Run(backend, queue, JobRequest("quota", "train", (stage,)))
            eventually(lambda: "exceeded quota" in run.status.waits)
            assert run.status.state == "queued"
            assert run.status.waits.endswith("ask for less, or have the quota raised")
        finally:
            path = f"/api/v1/namespaces/{NAMESPACE}/resourcequotas/few"
            assert self.cluster.admin.delete(path).is_success
        assert run.ended().state == "done"

    def test_a_claim_that_is_not_there(self, backend: Backend, queue: JobQueue) -> None:
        """A job waits for it, and can be cancelled before anything of it began."""
        settings = settings_of(self.folder)
        text = settings.read_text()
        settings.write_text(text.replace("volumes = [", "volumes = ['/none=none', "))
        stage = Stage("one", (shell("echo x"),))
        run = Run(backend, queue, JobRequest("claim", "train", (stage,)))
        eventually(lambda: "none" in run.status.waits)
        assert run.status.state == "queued"
        assert 'persistentvolumeclaim "none" not found' in run.status.waits
        assert run.status.waits.endswith("or name another in backends.toml")
        backend.cancel(run.handle, run.paths)
        assert run.ended().state == "cancelled"
        assert not (run.paths.logs / "one-0.log").exists()

    def test_a_driver_that_is_killed(self, backend: Backend, queue: JobQueue) -> None:
        """Submitted again by the same name, a job is met, and runs once."""
        stage = Stage("one", (shell("echo x"),))
        request = JobRequest("twice", "train", (stage,))
        run = Run(backend, queue, request)
        again = Run(backend, queue, request, run.name)
        assert again.handle == run.handle
        assert run.ended().state == "done"
        assert run.log("one") == "x\n"
