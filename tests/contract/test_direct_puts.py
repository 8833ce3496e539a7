"""Ingest over the client that it has on AWS: its puts never reach boto3's, and say the same."""

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.credentials import Credentials

from functions.adapters.attributes import to_attributes
from functions.adapters.direct_puts import with_direct_puts
from functions.adapters.dynamodb import NOT_THERE, DynamoDBTable, Refused
from functions.adapters.settings import IngestSettings
from functions.core import keys
from functions.core.keys import ItemKey, RunRef
from functions.ingest.handler import ingest_over
from tests import build
from tests.contract.conftest import Services

pytestmark = pytest.mark.xdist_group("contract")

PUT = "before-call.dynamodb.PutItem"
STANDS = {"text": 'é "語"\n😀', "bytes": b"\x00\xff", "some": {"list": [1, None, True]}}


@pytest.fixture
def by_boto3(emulated: Services) -> Iterator[list[str]]:
    """A name for each put that boto3 made."""
    made: list[str] = []

    def note(**_: Any) -> None:
        made.append("PutItem")

    emulated.dynamodb.meta.events.register(PUT, note)
    yield made
    emulated.dynamodb.meta.events.unregister(PUT, note)


@pytest.fixture
def direct(emulated: Services) -> Iterator[Any]:
    signer = emulated.dynamodb._request_signer
    frozen = signer._credentials.get_frozen_credentials()
    client: Any = with_direct_puts(
        emulated.dynamodb, Credentials(frozen.access_key, frozen.secret_key)
    )
    yield client
    client._pool.close()


def test_steps_are_stored_and_duplicates_and_conflicts_told(
    emulated: Services, direct: Any, by_boto3: list[str], ref: RunRef
) -> None:
    names = (emulated.table_name, emulated.bucket, emulated.queue_url, 30, emulated.queue_url)
    ingest = ingest_over(
        direct, emulated.s3, emulated.sqs, IngestSettings(*names), lambda: build.T0
    )
    first, second = build.step(1), build.step(2, payload={"text": "語"})
    stored = ingest.record(build.body(build.started(), first, second, run=ref))
    assert (stored.stored, stored.duplicates, stored.conflicts) == (2, 0, ())
    again = ingest.record(build.body(first, build.step(2, name="other"), run=ref))
    assert (again.stored, again.duplicates) == (0, 1)
    assert again.conflicts == (second.step_id,)
    steps = emulated.table.query(keys.run_partition(ref), keys.STEP_PREFIX)
    assert [step[keys.SORT] for step in steps] == [
        keys.STEP_PREFIX + step.step_id for step in (first, second)
    ]
    assert by_boto3 == []
    consumed = ingest.table.take_consumption()
    assert consumed["WriteUnits"] >= 3
    assert consumed["RefusedWrites"] == 2


def test_an_item_comes_back_as_it_was_put(
    emulated: Services, direct: Any, by_boto3: list[str], ref: RunRef
) -> None:
    table = DynamoDBTable(direct, emulated.table_name)
    item = {keys.PARTITION: ref.run_id, keys.SORT: "a", **STANDS}
    table.put(item, NOT_THERE)
    with pytest.raises(Refused) as refused:
        table.put(item | {"text": "other"}, NOT_THERE)
    assert refused.value.item == item == table.get(ItemKey(ref.run_id, "a"))
    assert by_boto3 == []


def test_boto3_tells_what_is_wrong_with_a_put(
    emulated: Services, direct: Any, by_boto3: list[str]
) -> None:
    with pytest.raises(emulated.dynamodb.exceptions.ResourceNotFoundException):
        direct.put_item(TableName="not-there", Item=to_attributes({"PK": "a", "SK": "b"}))
    assert by_boto3 == ["PutItem"]
