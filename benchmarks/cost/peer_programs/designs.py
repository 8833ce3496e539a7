"""Two designs that need no library but boto3, and do without a queue: a call is written as it ends.

Arguments: `put_per_step`, an item and an object a step; or `run_item` and how many bytes an entry
of its preview has: the same, and the run's counters and preview, on one item, by an UpdateItem a
step.
"""

import json
import sys
from typing import Any

from counted import Counted, bucket, steps, table

PREVIEW_ENTRIES = 100

counted = Counted()
dynamodb, s3 = counted.session.client("dynamodb"), counted.session.client("s3")
table_name, bucket_name = table(), bucket()
design, *entry_bytes = sys.argv[1:]


def put(number: int, step: dict[str, Any]) -> None:
    key = f"run/{number:06d}.json"
    s3.put_object(Bucket=bucket_name, Key=key, Body=json.dumps(step["payload"]).encode())
    item = {name: {"S": str(value)} for name, value in step.items() if name != "payload"}
    item |= {"PK": {"S": "RUN#run"}, "SK": {"S": f"STEP#{number:06d}"}, "object": {"S": key}}
    dynamodb.put_item(
        TableName=table_name, Item=item, ConditionExpression="attribute_not_exists(PK)"
    )


def count(number: int, step: dict[str, Any], size: int) -> None:
    values = {
        ":one": {"N": "1"},
        ":cost": {"N": step.get("cost_usd", "0")},
        ":tokens": {"N": str(step.get("input_tokens", 0))},
    }
    expression = "ADD calls :one, cost_usd :cost, input_tokens :tokens"
    if number < PREVIEW_ENTRIES:
        values |= {":entry": {"L": [{"S": step["step_id"].ljust(size, ".")}]}, ":none": {"L": []}}
        expression += " SET preview = list_append(if_not_exists(preview, :none), :entry)"
    dynamodb.update_item(
        TableName=table_name,
        Key={"PK": {"S": "RUN#run"}, "SK": {"S": "RUN"}},
        UpdateExpression=expression,
        ExpressionAttributeValues=values,
    )


recorded = steps()
for number, step in enumerate(recorded):
    put(number, step)
    if design == "run_item":
        count(number, step, int(entry_bytes[0]))
counted.tell(len(recorded))
