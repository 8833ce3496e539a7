"""A tenant's records on a stage, read in this process by the API's own operations.

No HTTP and no API key: the account's own rights let it in, as they let the functions in.
"""

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, Final, Self, cast

import msgspec
from cyclopts import Parameter

from functions.adapters.dynamodb import DynamoDBTable
from functions.adapters.dynamodb_reading import DynamoDBRunReader
from functions.adapters.dynamodb_tenants import DynamoDBTenants
from functions.adapters.settings import ApiSettings
from functions.api import operations, shapes
from functions.api.handler import api_over
from functions.api.operations import OPERATIONS, Api, Request
from functions.api.pages import Page
from functions.api.tenants import ManageTenants
from functions.core.errors import NotFound, Rejected
from functions.core.keys import RunRef
from local.commands import LocalStageError
from local.connect import Connect, StageOptions
from local.stage import Stage

TENANT_VARIABLE: Final = "RUNTALLY_TENANT_ID"
_ROWS_A_PAGE: Final = 100
_BY_NAME: Final = {operation.name: operation for operation in OPERATIONS}
_PATH_NAMES: Final = frozenset(operations.PATH_TYPES)


@dataclass(frozen=True, slots=True)
class Reading:
    """One tenant's view of a stage."""

    stage: Stage
    api: Api
    tenant_id: str

    @classmethod
    def of(cls, stage: Stage, tenant_id: str) -> Self:
        settings = ApiSettings(
            table=stage.table_name,
            bucket=stage.bucket_name,
            event_queue_url=stage.event_queue_url,
            retention_days=stage.retention_days,
            service_entries=json.loads(stage.service_entry_queue_urls),
            erasure_queue_url=stage.erasure_queue_url,
        )
        api = api_over(stage.dynamodb, stage.s3, stage.sqs, settings, time.time_ns)
        return cls(stage, api, tenant_id)

    def ask(self, name: str, **given: str | None) -> Any:
        """What the API's operation of that name answers to these parameters; None is none given.

        Raises NotFound and Rejected, as the API does.
        """
        operation = _BY_NAME[name]
        texts = {key: text for key, text in given.items() if text is not None}
        path = {key: texts.pop(key) for key in _PATH_NAMES & texts.keys()}
        request = Request(
            tenant_id=self.tenant_id,
            path=operations.path_of(operation, path),
            query=operations.query_of(operation, texts) if operation.query else None,
            body=b"",
            late=lambda: False,
        )
        return operation.act(self.api, request)

    def runs(self, limit: int | None, **wanted: str | None) -> "Listed":
        """The runs that `wanted` names as the API's list does, newest first."""
        return Listed(self, limit, wanted)

    @property
    def reader(self) -> DynamoDBRunReader:
        return DynamoDBRunReader(_table_of(self.stage))

    def ref(self, run_id: str) -> RunRef:
        return RunRef(self.tenant_id, run_id)


class Listed:
    """Runs page after page, up to a limit. `cursor`, once they are taken, is for what follows."""

    def __init__(self, reading: Reading, limit: int | None, wanted: Mapping[str, str | None]):
        self._reading = reading
        self._wanted = wanted
        self._left = limit
        self.cursor: str | None = None

    def __iter__(self) -> Iterator[shapes.ListedRun]:
        while self._left is None or self._left > 0:
            at_once = min(_ROWS_A_PAGE, self._left or _ROWS_A_PAGE)
            page: Page = self._reading.ask(
                "listRuns", **self._wanted, limit=str(at_once), cursor=self.cursor
            )
            for row in page.rows:
                if self._left is not None:
                    self._left -= 1
                yield cast("shapes.ListedRun", row.value)
            self.cursor = page.rest()
            if self.cursor is None:
                return


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class TenantOptions(StageOptions):
    """What all commands share that read a tenant's records."""

    tenant: Annotated[
        str | None,
        Parameter(
            help="Whose records to read; needed when the stage has more than one tenant.",
            env_var=TENANT_VARIABLE,
        ),
    ] = None

    @contextmanager
    def reading(self, connect: Connect) -> Iterator[Reading]:
        """The tenant's view for the length of a `with` block; what is refused in it is explained.

        Raises LocalStageError.
        """
        with self.connected(connect) as stage:
            tenant_id = self.tenant or _only_tenant(stage)
            try:
                yield Reading.of(stage, tenant_id)
            except NotFound as missing:
                advice = "`runtally runs` lists what there is; `--tenant` names another tenant."
                raise LocalStageError(f"Tenant {tenant_id}: {missing}.", advice) from None
            except Rejected as rejected:
                failed = f"Refused: {rejected.field}: {rejected.detail}."
                raise LocalStageError(failed, "`--help` says what is expected.") from None


def register(stage: Stage, tenant_ids: Iterable[str]) -> None:
    """Make the tenants that are not there yet. Raises LocalStageError for an id that is none."""
    manage = ManageTenants(DynamoDBTenants(_table_of(stage)), time.time_ns)
    for tenant_id in sorted(set(tenant_ids)):
        try:
            manage.create_tenant(tenant_id)
        except Rejected as rejected:
            if rejected.reason != "tenant_exists":
                advice = "Give another one with `--tenant`."
                raise LocalStageError(f"Refused: {rejected.detail}.", advice) from None


def tenant_ids(stage: Stage) -> list[str]:
    """All tenants of a stage. One made a moment ago may be missing."""
    return [tenant.tenant_id for tenant in DynamoDBTenants(_table_of(stage)).list_tenants()]


def write_json(answer: msgspec.Struct) -> None:
    """An answer of the API as one line on standard output."""
    sys.stdout.buffer.write(msgspec.json.encode(answer) + b"\n")
    sys.stdout.flush()


def write_json_rows(
    head: msgspec.Struct | None,
    name: str,
    rows: Iterable[msgspec.Struct],
    rest: Callable[[], str | None] = lambda: None,
) -> None:
    """As `write_json`, with `rows` of any number in a list, written as they come, and `next`."""
    out = sys.stdout.buffer
    out.write(b"{" if head is None else msgspec.json.encode(head)[:-1] + b",")
    out.write(f'"{name}":['.encode())
    for number, row in enumerate(rows):
        out.write((b"," if number else b"") + msgspec.json.encode(row))
    cursor = rest()
    out.write(b"]" if cursor is None else b'],"next":' + msgspec.json.encode(cursor))
    out.write(b"}\n")
    sys.stdout.flush()


def _only_tenant(stage: Stage) -> str:
    tenants = tenant_ids(stage)
    if len(tenants) == 1:
        return tenants[0]
    if not tenants:
        advice = "Name one with `--tenant`, or make one: `runtally tenants create ID`."
        raise LocalStageError("The stage has no tenants yet.", advice)
    failed = f"The stage has {len(tenants)} tenants: {', '.join(tenants)}."
    raise LocalStageError(failed, f"Name one with `--tenant`, or in {TENANT_VARIABLE}.")


def _table_of(stage: Stage) -> DynamoDBTable:
    return DynamoDBTable(stage.dynamodb, stage.table_name)
