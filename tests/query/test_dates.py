"""Dates and times as Db2 reads, calculates and writes them."""

from calendar import monthrange
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from catalog.errors import SqlError
from catalog.store import CatalogStore
from query.run.run_sql import run_sql
from tests.query.catalogs import in_memory, listed_files, one, rows


def at(*parts: int) -> datetime:
    """A timestamp without a zone, as Db2's are."""
    return datetime(*parts)  # type: ignore[arg-type]  # noqa: DTZ001


QUICK = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("date('2020-01-31')", date(2020, 1, 31)),
        ("date(' 2020-1-5 ')", date(2020, 1, 5)),
        ("date('01/31/2020')", date(2020, 1, 31)),
        ("date('31.01.2020')", date(2020, 1, 31)),
        ("date('2020-01-31-10.11.12.123456')", date(2020, 1, 31)),
        ("date('2020-01-31 10:11:12')", date(2020, 1, 31)),
        ("date(timestamp('2020-01-31 10:11:12'))", date(2020, 1, 31)),
        ("date(1)", date(1, 1, 1)),
        ("date(737455)", date(2020, 1, 31)),
        ("date(null)", None),
        ("date '2020-01-31'", date(2020, 1, 31)),
        ("cast('2020-01-31' as date)", date(2020, 1, 31)),
        ("timestamp('2020-01-31-10.11.12.123456')", at(2020, 1, 31, 10, 11, 12, 123456)),
        ("timestamp('2020-01-31-10.11.12')", at(2020, 1, 31, 10, 11, 12)),
        ("timestamp('2020-01-31 10:11:12.5')", at(2020, 1, 31, 10, 11, 12, 500000)),
        ("timestamp('2020-01-31T10:11')", at(2020, 1, 31, 10, 11)),
        ("timestamp('2020-01-31')", at(2020, 1, 31)),
        ("timestamp('2020-01-31', '10.11.12')", at(2020, 1, 31, 10, 11, 12)),
        ("timestamp(date('2020-01-31'), '10:11:12')", at(2020, 1, 31, 10, 11, 12)),
        ("cast('2020-01-31 10:11:12' as timestamp(6))", at(2020, 1, 31, 10, 11, 12)),
        ("time('10.11.12')", time(10, 11, 12)),
        ("time('10:11')", time(10, 11)),
        ("time(timestamp('2020-01-31-10.11.12'))", time(10, 11, 12)),
        ("char(timestamp('2020-01-31 10:11:12'))", "2020-01-31-10.11.12.000000"),
        ("char(date('01/31/2020'))", "2020-01-31"),
    ],
)
def test_conversions(store: CatalogStore, expression: str, expected: object) -> None:
    """ISO texts, Db2's own form of a timestamp, American and European dates, day numbers."""
    assert one(store, expression) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("date('2020-01-31') + 1 month", date(2020, 2, 29)),
        ("date('2020-03-31') - 1 month", date(2020, 2, 29)),
        ("date('2020-02-29') + 1 year", date(2021, 2, 28)),
        ("date('2020-01-31') + 1 day + 1 month", date(2020, 3, 1)),
        ("date('2020-01-31') + 1 month + 1 day", date(2020, 3, 1)),
        ("date('2020-01-01') - 7 days", date(2019, 12, 25)),
        ("date('2020-01-01') + '3' days", date(2020, 1, 4)),
        ("date('2020-01-01') + (1 + 2) days", date(2020, 1, 4)),
        ("date('2020-01-01') + 2.9 days", date(2020, 1, 3)),
        ("date('2020-01-01') + -1 day", date(2019, 12, 31)),
        ("timestamp('2020-01-01 00:00:00') - 2 hours", at(2019, 12, 31, 22)),
        ("timestamp('2020-01-01 00:00:00') + 90 minutes", at(2020, 1, 1, 1, 30)),
        ("timestamp('2020-01-01 00:00:00') + 1.5 seconds", at(2020, 1, 1, 0, 0, 1, 500000)),
        ("timestamp('2020-01-01') + 7 microseconds", at(2020, 1, 1, 0, 0, 0, 7)),
        ("timestamp('2020-01-31') + 1 month", at(2020, 2, 29)),
        ("time('23:30:00') + 1 hour", time(0, 30)),
        ("date('2020-03-15') - date('2019-12-31')", Decimal(215)),
        ("date('2019-12-31') - date('2020-03-15')", Decimal(-215)),
        ("days('2020-01-31')", 737455),
        ("days(date('2020-01-31')) - days('2020-01-01')", 30),
        ("year('2020-01-31')", 2020),
        ("month(date('2020-01-31'))", 1),
        ("day(timestamp('2020-01-31-10.11.12'))", 31),
        ("hour('10:11:12')", 10),
        ("minute(timestamp('2020-01-31-10.11.12'))", 11),
        ("second('2020-01-31-10.11.12.5')", 12),
        ("microsecond(timestamp('2020-01-31-10.11.12.000345'))", 345),
        ("dayofweek('2020-02-02')", 1),
        ("dayofweek_iso('2020-02-02')", 7),
        ("dayofyear('2020-12-31')", 366),
        ("week('2021-01-01')", 1),
        ("week('2021-01-03')", 2),
        ("week_iso('2021-01-01')", 53),
        ("quarter('2021-04-01')", 2),
        ("varchar_format(timestamp('2020-01-31-10.11.12'), 'YYYY-MM-DD HH24:MI:SS')",
         "2020-01-31 10:11:12"),
        ("to_char(date('2020-01-31'), 'dd.mm.yy')", "31.01.20"),
    ],
)  # fmt: skip
def test_calculations(store: CatalogStore, expression: str, expected: object) -> None:
    """Labelled durations, differences and functions; a month ends where it ends."""
    assert one(store, expression) == expected


@pytest.mark.parametrize(
    ("expression", "sqlcode"),
    [
        ("date('2020-02-30')", -180),
        ("date('yesterday')", -180),
        ("date('infinity')", -180),
        ("timestamp('-infinity')", -180),
        ("cast('infinity' as timestamp)", -180),
        ("timestamp '2020-13-01'", -180),
        ("time('25:00')", -180),
        ("days('x')", -180),
        ("date('9999-12-31') + 1 day", -183),
        ("date('2020-01-01') - 3000 years", -183),
        ("timestamp('2020-01-01') + 9000 years", -183),
        ("date('2020-01-01') + 1", -182),
        ("date('2020-01-01') - 1", -182),
        ("date('2020-01-01') * 2", -182),
        ("date('2020-01-01') + 1 hour", -182),
        ("time('10:00') + 1 day", -182),
        ("'2020-01-01' + 1 day", -182),
        ("1 + 1 day", -182),
        ("- 1 day", -182),
        ("current timestamp - current date", -182),
        ("date('2020-01-01') + current date", -182),
        ("varchar_format(current date, 'Q')", -171),
        ("varchar_format('x', fkey)", -171),
        ("varchar_format(1, 'YYYY')", -171),
        ("days()", -440),
        ("date(1, 2)", -440),
        ("timestampdiff(16, 'x')", -180),
        ("timestampdiff(3, '1')", -171),
        ("timestampdiff(16)", -440),
    ],
)
def test_errors(store: CatalogStore, expression: str, sqlcode: int) -> None:
    """Text that is no date, dates out of range, and sums that mean nothing."""
    with pytest.raises(SqlError) as error:
        one(store, expression)
    assert error.value.sqlcode == sqlcode, error.value


def test_today_is_in_utc(store: CatalogStore) -> None:
    """CURRENT DATE, CURRENT TIME and CURRENT TIMESTAMP agree with the clock."""
    before = datetime.now(UTC).replace(tzinfo=None)
    ((now, today, clock, week),) = rows(
        store,
        "values (current timestamp, current date, current time, current date - 7 days)",
    )
    after = datetime.now(UTC).replace(tzinfo=None)
    assert isinstance(now, datetime)
    assert isinstance(today, date)
    assert isinstance(clock, time)
    assert before - timedelta(seconds=1) <= now <= after
    assert before.date() <= today <= after.date()
    assert week == today - timedelta(days=7)


def test_the_time_in_memory(store: CatalogStore) -> None:
    """It is that of each statement, also where a cursor's transaction began with an earlier one."""
    hot = in_memory(store)
    text = "select current timestamp, 'current_timestamp', \"1\" from (values ('x')) as t(\"1\")"
    for _ in range(3):
        before = datetime.now(UTC).replace(tzinfo=None)
        assert rows(hot, "select count(*) from metaocean") == [(len(listed_files()),)]
        ((now, *texts),) = rows(hot, text)
        assert texts == ["current_timestamp", "x"]
        assert isinstance(now, datetime)
        assert before <= now <= datetime.now(UTC).replace(tzinfo=None)


def test_files_by_their_age(store: CatalogStore) -> None:
    """What clients ask: files changed within so many days."""
    count = "select count(*) from metaocean where"
    ((files,),) = rows(store, f"{count} mtime is not null")
    assert files == len(listed_files())
    for condition in (
        "mtime > current timestamp - 40 years",
        "mtime + 1 month > '1980-01-01'",
        "mtime <= '2199-12-31-23.59.59.999999'",
        "mtime < '12/31/2199'",
        "date(mtime) between '1980-01-01' and current date + 1 day",
        "days(current date) - days(mtime) < 20000",
        "year(mtime) in (select year(mtime) from metaocean)",
    ):
        assert rows(store, f"{count} {condition}") == [(files,)], condition


def test_the_types_of_results(store: CatalogStore) -> None:
    """A date stays one through MIN, CASE and COALESCE, so that durations can be added."""
    text = (
        "select min(date(mtime)) + 1 day, coalesce(mtime, ctime) + 1 day,"
        " case when 1 = 1 then date('2020-01-31') end + 1 month"
        " from metaocean group by mtime, ctime"
    )
    kinds = [str(kind) for kind in run_sql(store, text).rows.schema.types]
    assert kinds == ["date32[day]", "timestamp[us]", "date32[day]"]


def week_by_hand(day: date) -> int:
    """Db2's SQL reference, "WEEK": weeks begin on Sunday, 1 January is always in the first."""
    sundays = [date(day.year, 1, 1) + timedelta(days=n) for n in range(1, day.timetuple().tm_yday)]
    return 1 + sum(sunday.isoweekday() == 7 for sunday in sundays)


@QUICK
@given(day=st.dates(date(1, 1, 2), date(9998, 1, 1)), days=st.integers(-1000, 1000))
@example(day=date(2021, 1, 2), days=0)
@example(day=date(2023, 1, 1), days=0)
def test_days_and_dates(store: CatalogStore, day: date, days: int) -> None:
    """DAYS is Python's ordinal, DATE its inverse, and durations of days are differences of it."""
    shifted = max(1, day.toordinal() + days) - day.toordinal()
    row = rows(
        store,
        f"values (days('{day}'), date({day.toordinal()}), date('{day}') + {shifted} days,"
        f" dayofweek('{day}'), week_iso('{day}'), dayofyear('{day}'), week('{day}'))",
    )
    assert row == [
        (
            day.toordinal(), day, day + timedelta(days=shifted), day.isoweekday() % 7 + 1,
            day.isocalendar().week, day.timetuple().tm_yday, week_by_hand(day),
        )
    ]  # fmt: skip


def difference_by_hand(high: date, low: date) -> int:
    """Db2's SQL reference, "Date arithmetic": days are borrowed from the earlier date's month."""
    year, month, day = low.year, low.month, high.day - low.day
    if day < 0:
        day += monthrange(low.year, low.month)[1]
        month += 1
    months = (high.year - year) * 12 + high.month - month
    return months // 12 * 10_000 + months % 12 * 100 + day


@QUICK
@given(one_day=st.dates(date(1, 1, 1)), other=st.dates(date(1, 1, 1)))
@example(one_day=date(2000, 1, 1), other=date(1999, 2, 2))
@example(one_day=date(2001, 3, 1), other=date(2000, 1, 31))
def test_differences_of_dates(store: CatalogStore, one_day: date, other: date) -> None:
    """Years, months and days as yyyymmdd, negative where the first is the earlier one."""
    low, high = sorted((one_day, other))
    row = rows(store, f"values (date('{high}') - date('{low}'), date('{low}') - date('{high}'))")
    expected = difference_by_hand(high, low)
    assert row == [(expected, -expected)]
