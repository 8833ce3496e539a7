"""What a tenant has in the table, for deleting it."""

from collections.abc import Iterator, Sequence
from itertools import batched
from typing import Final

from functions.adapters.dynamodb import KEYS_A_DELETE, DynamoDBTable, Refused, Span
from functions.core import keys
from functions.core.items import DELETED, Item, key_attributes
from functions.core.keys import ItemKey, RunRef
from functions.core.schema import SCHEMA_VERSION, VERSION, refuse_newer
from functions.core.tenant_deletion import SEGMENTS

_KEYS: Final = (keys.PARTITION, keys.SORT)
_EVER: Final = 10**19


class DynamoDBTenantData:
    """core.tenant_deletion.TenantData on the table."""

    def __init__(self, table: DynamoDBTable) -> None:
        self._table = table

    def delete_keys(self, tenant_id: str) -> int:
        listed = Span(*keys.all_api_keys(tenant_id), index=keys.BY_TENANT)
        return sum(self._delete(page) for page in self._table.pages(listed))

    def runs_of_tenant(self, tenant_id: str) -> Iterator[RunRef]:
        listed = Span(*keys.runs_between(tenant_id, 0, _EVER), index=keys.BY_TENANT)
        for page in self._table.pages(listed):
            for item in page:
                yield keys.parse_run_partition(item[keys.PARTITION])[0]

    def unfinished_deletions(self, tenant_id: str) -> int:
        return sum(
            keys.parse_run_partition(item[keys.PARTITION])[0].tenant_id == tenant_id
            for shard in range(keys.OPEN_RUN_SHARDS)
            for page in self._table.pages(Span(*keys.deletions_before(shard, _EVER), index="GSI2"))
            for item in page
        )

    def delete_invocations(self, tenant_id: str, segment: int) -> int:
        prefix = keys.invocations_of_tenant(tenant_id)
        pages = self._table.scan(prefix, segment, SEGMENTS, (keys.SORT,))
        return sum(self._delete(page) for page in pages)

    def has_tenant(self, tenant_id: str) -> bool:
        return self._table.get(keys.tenant_item(tenant_id)) is not None

    def bury_tenant(self, tenant_id: str, deleted_at: int, expires_at: int) -> int:
        tombstone = {
            **key_attributes(keys.tenant_item(tenant_id)),
            DELETED: deleted_at,
            VERSION: SCHEMA_VERSION,
            keys.EXPIRES: expires_at,
        }
        lives = (
            f"attribute_not_exists(#{DELETED})"
            f" AND (attribute_not_exists(#{VERSION}) OR #{VERSION} <= :{VERSION})"
        )
        try:
            self._table.put(tombstone, lives, {f":{VERSION}": SCHEMA_VERSION})
        except Refused as refused:
            stands = refused.item or {}
            refuse_newer(stands)
            return int(stands[DELETED])
        return deleted_at

    def _delete(self, found: Sequence[Item]) -> int:
        for batch in batched(found, KEYS_A_DELETE, strict=False):
            self._table.delete_many([ItemKey(*(item[name] for name in _KEYS)) for item in batch])
        return len(found)
