"""A bucket watched through a Kafka topic with IBM Cloud Object Storage's messages.

The broker is librdkafka's own mock cluster: a TCP server that speaks Kafka's protocol, in this
process. The bucket is moto's.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from catalog.errors import InvalidInput, StorageError
from ingest.watch import kafka_events
from ingest.watch.kafka_events import KafkaEvents, read_properties
from ingest.watch.object_events import ObjectMessages
from tests.ingest.s3_server import S3Server, free_port, moto
from tests.ingest.scene_folders import CAR, SKY, Home, add_frame, frame_key, make_tree
from tests.ingest.watch.messages import cos_event
from tests.ingest.watch.watching import add, undisturbed, wait_until_equal, watching_here

pytestmark = pytest.mark.wide

confluent_kafka = pytest.importorskip("confluent_kafka")
BUCKET = "kafka-watched"


class Broker:
    """A broker in this process.

    Attributes:
        servers: Where it listens.
    """

    def __init__(self) -> None:
        """Start it."""
        self._producer = confluent_kafka.Producer({"test.mock.num.brokers": 1, "log_level": 0})
        broker = next(iter(self._producer.list_topics(timeout=120).brokers.values()))
        self.servers = f"{broker.host}:{broker.port}"

    def send(self, topic: str, *messages: bytes) -> None:
        """Put messages into a topic."""
        for message in messages:
            self._producer.produce(topic, message)
        assert self._producer.flush(120) == 0

    def committed(self, topic: str, group: str) -> int:
        """How many messages of a topic a group is through with."""
        consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": self.servers, "group.id": group, "log_level": 0}
        )
        numbers = consumer.list_topics(topic, timeout=120).topics[topic].partitions
        partitions = [confluent_kafka.TopicPartition(topic, number) for number in numbers]
        offsets = consumer.committed(partitions, timeout=120)
        consumer.close()
        return sum(max(0, partition.offset) for partition in offsets)


@pytest.fixture(scope="module")
def broker() -> Broker:
    """A broker."""
    return Broker()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> S3Server:
    """moto, signed in."""
    running = moto()
    running.sign_in(monkeypatch, tmp_path)
    return running


def cos(*keys: str, bucket: str = BUCKET) -> list[bytes]:
    """Messages about keys."""
    return [json.dumps(cos_event(bucket, key)).encode() for key in keys]


def upload(server: S3Server, folder: Path, *keys: str) -> None:
    """Put files of a folder into the bucket, under drive/."""
    for key in keys:
        server.client().put_object(
            Bucket=BUCKET, Key=f"drive/{key}", Body=(folder / key).read_bytes()
        )


def test_objects_come_and_go(
    server: S3Server, broker: Broker, home: Home, empty_home: Path, tmp_path: Path
) -> None:
    """Written, removed and noise between: as a scan of the end; offsets follow the commits."""
    server.new_bucket(BUCKET)
    server.put_folder(BUCKET, make_tree(tmp_path / "tree"), "drive/")
    options: dict[str, Any] = {"endpoint_url": server.endpoint}
    uri = f"s3://{BUCKET}/drive"
    add(home, uri, **options)
    broker.send("objects", *cos("drive/" + frame_key("label", 77)))  # before anybody listened
    with watching_here(tmp_path / "home", f"kafka://{broker.servers}/objects") as watched:
        watched.until_listed()
        watched.until(lambda: broker.committed("objects", "framesift") == 1)
        add_frame(tmp_path / "tree", 9, [CAR, SKY])
        keys = [frame_key("camera", 9), frame_key("label", 9)]
        upload(server, tmp_path / "tree", *keys)
        broker.send("objects", b"\xff", b"", *cos("x", bucket="another"))
        broker.send("objects", *cos(*(f"drive/{key}" for key in keys), "elsewhere/z.png"))
        watched.until(lambda: home.rows("SELECT count(*) FROM t_car") == [(4,)])
        watched.until(lambda: broker.committed("objects", "framesift") == 7)
        server.client().delete_object(Bucket=BUCKET, Key="drive/" + frame_key("label", 1))
        broker.send("objects", *cos("drive/" + frame_key("label", 1)))
        wait_until_equal(
            watched, home, lambda: undisturbed(empty_home, tmp_path / "one", uri, **options)
        )
        assert [line.split(":")[0] for line in watched.warnings] == ["a message is passed over"] * 3
    # What is sent while nobody listens is given to the next watcher, and done with afterwards.
    broker.send("objects", *cos("drive/class_list.json"))
    with watching_here(tmp_path / "home", f"kafka://{broker.servers}/objects") as watched:
        watched.until(lambda: broker.committed("objects", "framesift") == 9)


def events(broker: Broker, topic: str, **properties: str) -> KafkaEvents:
    """A topic's events, as a watcher opens them."""
    messages = ObjectMessages(BUCKET, "", lambda line: None)
    return KafkaEvents(
        broker.servers, topic, {"group.id": "g", **properties}, messages, lambda line: None
    )


def taken(opened: KafkaEvents) -> set[str]:
    """The next places."""
    for _ in range(600):
        changes = opened.poll(0.2)
        if changes is not None:
            return set(changes.paths)
    raise AssertionError("nothing came")


def test_what_is_not_acknowledged_comes_again(broker: Broker) -> None:
    """At once, for a watcher that was killed between reading and its commit."""
    broker.send("again", b"{}")
    first = events(broker, "again")
    broker.send("again", *cos("a"))
    assert taken(first) == {"a"}
    second = events(broker, "again")  # the first did not say good-bye
    assert taken(second) == {"a"}
    second.acknowledge()
    broker.send("again", *cos("b"))
    third = events(broker, "again")
    assert taken(third) == {"b"}
    for opened in (first, second, third):
        opened.close()


def test_a_broker_that_does_not_answer(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """A StorageError with the address; a property that does not exist is an InvalidInput."""
    with pytest.raises(InvalidInput, match=r"no\.such\.property.*--events-config"):
        events(broker, "objects", **{"no.such.property": "secret"})
    monkeypatch.setattr(kafka_events, "_ANSWER_S", 1.0)
    messages = ObjectMessages(BUCKET, "", lambda line: None)
    with pytest.raises(StorageError, match="kafka://127"):
        KafkaEvents(f"127.0.0.1:{free_port()}", "t", {"group.id": "g"}, messages, lambda line: None)


def test_properties_are_read_from_a_file(tmp_path: Path) -> None:
    """As librdkafka's own tools take them; a wrong line is named and never repeated."""
    file = tmp_path / "kafka.properties"
    file.write_text("# who asks\nsasl.username = token\n\nsasl.password=a=b c\n")
    assert read_properties(file) == {"sasl.username": "token", "sasl.password": "a=b c"}
    file.write_text("secret")
    with pytest.raises(InvalidInput, match="line 1") as caught:
        read_properties(file)
    assert "secret" not in str(caught.value)
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_properties(tmp_path / "none")


def test_the_url_is_checked(server: S3Server, home: Home, tmp_path: Path) -> None:
    """Host and topic; no password in it."""
    server.new_bucket(BUCKET)
    server.put_folder(BUCKET, make_tree(tmp_path / "tree"))
    add(home, f"s3://{BUCKET}", endpoint_url=server.endpoint)
    for url in ("kafka://host:1", "kafka:///t", "kafka://user:pass@host:1/t"):
        with watching_here(tmp_path / "home", url) as watched:
            error = watched.ended()
        assert isinstance(error, InvalidInput)
        assert "kafka://HOST:PORT/TOPIC" in str(error)
        assert "pass" not in str(error)
