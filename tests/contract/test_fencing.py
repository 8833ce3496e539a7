"""F42: DynamoDB refuses the write of a stale holder, on the fake and on the embedded AWS."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from runtally.coordination import fenced_put
from tests.contract.conftest import Services
from tests.contract.dynamodb_lines import s
from tests.contract.place import Place

pytestmark = pytest.mark.xdist_group("contract")


@pytest.fixture
def place(services: Services) -> Place:
    return Place(services)


def write(place: Place, fence: int, text: str, **request: Any) -> bool:
    """Whether the holder with this fencing number may write it."""
    put = {**place.table, "Item": {**place.key, "text": s(text)}, **request}
    try:
        place.dynamodb.put_item(**fenced_put(fence, put))
    except ClientError as error:
        if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
            raise
        return False
    return True


def written(place: Place) -> str:
    item = place.get()
    assert item is not None
    return str(item["text"]["S"])


def test_a_lower_number_is_refused_once_a_higher_one_has_written(place: Place) -> None:
    first, second = 1_796_054_883_578_516, 1_796_054_883_578_517
    assert write(place, first, "by the first")
    assert write(place, first, "by the first, again")
    assert write(place, second, "by the second")
    assert not write(place, first, "by the first, which was stalled")
    assert written(place) == "by the second"
    assert write(place, second, "by the second, again")


def test_a_condition_of_its_own_must_hold_as_well(place: Place) -> None:
    own = {
        "ConditionExpression": "attribute_not_exists(#text) OR #text = :before",
        "ExpressionAttributeNames": {"#text": "text"},
        "ExpressionAttributeValues": {":before": s("one")},
    }
    assert write(place, 5, "one", **own)
    assert not write(place, 4, "two", **own)
    assert write(place, 6, "two", **own)
    assert not write(place, 7, "three", **own)
    assert written(place) == "two"


def test_what_is_handed_over_stays_as_it_is() -> None:
    put = {"TableName": "t", "Item": {"PK": s("a")}}
    assert fenced_put(7, put, attribute="guard")["Item"] == {"PK": s("a"), "guard": {"N": "7"}}
    assert put == {"TableName": "t", "Item": {"PK": s("a")}}
