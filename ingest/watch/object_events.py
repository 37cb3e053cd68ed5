"""From messages about a bucket to paths of a source."""

from collections.abc import Callable, Iterable

from catalog.errors import InvalidInput
from ingest.watch.s3_event_keys import changed_keys

_SHOWN_CHARACTERS = 120


class ObjectMessages:
    """Reads messages about the bucket of a source; warns of those that cannot be used."""

    def __init__(self, bucket: str, prefix: str, warn: Callable[[str], None]) -> None:
        """Read for a source.

        Args:
            prefix: What the source's keys begin with there; empty, or ends in a slash.
            warn: Called with a line for each message that is passed over.
        """
        self.bucket, self.prefix, self._warn = bucket, prefix, warn

    def paths(self, messages: Iterable[str | bytes]) -> set[str]:
        """The source's keys that the messages name."""
        paths: set[str] = set()
        for message in messages:
            try:
                keys = changed_keys(message, self.bucket)
            except InvalidInput as error:
                self._warn(f"a message is passed over: {error}: {_excerpt(message)}")
                continue
            below = (key[len(self.prefix) :] for key in keys if key.startswith(self.prefix))
            paths.update(key for key in below if key)
        return paths


def _excerpt(message: str | bytes) -> str:
    text = repr(message[: _SHOWN_CHARACTERS + 1])
    return text if len(message) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "..."
