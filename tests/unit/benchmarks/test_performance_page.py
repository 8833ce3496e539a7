"""docs/performance.md: tables that a command writes, and a text that stays."""

import pytest

from tools import performance_tables
from tools.performance_tables import PAGES, TABLES, filled


def test_each_table_has_its_spot_and_each_spot_a_table() -> None:
    pages = "".join(page.read_text() for page in PAGES)
    for name in TABLES:
        assert pages.count(f"<!-- {name} -->\n|") == 1
    assert pages.count("<!-- end -->") == len(TABLES)


def test_a_spot_is_filled_and_the_text_around_it_stays() -> None:
    found = {"cost": {"by_fan_out": {"1": {"counted_usd": 3.018}, "8": {"counted_usd": 1.4}}}}
    page = "Before.\n\n<!-- fan out -->\n| old |\n<!-- end -->\n\nBehind.\n"
    table = (
        "| calls at once, at the defaults | 1 | 8 |\n| --- | ---: | ---: |\n"
        "| $ counted | 3.02 | 1.40 |"
    )
    once = filled(page, found)
    assert once == f"Before.\n\n<!-- fan out -->\n{table}\n<!-- end -->\n\nBehind.\n"
    assert filled(once, found) == once


def test_a_spot_without_a_table_is_an_error() -> None:
    with pytest.raises(KeyError, match="unheard of"):
        filled("<!-- unheard of -->\n<!-- end -->", {})
    assert "unheard of" not in performance_tables.TABLES
