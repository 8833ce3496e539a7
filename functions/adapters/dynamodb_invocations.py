"""The items of invocations: made once, settled once, whoever comes first."""

from typing import Final

from functions.adapters.dynamodb import NOT_THERE, DynamoDBTable, Refused
from functions.core import invocations, keys
from functions.core.errors import NotFound
from functions.core.invocations import Invocation, InvocationStatus, Settlement
from functions.core.keys import InvocationRef
from functions.core.times import SECOND

# An item past its time is gone, though DynamoDB may not have deleted it yet.
_GONE: Final = f"{NOT_THERE} OR #{keys.EXPIRES} <= :now"
_PENDING: Final = f"#status = :pending AND #{keys.EXPIRES} > :now"


class DynamoDBInvocations:
    """core.api_ports.Invocations on the table."""

    def __init__(self, table: DynamoDBTable) -> None:
        self._table = table

    def create_invocation(self, invocation: Invocation) -> Invocation:
        item = invocations.invocation_item(invocation)
        try:
            self._table.put(item, _GONE, {":now": invocation.created_at // SECOND})
        except Refused as refused:
            if refused.item is not None:
                return invocations.parse_invocation(refused.item)
        return invocation

    def load_invocation(self, ref: InvocationRef) -> Invocation | None:
        item = self._table.get(keys.invocation_item(ref))
        return None if item is None else invocations.parse_invocation(item)

    def mark_sent(self, ref: InvocationRef, sent_at: int) -> None:
        there = f"attribute_exists({keys.PARTITION}) AND attribute_not_exists(#sent_at)"
        key = keys.invocation_item(ref)
        try:
            self._table.update(key, "SET #sent_at = :sent_at", there, {":sent_at": sent_at})
        except Refused:
            return  # it says so already, or it is gone

    def settle_invocation(
        self, ref: InvocationRef, settlement: Settlement
    ) -> tuple[bool, Invocation]:
        attributes = invocations.settlement_attributes(settlement)
        now_s = settlement.ended_at // SECOND
        values = {":pending": InvocationStatus.PENDING.value, ":now": now_s}
        try:
            item = self._table.update(
                keys.invocation_item(ref),
                "SET " + ", ".join(f"#{name} = :{name}" for name in attributes),
                _PENDING,
                values | {f":{name}": value for name, value in attributes.items()},
            )
        except Refused as refused:
            if refused.item is not None:
                stands = invocations.parse_invocation(refused.item)
                if not stands.is_gone(settlement.ended_at):
                    return False, stands
            raise NotFound("there is no such invocation") from None
        return True, invocations.parse_invocation(item)
