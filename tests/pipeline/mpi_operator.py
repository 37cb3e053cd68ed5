"""Plays Kubeflow's MPI operator on the stand-in, for one MPIJob: launcher, workers, conditions.

Source: pkg/controller/mpi_job_controller.go of kubeflow/mpi-operator 0.8 (v2beta1), as far as
Framesift looks: names and owners of pods, the conditions, and what `cleanPodPolicy: All` deletes.
"""

from copy import deepcopy
from pathlib import Path
from typing import Any

from tests.kubernetes_stand_in.stand_in import KubernetesStandIn
from tests.pipeline.backend_suite import eventually

_MPIJOBS = "kubeflow.org/v2beta1/mpijobs"
_MPIRUN = """#!/bin/sh
[ "$1" = -np ] || exit 64
ranks=$2 rank=0
shift 2
while :; do case $1 in -bind-to | -map-by | -x) shift 2 ;; *) break ;; esac; done
while [ $rank -lt $ranks ]; do
  OMPI_COMM_WORLD_SIZE=$ranks OMPI_COMM_WORLD_RANK=$rank "$@" || exit
  rank=$((rank + 1))
done
"""
"""In the place of Open MPI's: the ranks one after the other, in the launcher's pod."""


class MpiOperator:
    """That of a cluster, asked for by the test in the place of its watch."""

    def __init__(self, cluster: KubernetesStandIn, namespace: str, folder: Path) -> None:
        """One whose images have an mpirun, which pods see in a folder."""
        self.cluster, self.namespace, self.bin = cluster, namespace, folder / "bin"
        self.bin.mkdir()
        (self.bin / "mpirun").write_text(_MPIRUN)
        (self.bin / "mpirun").chmod(0o755)

    def created(self) -> dict[str, Any]:
        """The MPIJob that waits for it, once it is there."""

        def new() -> list[dict[str, Any]]:
            jobs = self.cluster.objects(_MPIJOBS, self.namespace)
            return [job for job in jobs if not job.get("status")]

        eventually(new)
        (job,) = new()
        return job

    def bring_on(self, job: dict[str, Any]) -> None:
        """Make the pods of an MPIJob, and say when its launcher runs, and how that ends."""
        name = job["metadata"]["name"]
        replicas = job["spec"]["mpiReplicaSpecs"]
        self._say(job, "Created")
        for number in range(replicas["Worker"]["replicas"]):
            worker = self._template(job, replicas["Worker"])
            sshd = "trap 'exit 0' TERM; sleep 600 & wait"
            worker["spec"]["containers"][0]["command"] = ["/bin/sh", "-c", sshd]
            metadata = self._metadata(job, f"{name}-worker-{number}") | worker["metadata"]
            self.cluster.apply({"kind": "Pod", **worker, "metadata": metadata})
        launcher = self._template(job, replicas["Launcher"])
        path = {"name": "PATH", "value": f"{self.bin}:/usr/bin:/bin"}
        launcher["spec"]["containers"][0].setdefault("env", []).append(path)
        limit = job["spec"]["runPolicy"]["backoffLimit"]
        spec = {"backoffLimit": limit, "template": launcher}
        of_launcher = self._metadata(job, f"{name}-launcher")
        self.cluster.apply({"kind": "Job", "metadata": of_launcher, "spec": spec})
        self._say(job, "Running")
        eventually(lambda: self._end(name))
        self._say(job, {"Complete": "Succeeded"}.get(self._end(name), "Failed"))
        assert job["spec"]["runPolicy"]["cleanPodPolicy"] == "All"
        for number in range(replicas["Worker"]["replicas"]):
            worker_path = f"/api/v1/namespaces/{self.namespace}/pods/{name}-worker-{number}"
            assert self.cluster.admin.delete(worker_path).is_success

    def _end(self, name: str) -> str:
        """How the launcher's Job has ended; empty while it has not."""
        (job,) = self.cluster.objects(
            "batch/v1/jobs", self.namespace, fieldSelector=f"metadata.name={name}-launcher"
        )
        conditions = job.get("status", {}).get("conditions", ())
        ends = [row["type"] for row in conditions if row["status"] == "True"]
        return next((end for end in ends if end in ("Complete", "Failed")), "")

    def _template(self, job: dict[str, Any], replica: dict[str, Any]) -> dict[str, Any]:
        pod: dict[str, Any] = deepcopy(replica["template"])
        labels = pod["metadata"]["labels"]
        labels["training.kubeflow.org/job-name"] = job["metadata"]["name"]
        pod["spec"]["restartPolicy"] = replica["restartPolicy"]
        return pod

    def _metadata(self, job: dict[str, Any], name: str) -> dict[str, Any]:
        owner = {
            "apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "controller": True,
            "name": job["metadata"]["name"], "uid": job["metadata"]["uid"],
        }  # fmt: skip
        return {"name": name, "namespace": self.namespace, "ownerReferences": [owner]}

    def _say(self, job: dict[str, Any], condition: str) -> None:
        """Add a condition; one that has ended does not run any more."""
        conditions = job.setdefault("status", {}).setdefault("conditions", [])
        for row in conditions:
            if row["type"] == "Running":
                row["status"] = "False"
        conditions.append({"type": condition, "status": "True", "reason": f"MPIJob{condition}"})
        path = f"/apis/kubeflow.org/v2beta1/namespaces/{self.namespace}/mpijobs"
        answer = self.cluster.admin.patch(
            f"{path}/{job['metadata']['name']}/status", json={"status": job["status"]},
            headers={"Content-Type": "application/merge-patch+json"},
        )  # fmt: skip
        assert answer.is_success, answer.text
