"""Requests per second for label-sized objects: S3Folder.read against boto3's get_object.

    python -m benchmarks.s3_requests [--endpoint URL] [--objects 1000]

Both read the same objects of the same server in the same run, alternating; the best of three
rounds counts. Without --endpoint a Ceph gateway is started (its Debian packages are needed), and
the server then shares this machine's cores with the readers.
"""

import argparse
import os
import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import boto3
from botocore.config import Config

from ingest.sources.s3.s3_source import S3Folder
from ingest.sources.source_options import SourceOptions

_BUCKET = "framesift-requests"
_ROUNDS = 3


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--endpoint", default="", help="S3 server; keys as boto3 finds them")
    parser.add_argument("--objects", type=int, default=1000)
    options = parser.parse_args()
    endpoint = options.endpoint or _start()
    client: Any = boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        config=Config(max_pool_connections=64, s3={"addressing_style": "path"}),
    )
    keys = _fill(client, options.objects)
    folder = S3Folder(f"s3://{_BUCKET}", SourceOptions(endpoint_url=endpoint))

    def by_boto3(key: str) -> bytes:
        return bytes(client.get_object(Bucket=_BUCKET, Key=key)["Body"].read())

    print(f"{'threads':>7} {'boto3 req/s':>12} {'S3Folder req/s':>15} {'ratio':>6}"
          f" {'CPU ms/req':>21}")  # fmt: skip
    for threads in (2, 8, 32):
        best = {"boto3": (0.0, 0.0), "S3Folder": (0.0, 0.0)}
        for _ in range(_ROUNDS):
            best["boto3"] = max(best["boto3"], _rate(by_boto3, keys, threads))
            best["S3Folder"] = max(best["S3Folder"], _rate(folder.read, keys, threads))
        old, new = best["boto3"], best["S3Folder"]
        print(f"{threads:7} {old[0]:12,.0f} {new[0]:15,.0f} {new[0] / old[0]:6.1f}"
              f" {old[1]:10.2f} {new[1]:10.2f}")  # fmt: skip


def _start() -> str:
    from tests.ingest.s3_server import ceph

    server = ceph()
    os.environ["AWS_ACCESS_KEY_ID"] = server.access_key
    os.environ["AWS_SECRET_ACCESS_KEY"] = server.secret_key
    return server.endpoint


def _fill(client: Any, objects: int) -> list[str]:
    """Objects of 12 to 48 kB, as labels are."""
    client.create_bucket(Bucket=_BUCKET)
    chance = random.Random(1)
    keys = [f"label/{number:06d}.png" for number in range(objects)]
    with ThreadPoolExecutor(8) as pool:
        bodies = [(key, chance.randbytes(chance.randrange(12_000, 48_000))) for key in keys]
        list(pool.map(lambda o: client.put_object(Bucket=_BUCKET, Key=o[0], Body=o[1]), bodies))
    return keys


def _rate(read: Callable[[str], bytes], keys: list[str], threads: int) -> tuple[float, float]:
    """Requests per second, and this process's CPU time per request [ms]."""
    began, cpu = time.perf_counter(), time.process_time()
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(read, keys):
            pass
    seconds, used = time.perf_counter() - began, time.process_time() - cpu
    return len(keys) / seconds, 1000 * used / len(keys)


if __name__ == "__main__":
    main()
