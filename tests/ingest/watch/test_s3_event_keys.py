"""Which objects the messages of S3, SNS, EventBridge and IBM Cloud Object Storage name."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.errors import InvalidInput
from ingest.watch.s3_event_keys import changed_keys
from tests.ingest.watch.messages import cos_event, event_bridge_event, s3_event, sns_event


def test_a_notification_names_url_encoded_keys() -> None:
    """AWS encodes as HTML forms do; both readings are given, because other servers do not."""
    body = json.dumps(s3_event("b", "drive 1/ü+%/label.png", "other"))
    assert "drive+1/%C3%BC%2B%25/label.png" in body
    assert changed_keys(body, "b") >= {"drive 1/ü+%/label.png", "other"}


def test_removals_and_several_records() -> None:
    """What happened does not matter; every record of the bucket counts, others do not."""
    event = s3_event("b", "x", name="ObjectRemoved:Delete")
    event["Records"] += s3_event("elsewhere", "y")["Records"]
    assert changed_keys(json.dumps(event), "b") == {"x"}


def test_wrapped_by_sns() -> None:
    """A topic between bucket and queue puts the notification into its Message."""
    assert changed_keys(json.dumps(sns_event(s3_event("b", "x y"))), "b") >= {"x y"}


def test_event_bridge() -> None:
    """Its keys are as they are."""
    assert "a+b c" in changed_keys(json.dumps(event_bridge_event("b", "a+b c")), "b")


def test_ibm_cos() -> None:
    """Notification format 2.0, in any order of its fields."""
    event = cos_event("b", "a/b.png")
    assert changed_keys(json.dumps(event).encode(), "b") == {"a/b.png"}
    assert changed_keys(json.dumps(dict(reversed(event.items()))), "b") == {"a/b.png"}


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("", "not JSON"),
        (b"\xff\xfe\x00", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("null", "names no object"),
        ('{"Records": {}}', "names no object"),
        ('{"Records": [null, 7, {"s3": []}, {"s3": {"object": {"key": 7}}}]}', "names no object"),
        ('{"Message": "x"}', "names no object"),
        ('{"Message": "{"}', "names no object"),
        ('{"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": "b"}', "S3's test"),
        (json.dumps(s3_event("c", "x")), "bucket c, expected b"),
        (json.dumps(cos_event("c", "x")), "bucket c, expected b"),
        (json.dumps(s3_event("b", "folder/")), "names no object"),
        (json.dumps(s3_event("b", "")), "names no object"),
        (json.dumps(cos_event("b", "x" * 1025)), "names no object"),
        (json.dumps(cos_event("b", "\ud800")), "names no object"),
    ],
)
def test_poison_is_refused_with_a_reason(message: str | bytes, reason: str) -> None:
    """Anything else is an InvalidInput that says why, never another exception."""
    with pytest.raises(InvalidInput, match=reason):
        changed_keys(message, "b")


_JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["Records", "s3", "bucket", "object", "name", "key", "Message", "detail", "bucket_name",
             "object_name", "Event"]
        ),
        inner,
        max_size=4,
    ),
    max_leaves=20,
)  # fmt: skip


@given(_JSON)
def test_no_document_breaks_it(document: object) -> None:
    """Documents of the known names in any shape give keys or an InvalidInput."""
    try:
        keys = changed_keys(json.dumps(document), "b")
    except InvalidInput:
        return
    assert keys
