"""Messages about a bucket, as the senders' documentation shows them."""

import json
from typing import Any
from urllib.parse import quote_plus

_TIME = "2026-03-01T12:00:00.000Z"


def s3_event(bucket: str, *keys: str, name: str = "ObjectCreated:Put") -> dict[str, Any]:
    """S3's notification.

    https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html
    """
    return {
        "Records": [
            {
                "eventVersion": "2.1",
                "eventSource": "aws:s3",
                "awsRegion": "eu-central-1",
                "eventTime": _TIME,
                "eventName": name,
                "userIdentity": {"principalId": "AWS:AIDAJDPLRKLG7UEXAMPLE"},
                "requestParameters": {"sourceIPAddress": "127.0.0.1"},
                "responseElements": {"x-amz-request-id": "C3D13FE58DE4C810"},
                "s3": {
                    "s3SchemaVersion": "1.0",
                    "configurationId": "framesift",
                    "bucket": {
                        "name": bucket,
                        "ownerIdentity": {"principalId": "A3NL1KOZZKExample"},
                        "arn": f"arn:aws:s3:::{bucket}",
                    },
                    "object": {
                        "key": quote_plus(key, safe="/"),
                        "size": 1024,
                        "eTag": "d41d8cd98f00b204e9800998ecf8427e",
                        "sequencer": "0055AED6DCD90281E5",
                    },
                },
            }
            for key in keys
        ]
    }


def sns_event(event: dict[str, Any]) -> dict[str, Any]:
    """The same after an SNS topic, without raw delivery."""
    return {
        "Type": "Notification",
        "MessageId": "dc1e94d9-56c5-5e96-808d-cc7f68faa162",
        "TopicArn": "arn:aws:sns:eu-central-1:123456789012:frames",
        "Subject": "Amazon S3 Notification",
        "Message": json.dumps(event),
        "Timestamp": _TIME,
    }


def event_bridge_event(bucket: str, key: str) -> dict[str, Any]:
    """EventBridge's.

    https://docs.aws.amazon.com/AmazonS3/latest/userguide/ev-events.html
    """
    return {
        "version": "0",
        "id": "17793124-05d4-b198-2fde-7ededc63b103",
        "detail-type": "Object Created",
        "source": "aws.s3",
        "account": "123456789012",
        "time": _TIME,
        "region": "eu-central-1",
        "resources": [f"arn:aws:s3:::{bucket}"],
        "detail": {
            "version": "0",
            "bucket": {"name": bucket},
            "object": {"key": key, "size": 5, "etag": "b1946ac92492d2347c6235b4d2611184"},
            "reason": "PutObject",
        },
    }


def cos_event(bucket: str, key: str, event_type: str = "Object:Write") -> dict[str, Any]:
    """IBM Cloud Object Storage's.

    https://www.ibm.com/docs/en/coss/3.20.1?topic=workflow-notification-format
    """
    return {
        "format": "2.0",
        "request_id": "1c8b6e0c-9f6a-489d-a177-a9b0ac7d1d3e",
        "request_time": "2018-07-04T17:12:28.030Z",
        "event_type": event_type,
        "bucket_name": bucket,
        "bucket_uuid": "8b7bbeef-9f6a-192d-d839-a0b9a8c7f00d",
        "system_uuid": "48def817-f0a3-1949-abe2-9193be91de22",
        "system_name": "My DsNet",
        "object_version": "f3d83646-47be-4370-9557-3fa283dd0a5e",
        "object_name": key,
        "object_size": 1024,
    }
