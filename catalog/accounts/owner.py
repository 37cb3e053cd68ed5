"""The owner of what a user makes: an account, which no later user of the same name inherits."""

from dataclasses import dataclass

COMMAND = "command"
"""In place of an account: who gives commands on a home may do everything there."""


@dataclass(frozen=True)
class Owner:
    """A user as the owner of a dataset, a job, a policy...

    Attributes:
        name: The user's, which is shown; empty for nobody.
        account: Tells users apart who had the same name one after the other: `User.account`,
            COMMAND, or empty where nobody authenticated.
    """

    name: str = ""
    account: str = ""


NOBODY = Owner()
"""The owner of what the machine's own command line makes, and a server that does not
authenticate."""
