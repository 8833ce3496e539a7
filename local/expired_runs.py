"""Runs that TTL took from the table, and of which the lake of the stage still has files."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from functions.adapters.dynamodb import DynamoDBTable
from functions.adapters.dynamodb_deletions import DynamoDBTombstones
from functions.adapters.s3_lake_versions import S3LakeVersions
from functions.adapters.sqs import SqsErasures
from functions.core import deletions
from functions.core.errors import NotFound, Rejected
from functions.core.keys import RunRef
from local.at_once import each_done
from local.stage import Stage

_AT_ONCE: Final = 16
_NO_RUN_IS_SO_OLD: Final = 0
"""So that of a run that the table has, none is deleted."""


def delete_expired(stage: Stage, tenant_id: str) -> Iterator[bool]:
    """Of each file of the tenant's calls, whether the deletion of its run begins with this.

    These runs are older than any retention of a tenant, which is shorter than the stage's; the
    sweep does not see them, since it goes by RUN. Repeating it asks for unfinished work again.
    """
    delete = _DeleteExpired(
        DynamoDBTombstones(DynamoDBTable(stage.dynamodb, stage.table_name)),
        SqsErasures(stage.sqs, stage.erasure_queue_url),
        stage.retention_days,
    )
    runs = S3LakeVersions(stage.s3, stage.lake_bucket).runs_of_tenant(tenant_id)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        yield from each_done(pool, _AT_ONCE, delete, runs)


@dataclass(frozen=True, slots=True)
class _DeleteExpired:
    """May be called from several threads."""

    tombstones: DynamoDBTombstones
    erasures: SqsErasures
    retention_days: int

    def __call__(self, ref: RunRef) -> bool:
        now_ns = time.time_ns()
        try:
            deletion = deletions.begin(
                ref,
                now_ns=now_ns,
                retention_days=self.retention_days,
                tombstones=self.tombstones,
                erasures=self.erasures,
                at_rest_before=_NO_RUN_IS_SO_OLD,
            )
        except (NotFound, Rejected):  # it is there, or no run's file
            return False
        return deletion.requested_at == now_ns
