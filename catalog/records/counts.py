"""How many records there are."""

from catalog.records.reading import Records


def record_counts(records: Records) -> tuple[int, int, int]:
    """Numbers of sources, versions of datasets, and jobs; of a limited user only the user's own.

    How many datasets of others such a user sees, only a look at each would say; and a user who may
    list no sources counts none.
    """
    owner = records.owner
    datasets = "SELECT count(*) FROM datasets WHERE removed IS NULL"
    jobs = "SELECT count(*) FROM jobs"
    if owner.name:
        own = "owner = :owner AND account = :account"
        counted = f"SELECT 0, ({datasets} AND {own}), ({jobs} WHERE {own})"
        rows = records.rows(counted, owner=owner.name, account=owner.account)
    else:
        rows = records.rows(f"SELECT (SELECT count(*) FROM sources), ({datasets}), ({jobs})")
    sources, known, jobs_begun = rows[0]
    return sources, known, jobs_begun
