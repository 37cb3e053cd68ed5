"""How many records there are."""

from sqlalchemy import func, select

from catalog.records.store import RecordStore
from catalog.records.tables import Dataset, Job, Source


def record_counts(records: RecordStore) -> tuple[int, int, int]:
    """Numbers of sources, versions of datasets, and jobs; of a limited user only the user's own.

    How many datasets of others such a user sees, only a look at each would say; and a user who may
    list no sources counts none.
    """
    owner = records.owner
    datasets = select(func.count()).select_from(Dataset).where(Dataset.removed.is_(None))
    jobs = select(func.count()).select_from(Job)
    with records.reading() as session:
        if owner.name:
            is_own = (Dataset.owner == owner.name) & (Dataset.account == owner.account)
            is_own_job = (Job.owner == owner.name) & (Job.account == owner.account)
            own, own_jobs = datasets.where(is_own), jobs.where(is_own_job)
            return 0, session.scalar(own) or 0, session.scalar(own_jobs) or 0
        sources = session.scalar(select(func.count()).select_from(Source)) or 0
        return sources, session.scalar(datasets) or 0, session.scalar(jobs) or 0
