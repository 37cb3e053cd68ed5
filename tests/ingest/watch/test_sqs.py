"""A bucket watched through an SQS queue; moto serves both and sends S3's notifications itself."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import boto3
import pytest

from catalog.errors import InvalidInput, StorageError
from ingest.sources.source_options import SourceOptions
from ingest.watch.object_events import ObjectMessages
from ingest.watch.sqs_events import SqsEvents
from tests.api.servers import wait_until
from tests.ingest.s3_server import S3Server, free_port, moto
from tests.ingest.scene_folders import CAR, SKY, Home, add_frame, frame_key, make_tree
from tests.ingest.watch.messages import event_bridge_event, s3_event, sns_event
from tests.ingest.watch.watching import (
    add,
    undisturbed,
    wait_until_equal,
    watching,
    watching_here,
)

pytestmark = pytest.mark.wide

BUCKET = "sqs-watched"
POISON = [
    "no JSON", "{}", "[]", '{"Records": 7}', json.dumps(s3_event("another", "x")),
    json.dumps({"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": BUCKET}),
]  # fmt: skip


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> S3Server:
    """moto, signed in, with an empty bucket."""
    running = moto()
    running.sign_in(monkeypatch, tmp_path)
    running.new_bucket(BUCKET)
    return running


class Queue:
    """A queue.

    Attributes:
        url: Its URL.
    """

    def __init__(self, server: S3Server, name: str, hidden_s: int = 600) -> None:
        """Make it anew where it was there; what is received is given again so much later."""
        self._client = boto3.client(
            "sqs",
            endpoint_url=server.endpoint,
            aws_access_key_id=server.access_key,
            aws_secret_access_key=server.secret_key,
            region_name="us-east-1",
        )
        # A purge is allowed once a minute.
        for url in self._client.list_queues(QueueNamePrefix=name).get("QueueUrls", ()):
            if url.rpartition("/")[2] == name:
                self._client.delete_queue(QueueUrl=url)
        self.url: str = self._client.create_queue(
            QueueName=name, Attributes={"VisibilityTimeout": str(hidden_s)}
        )["QueueUrl"]

    @property
    def arn(self) -> str:
        """Its name for notifications."""
        return str(self._attribute("QueueArn"))

    def left(self) -> int:
        """How many messages it holds, received ones included."""
        names = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
        return sum(int(self._attribute(name)) for name in names)

    def _attribute(self, name: str) -> Any:
        attributes = self._client.get_queue_attributes(QueueUrl=self.url, AttributeNames=[name])
        return attributes["Attributes"][name]

    def send(self, *bodies: str) -> None:
        """Put messages in."""
        for body in bodies:
            self._client.send_message(QueueUrl=self.url, MessageBody=body)


def options(server: S3Server) -> dict[str, Any]:
    """How the source is reached."""
    return {"endpoint_url": server.endpoint}


def test_notifications_of_the_bucket_itself(
    server: S3Server, home: Home, empty_home: Path, tmp_path: Path
) -> None:
    """The bucket tells the queue of every object: written, replaced, removed."""
    queue = Queue(server, "notified")
    client = server.client()
    client.put_bucket_notification_configuration(
        Bucket=BUCKET,
        NotificationConfiguration={
            "QueueConfigurations": [
                {"QueueArn": queue.arn, "Events": ["s3:ObjectCreated:*", "s3:ObjectRemoved:*"]}
            ]
        },
    )
    tree = make_tree(tmp_path / "tree")
    server.put_folder(BUCKET, tree, "drive 1/")
    uri = f"s3://{BUCKET}/drive 1"
    add(home, uri, **options(server))
    with watching_here(tmp_path / "home", queue.url) as watched:
        watched.until_listed()
        add_frame(tree, 9, [CAR, SKY])
        add_frame(tree, 1, [SKY, SKY])
        for key in (frame_key(kind, number) for kind in ("camera", "label") for number in (1, 9)):
            client.put_object(Bucket=BUCKET, Key=f"drive 1/{key}", Body=(tree / key).read_bytes())
        client.delete_object(Bucket=BUCKET, Key="drive 1/" + frame_key("label", 2))
        client.put_object(Bucket=BUCKET, Key="elsewhere/x.png", Body=b"1")
        wait_until_equal(
            watched, home, lambda: undisturbed(empty_home, tmp_path / "one", uri, **options(server))
        )
        watched.until(lambda: queue.left() == 0)
        assert not any(batch["whole"] for batch in watched.batches[1:])
    client.put_bucket_notification_configuration(Bucket=BUCKET, NotificationConfiguration={})


def test_poison_never_blocks(server: S3Server, home: Home, tmp_path: Path) -> None:
    """Each such message is said and deleted; the objects around them are cataloged."""
    queue = Queue(server, "poisoned")
    tree = make_tree(tmp_path / "tree")
    server.put_folder(BUCKET, tree)
    add(home, f"s3://{BUCKET}", **options(server))
    queue.send(*POISON)
    with watching_here(tmp_path / "home", queue.url) as watched:
        watched.until_listed()
        watched.until(lambda: queue.left() == 0)
        add_frame(tree, 9, [CAR, SKY])
        add_frame(tree, 10, [CAR, SKY])
        server.put_folder(BUCKET, tree)
        queue.send(POISON[0], json.dumps(sns_event(s3_event(BUCKET, frame_key("label", 9)))))
        queue.send(json.dumps(event_bridge_event(BUCKET, frame_key("label", 10))), POISON[1])
        watched.until(lambda: home.rows("SELECT count(*) FROM t_car") == [(5,)])
        watched.until(lambda: queue.left() == 0)
    assert len(watched.warnings) == len(POISON) + 2, watched.warnings
    assert all("a message is passed over: " in line for line in watched.warnings)


def test_a_killed_watcher_leaves_its_messages(server: S3Server, home: Home, tmp_path: Path) -> None:
    """A real kill after the messages were received: the queue gives them again, to the next."""
    queue = Queue(server, "killed", hidden_s=2)
    tree = make_tree(tmp_path / "tree")
    server.put_folder(BUCKET, tree)
    source = add(home, f"s3://{BUCKET}", **options(server))
    queue.send(*(json.dumps(s3_event(BUCKET, frame_key("label", n))) for n in range(30)))
    opened = SqsEvents(
        queue.url,
        SourceOptions.from_json(source.options),
        ObjectMessages(BUCKET, "", lambda line: None),
        lambda line: None,
    )
    wait_until(lambda: opened.poll(1) is not None)  # received, and never acknowledged
    opened.close()
    assert queue.left() == 30
    with watching(tmp_path / "home", "--events", queue.url) as watched:
        watched.until_listed()
        watched.until(lambda: queue.left() == 0)
        assert watched.end() == 0
    assert watched.warnings == []


def test_what_cannot_be_reached(server: S3Server) -> None:
    """No such queue, by name and by URL, no server, no such profile: one line each."""

    def opened(url: str, **more: Any) -> SqsEvents:
        messages = ObjectMessages(BUCKET, "", lambda line: None)
        return SqsEvents(url, SourceOptions(**more), messages, lambda line: None)

    with pytest.raises(StorageError, match=r"queue http.*/none"):
        opened(f"{server.endpoint}/123456789012/none")
    with pytest.raises(StorageError, match="queue http"):
        opened(f"http://127.0.0.1:{free_port()}/123456789012/none")
    with pytest.raises(InvalidInput, match="profile 'nobody'"):
        opened("sqs://queue", profile="nobody")


def test_the_extra_is_imported_late() -> None:
    """Watching a folder needs neither boto3 nor librdkafka."""
    code = "import sys, api.cli.main, ingest.watch.choice; print(*sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert not {"boto3", "obstore", "confluent_kafka", "watchdog"} & set(run.stdout.split())
