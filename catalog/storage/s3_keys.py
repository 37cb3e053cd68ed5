"""Keys to S3 that no request could be signed with."""

from typing import Any

from catalog.errors import InvalidInput


def check_keys(session: Any) -> None:
    """Refuse fixed keys with a line end or a blank, as a file or a Kubernetes secret leaves them.

    HTTP libraries refuse them, too, by a message that shows the header, and with it a token.

    Args:
        session: A boto3.Session.

    Raises:
        InvalidInput: A key or token of the environment or of a profile has such a character.
    """
    from botocore.credentials import Credentials

    keys = session.get_credentials()
    if type(keys) is not Credentials:  # none, or such as are fetched and renewed
        return
    for name, value in (
        ("access key", keys.access_key),
        ("secret key", keys.secret_key),
        ("session token", keys.token or ""),
    ):
        if not value.isascii() or not value.isprintable() or " " in value:
            raise InvalidInput(
                f"the S3 {name} holds a line end, a blank or another character that no key has; "
                "set it again without (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, "
                "AWS_SESSION_TOKEN, or the profile)"
            )
