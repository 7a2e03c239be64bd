"""Groups of one person are refused before the charge: by the unit itself, or by a column that is declared unique."""

import pyarrow as pa
import pytest

import discreet as dc
from discreet.kernel.loss import ZERO_LOSS
from discreet.policy import Policy, explain, write_policy

POLICY = """
[data]
name = "people"
ledger = ":memory:"
[budget]
epsilon = 4.0
delta = 1e-6
[tables.people]
source = "people.parquet"
unit = "person"
groups = 2
rows = 5
[tables.people.columns]
person = { type = "integer" }
email = { type = "text", unique = true }
bill = { type = "integer", between = [0, 99], unique = true }
city = { type = "text", in = ["Bonn", "Trier"] }
street = { type = "text" }
"""
ROWS = pa.table(
    {
        "person": [1, 2],
        "email": ["a@b", "c@d"],
        "bill": [1, 2],
        "city": ["Bonn", "Trier"],
        "street": ["Main", "Main"],
    }
)


@pytest.fixture(scope="module")
def curator():
    with dc.open(Policy.parse(POLICY), data={"people": ROWS}) as found:
        yield found


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT email, COUNT(*) FROM people GROUP BY email",
        "SELECT COUNT(*) FROM people GROUP BY city, email",
        "SELECT COUNT(*) FROM people GROUP BY bill",
        "SELECT DISTINCT email FROM people",
        "SELECT COUNT(*) FROM people GROUP BY LOWER(TRIM(email))",
        "SELECT COUNT(*) FROM people GROUP BY city || email",
        "SELECT COUNT(*) FROM people GROUP BY COALESCE(email, 'none')",
        "SELECT e, COUNT(*) FROM (SELECT UPPER(email) AS e FROM people) AS t GROUP BY e",
        "SELECT e, COUNT(*) FROM (SELECT person, email AS e FROM people GROUP BY 1, 2) AS t GROUP BY e",
        "SELECT COUNT(*) FROM (SELECT email FROM people UNION ALL SELECT street FROM people) AS t GROUP BY email",
        "SELECT MODE(bill) FROM people",
        "SELECT TOP_K(bill, 3) FROM people",
        "SELECT HISTOGRAM(bill) FROM people",
        "SELECT person, COUNT(*) FROM people GROUP BY person",
        "SELECT city, person, COUNT(*) FROM people GROUP BY city, person",
        "SELECT DISTINCT person FROM people",
    ],
)
def test_groups_of_one_are_refused_before_the_charge(curator, sql):
    with pytest.raises(dc.Refused, match=r"(group|unique).* COUNT\(DISTINCT"):
        curator.ask(sql, epsilon="1/10")
    assert curator.budget().spent == ZERO_LOSS
    assert not curator.ledger.events()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(DISTINCT email) FROM people",
        "SELECT city, COUNT(email) FROM people GROUP BY city",
        "SELECT street, COUNT(*) FROM people GROUP BY street",
        "SELECT LENGTH(email), COUNT(*) FROM people GROUP BY 1",
        "SELECT COUNT(*) FROM people GROUP BY SUBSTR(email, 1, 1)",
        "SELECT COUNT(*) FROM people GROUP BY bill / 10",
        "SELECT AVG(CLIP(n, 0, 5)) FROM (SELECT person, COUNT(*) AS n FROM people GROUP BY person) AS t WHERE n < 5",
        "SELECT MEDIAN(bill), MAX(bill) FROM people",
    ],
)
def test_columns_shared_by_many_units_can_be_grouped_by(curator, sql):
    assert curator.explain(sql, epsilon="1/10").paid != ZERO_LOSS


def test_a_policy_with_unique_columns_is_written_and_explained():
    policy = Policy.parse(POLICY)
    assert policy.tables["people"].columns["email"].unique
    assert Policy.parse(write_policy(policy)) == policy
    assert any("people.email and people.bill" in words for words in explain(policy))
