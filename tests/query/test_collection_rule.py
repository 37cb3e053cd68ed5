"""What can be the rule of a collection."""

import pytest

from catalog.errors import InvalidInput
from query.collection_rule import check_rule, rows_of


@pytest.mark.parametrize(
    "rule",
    ["datasource = 'a2d2'", "DATASOURCE IN ('a', 'b') and size > 1000", "filename like 'camera%'",
     "collection is null or collection = 'open'", "upper(owner) = 'ANNA'", '"group" = \'x\'',
     "not (site = 'MUC')", "1 = 1", "size between 1 and 5 -- comment"],
)  # fmt: skip
def test_conditions_on_metaocean(rule: str) -> None:
    """Any condition on its columns."""
    check_rule(rule)


@pytest.mark.parametrize(
    "rule",
    ["", "car > 1", "fkey in (select fkey from t_car)", "exists (select 1 from metaocean)",
     "size > 1; delete from files", "1=1) or (1=1", "1=1 union select 1", "size >", "t.size > 1",
     "lake.main.files.size > 1", "read_text('/etc/passwd') = 'x'", "size > ?", "size > $1",
     "current_setting('x') = 'y'", "\ud800", "1=1 order by size", "* = 1", "label_file = 'x'",
     "nosuchfunction(size) = 1"],
)  # fmt: skip
def test_what_is_none(rule: str) -> None:
    """Tags, other rows, other tables, functions, parameters, more than a condition."""
    with pytest.raises(InvalidInput, match="rule"):
        check_rule(rule)


def test_rules_in_duckdb_s_terms() -> None:
    """Conditions on a row called metaocean, each in brackets of its own; none is no row."""
    assert rows_of([]) == "false"
    made = rows_of(["size > 1 or site = 'x'", "owner = 'a' -- ) or (1 = 1"])
    assert made == (
        """(((RTRIM(("metaocean"."owner"), ' ')) = 'a')) OR """
        """(("metaocean"."size" > 1 OR (RTRIM(("metaocean"."site"), ' ')) = 'x'))"""
    )
    assert "1 = 1" not in made
    assert "SELECT" not in made
    assert rows_of(["size > 1", "size > 1"]) == rows_of(["size > 1"])
