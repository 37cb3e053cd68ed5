"""Holds what a job reads from a cache, on the node that runs it, as long as its script lives.

Started by stage.sh with the job's folder, a file and the script's process: it makes the file once
the job's manifests are held, and lets them go when that process, or this one, ends.
"""

import os
import signal
import sys
import time
from pathlib import Path

from catalog.errors import StorageError
from pipeline.cache.lease import Holder, Lease, cache_of
from pipeline.jobs.request import JobPaths, JobRequest, read_json

_POLL_S = 0.5


def main(folder: Path, ready: Path, script: int) -> int:
    """Hold the manifests; 1 where one was evicted while the job waited."""
    request = JobRequest.from_json(read_json(JobPaths(folder).request))
    ended: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: ended.append(number))
    leases = []
    try:
        for manifest, dataset in request.reads.items():
            cache = cache_of(Path(manifest))
            if cache is None:
                continue
            try:
                leases.append(
                    Lease(cache, Path(manifest).name, Holder(dataset, request.name, request.owner))
                )
            except StorageError as problem:
                # A cache that is mounted read-only is evicted by others, who then do not know.
                sys.stderr.write(f"without a lease on {dataset}: {problem}\n")
                continue
            leases[-1].need_manifest()
        ready.touch()
        while not ended and os.getppid() == script:
            for lease in leases:
                lease.beat()
            time.sleep(_POLL_S)
    except StorageError as problem:
        sys.stderr.write(f"error: {problem}\n")
        return 1
    finally:
        for lease in leases:
            lease.release()
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])))
