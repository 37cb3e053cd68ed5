"""A job's owner as its caller: what the account may do when a step of the job begins."""

from typing import TYPE_CHECKING

from api.services.accounts.callers import NOBODY_ASKED
from api.services.accounts.owners import caller_of
from api.services.call import Call
from catalog.errors import NotFound
from catalog.records.jobs import recorded_job
from catalog.values import Owner
from pipeline.jobs.workflow.moves import ASKED
from pipeline.jobs.workflow.owners import REMEDY, check_owner

if TYPE_CHECKING:
    from api.workspace import Workspace
    from catalog.records.tables import Job


def call_of(home: "Workspace", job: "Job") -> Call:
    """A home for the owner of a job on a dataset.

    Raises:
        NotAllowed: The owner was removed, is disabled, or may not write any more.
    """
    submitter = job.request[ASKED]
    if submitter["is_command"]:
        return Call(home, is_command=True)
    if not submitter["caller"]:  # a server that does not authenticate
        return Call(home, NOBODY_ASKED)
    owner = Owner(submitter["caller"], job.account)
    return Call(home, caller_of(home.records, owner, submitter["scope"], f"job {job.name}", REMEDY))


def check_begin(home: "Workspace", name: str) -> None:
    """Go on only where a job's owner may still begin what a process of this machine does for it.

    Raises:
        NotAllowed: The owner was removed, is disabled, or may not write any more.
    """
    try:
        job = recorded_job(home.records, name)
    except NotFound:  # of a script that starts its training by itself
        return
    check_owner(home.records, job)
