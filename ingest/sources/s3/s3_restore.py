"""Restoring an archived object of S3 (Glacier, Deep Archive) or IBM COS (Archive).

Source: https://docs.aws.amazon.com/AmazonS3/latest/API/API_RestoreObject.html and
https://cloud.ibm.com/docs/cloud-object-storage?topic=cloud-object-storage-archive
"""

from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from ingest.sources.archived import RestoreRequest
from ingest.sources.s3.s3_bucket import S3Bucket
from ingest.sources.s3.s3_page import ARCHIVED

_IS_ASKED = "RestoreAlreadyInProgress"


def restored(bucket: S3Bucket, key: str, label: str, request: RestoreRequest) -> bool:
    """True where an object can be read now; requests an archived one, once.

    Raises:
        BadFile: It vanished, or may not be restored.
        StorageError: The server cannot be reached, or refuses everything.
    """
    try:
        about = bucket.client.head_object(Bucket=bucket.name, Key=key)
        if 'ongoing-request="true"' in about.get("Restore", ""):
            return False
        # Of INTELLIGENT_TIERING, which brings an object back for good.
        is_tiered = "ArchiveStatus" in about
        is_archived = is_tiered or about.get("StorageClass") in ARCHIVED
        if not is_archived or "ongoing-request" in about.get("Restore", ""):
            return True
        restore_request: dict[str, Any] = {"GlacierJobParameters": {"Tier": request.tier}}
        if not is_tiered:
            restore_request["Days"] = request.days
        bucket.client.restore_object(Bucket=bucket.name, Key=key, RestoreRequest=restore_request)
    except ClientError as error:
        if error.response["Error"]["Code"] == _IS_ASKED:
            return False
        raise bucket.object_trouble(error, label) from error
    except BotoCoreError as error:
        raise bucket.object_trouble(error, label) from error
    return False
