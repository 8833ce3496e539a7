"""The items of tenants and their API keys; what the index lists is read from the table itself."""

from collections.abc import Iterator

from functions.adapters.dynamodb import NOT_THERE, DynamoDBTable, Refused, Span
from functions.core import keys, tenants
from functions.core.errors import NewerSchema
from functions.core.items import DELETED, Item
from functions.core.keys import ItemKey
from functions.core.tenants import ApiKey, Tenant


class DynamoDBTenants:
    """core.api_ports.Tenants on the table."""

    def __init__(self, table: DynamoDBTable) -> None:
        self._table = table

    def create_tenant(self, tenant: Tenant) -> bool:
        try:
            # One that was deleted may be made anew: its tombstone gives way.
            free = f"{NOT_THERE} OR attribute_exists(#{DELETED})"
            self._table.put(tenants.tenant_item(tenant), free)
        except Refused as refused:
            # Equal when the answer to this very write was lost, and it was sent again.
            return refused.item is not None and tenants.parse_tenant(refused.item) == tenant
        return True

    def load_tenant(self, tenant_id: str) -> Tenant | None:
        item = self._table.get(keys.tenant_item(tenant_id))
        return None if item is None or DELETED in item else tenants.parse_tenant(item)

    def list_tenants(self) -> list[Tenant]:
        found = self._listed(keys.all_tenants())
        return [tenants.parse_tenant(item) for item in found if DELETED not in item]

    def each_tenant(self) -> list[Tenant | NewerSchema]:
        found = self._listed(keys.all_tenants())
        return [_parsed(item) for item in found if DELETED not in item]

    def set_retention(self, tenant_id: str, days: int | None) -> Tenant | None:
        expression = "REMOVE #retention_days" if days is None else "SET #retention_days = :days"
        values = {} if days is None else {":days": days}
        there = f"attribute_exists({keys.PARTITION}) AND attribute_not_exists(#{DELETED})"
        try:
            item = self._table.update(keys.tenant_item(tenant_id), expression, there, values)
        except Refused:
            return None
        return tenants.parse_tenant(item)

    def create_key(self, key: ApiKey) -> None:
        try:
            self._table.put(tenants.key_item(key), NOT_THERE)
        except Refused:
            return  # this very key: no two secrets share a hash

    def load_key(self, sha256: str) -> ApiKey | None:
        item = self._table.get(keys.api_key_item(sha256))
        return None if item is None else tenants.parse_key(item)

    def list_keys(self, tenant_id: str) -> list[ApiKey]:
        listed = self._listed(keys.all_api_keys(tenant_id), newest_first=True)
        return [tenants.parse_key(item) for item in listed]

    def revoke_key(self, key: ApiKey, revoked_at: int) -> None:
        self._change(
            key,
            "SET #status = :revoked, #revoked_at = :revoked_at",
            "#status = :active",
            {":active": tenants.ACTIVE, ":revoked": tenants.REVOKED, ":revoked_at": revoked_at},
        )

    def limit_key(self, key: ApiKey, valid_until: int) -> None:
        attributes = tenants.limit_attributes(valid_until)
        self._change(
            key,
            "SET " + ", ".join(f"#{name} = :{name}" for name in attributes),
            "#status = :active"
            " AND (attribute_not_exists(#valid_until) OR #valid_until > :valid_until)",
            {":active": tenants.ACTIVE, **{f":{name}": v for name, v in attributes.items()}},
        )

    def _change(self, key: ApiKey, expression: str, condition: str, values: Item) -> None:
        try:
            self._table.update(keys.api_key_item(key.sha256), expression, condition, values)
        except Refused:
            return  # it ends before already, or it is gone

    def _listed(
        self, bounds: tuple[str, str, str], *, newest_first: bool = False
    ) -> Iterator[Item]:
        """What the index lists between two keys, in its order, as it stands in the table now."""
        span = Span(*bounds, index=keys.BY_TENANT, newest_first=newest_first)
        for listed in self._table.pages(span):
            wanted = [ItemKey(item[keys.PARTITION], item[keys.SORT]) for item in listed]
            found = self._table.get_many(wanted, consistent=True)
            yield from (found[key] for key in wanted if key in found)


def _parsed(item: Item) -> Tenant | NewerSchema:
    try:
        return tenants.parse_tenant(item)
    except NewerSchema as newer:
        return newer
