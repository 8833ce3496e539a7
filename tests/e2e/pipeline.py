"""A deployed pipeline, as one test sees it: its run goes in, items and objects come out."""

import gzip
from collections.abc import Sequence
from typing import Any

from functions.adapters.dynamodb import DynamoDBTable
from functions.api import shapes
from functions.core import keys
from functions.core.items import Item
from functions.core.keys import Pointer, RunRef
from local import waiting
from local.recordings import Recording
from local.sending import send
from local.stage import Stage
from runtally import wire
from tests import build

WITHIN_S = 60


class Pipeline:
    def __init__(self, stage: Stage, run_id: str) -> None:
        self.stage = stage
        self.ref = RunRef("acme", run_id)
        self.table = DynamoDBTable(stage.dynamodb, stage.table_name)

    def body(self, *events: wire.Event) -> bytes:
        return build.body(*events, run=self.ref).encode()

    def send(self, *bodies: bytes) -> None:
        send(self.stage, [Recording(self.ref.tenant_id, self.ref.run_id, bodies)])

    def summarised(self, steps: int) -> shapes.ListedRun:
        (result,) = waiting.until_summarised(self.stage, [(self.ref, steps)], WITHIN_S)
        return result

    def item(self, which: keys.Whole) -> Item:
        item = self.table.get(keys.item_of_run(self.ref, which))
        assert item is not None
        return item

    def steps(self) -> list[Item]:
        return list(self.table.query(keys.run_partition(self.ref), keys.STEP_PREFIX, ()))

    def stored_line(self, step: Item) -> bytes:
        """The event behind a step's pointer, read as a reader does: a range of the run's object."""
        pointer = Pointer.parse(step["pointer"])
        answer = self.stage.s3.get_object(
            Bucket=self.stage.bucket_name,
            Key=keys.object_of_run(self.ref, pointer.name),
            Range=f"bytes={pointer.offset}-{pointer.offset + pointer.length - 1}",
        )
        return gzip.decompress(answer["Body"].read()).removesuffix(b"\n")

    def dead_letters(self) -> Sequence[dict[str, Any]]:
        """This run's messages in the dead letter queue, which keeps them."""
        answer = self.stage.sqs.receive_message(
            QueueUrl=self.stage.event_queue_dead_letter_url,
            MaxNumberOfMessages=10,
            VisibilityTimeout=0,
            MessageAttributeNames=["All"],
        )
        found: list[dict[str, Any]] = [dict(message) for message in answer.get("Messages", [])]
        return [message for message in found if f'"{self.ref.run_id}"' in message["Body"]]
