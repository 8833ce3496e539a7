"""A write that a stale holder cannot do: DynamoDB compares the fencing number as it writes."""

from typing import Any, Final

FENCE: Final = "fence"


def fenced_put(fence: int, put: dict[str, Any], attribute: str = FENCE) -> dict[str, Any]:
    """Arguments of boto3's `put_item` (the client's) that write the item with its fencing number,
    unless one with a higher number is there: then DynamoDB answers ConditionalCheckFailedException.

    `put` is what would be written otherwise; a condition of its own must hold as well. An item that
    is deleted takes its number along.
    """
    # https://martin.kleppmann.com/2016/02/08/how-to-do-distributed-locking.html
    condition = "(attribute_not_exists(#runtally_fence) OR #runtally_fence <= :runtally_fence)"
    if own := put.get("ConditionExpression"):
        condition = f"({own}) AND {condition}"
    return {
        **put,
        "Item": {**put["Item"], attribute: {"N": str(fence)}},
        "ConditionExpression": condition,
        "ExpressionAttributeNames": {
            **put.get("ExpressionAttributeNames", {}),
            "#runtally_fence": attribute,
        },
        "ExpressionAttributeValues": {
            **put.get("ExpressionAttributeValues", {}),
            ":runtally_fence": {"N": str(fence)},
        },
    }
