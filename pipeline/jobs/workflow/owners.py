"""Whether the owner of a job may still have it go on."""

from catalog.accounts import users
from catalog.records.store import RecordStore
from catalog.records.tables import Job
from catalog.values import COMMAND, Owner

REMEDY = "another user may submit it anew"


def check_owner(records: RecordStore, job: Job) -> None:
    """Go on only where a job's owner may still have a step of it begin.

    A run of a policy has the policy's rights, whoever started it.

    Raises:
        NotAllowed: The owner was removed, is disabled, or may not write any more.
    """
    if job.account in ("", COMMAND) or job.kind == "policy":
        return
    users.active(records, Owner(job.user, job.account), f"job {job.name}", REMEDY)
