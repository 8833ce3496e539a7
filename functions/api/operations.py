"""The operations of the API, one by one: path, parameters, answer, and what answers.

This table is all that the handler routes by, and all that the OpenAPI document is made from.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from functions.api import shapes
from functions.api.auth import Authenticate
from functions.api.comparison import CompareRuns
from functions.api.deletions import DeleteRun, ReadDeletion
from functions.api.events import AcceptEvents
from functions.api.insights import InsightsWanted, SummarizeRuns, runs_to_compare
from functions.api.otlp import AcceptOtlp
from functions.api.pages import Page
from functions.api.payloads import ReadStored, Sized
from functions.api.runs import CallsWanted, ListRuns, ReadRun, RunsWanted
from functions.api.service_entries import InvocationWanted, Invoke, ReadInvocation
from functions.core.errors import Rejected
from functions.core.keys import RunRef
from runtally import wire

PREFIX: Final = "/api/v1"

type Answer = Struct | Page | Sized[Any]


@dataclass(frozen=True, slots=True)
class Api:
    """The use cases, wired."""

    authenticate: Authenticate
    list_runs: ListRuns
    read_run: ReadRun
    stored: ReadStored
    summarize_runs: SummarizeRuns
    compare_runs: CompareRuns
    accept_events: AcceptEvents
    accept_otlp: AcceptOtlp
    invoke: Invoke
    read_invocation: ReadInvocation
    delete_run: DeleteRun
    read_deletion: ReadDeletion


@dataclass(frozen=True, slots=True)
class Request:
    """What an operation gets: who asks, and what for. `late` says when to come to an end."""

    tenant_id: str
    path: Mapping[str, str]
    query: Any
    body: bytes
    late: Callable[[], bool]

    @property
    def run(self) -> RunRef:
        return RunRef(self.tenant_id, self.path["run_id"])


PATH_TYPES: Final[Mapping[str, Any]] = {
    "run_id": wire.RunId,
    "step_id": wire.StepId,
    "invocation_id": wire.InvocationId,
    "name": str,
}

_NUMBERS: Final = frozenset({"limit"})
"""The parameters of queries that are no texts."""


@dataclass(frozen=True, slots=True)
class Operation:
    method: Literal["GET", "POST", "DELETE"]
    path: str
    name: str
    summary: str
    answer: Any
    act: Callable[[Api, Request], Answer]
    query: type[Struct] | None = None
    body: Any = None
    status: HTTPStatus = HTTPStatus.OK
    errors: tuple[HTTPStatus, ...] = ()
    location: str = ""
    """Where to ask what became of it: a path like `path`, with the same names."""
    path_names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        names = tuple(part[1:-1] for part in self.path.split("/") if part.startswith("{"))
        object.__setattr__(self, "path_names", names)


_MISSING: Final = (HTTPStatus.NOT_FOUND,)
_DELETION: Final = "/pipeline-runs/{run_id}/deletion"


def _insights(api: Api, request: Request) -> shapes.Insights | shapes.Comparison:
    wanted: InsightsWanted = request.query
    compared = runs_to_compare(wanted)
    if compared is not None:
        return api.compare_runs(request.tenant_id, *compared)
    return api.summarize_runs(request.tenant_id, wanted, request.late)


OPERATIONS: Final = (
    Operation(
        "GET",
        "/pipeline-runs",
        "listRuns",
        "Runs, newest first",
        shapes.RunPage,
        lambda api, it: api.list_runs(it.tenant_id, it.query, it.late),
        query=RunsWanted,
    ),
    Operation(
        "GET",
        "/pipeline-runs/{run_id}",
        "readRun",
        "A run with every call",
        shapes.RunDetail,
        lambda api, it: api.read_run(it.run, it.query),
        query=CallsWanted,
        errors=_MISSING,
    ),
    Operation(
        "GET",
        "/pipeline-runs/{run_id}/result",
        "readResult",
        "The whole result of a run",
        shapes.WholeResult,
        lambda api, it: api.stored.result(it.run),
        errors=_MISSING,
    ),
    Operation(
        "GET",
        "/pipeline-runs/{run_id}/calls/{step_id}/payload",
        "readPayload",
        "The payload of a call",
        shapes.Payload,
        lambda api, it: api.stored.payload(it.run, it.path["step_id"]),
        errors=_MISSING,
    ),
    Operation(
        "GET",
        "/pipeline-runs/{run_id}/calls/{step_id}/event",
        "readEvent",
        "The event that recorded a call",
        shapes.Event,
        lambda api, it: api.stored.event(it.run, it.path["step_id"]),
        errors=_MISSING,
    ),
    Operation(
        "GET",
        "/insights",
        "readInsights",
        "Many runs by pipeline and phase, or two runs compared",
        shapes.Insights | shapes.Comparison,
        _insights,
        query=InsightsWanted,
        errors=_MISSING,
    ),
    Operation(
        "POST",
        "/service-entries/{name}/invocations",
        "invoke",
        "Have a service entry do something",
        shapes.Invocation,
        lambda api, it: api.invoke(it.tenant_id, it.path["name"], it.body),
        body=InvocationWanted,
        status=HTTPStatus.ACCEPTED,
        errors=(*_MISSING, HTTPStatus.CONFLICT, HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
    ),
    Operation(
        "GET",
        "/invocations/{invocation_id}",
        "readInvocation",
        "What became of an invocation",
        shapes.Invocation,
        lambda api, it: api.read_invocation(it.tenant_id, it.path["invocation_id"]),
        errors=_MISSING,
    ),
    Operation(
        "POST",
        "/events",
        "sendEvents",
        "Record events of one run",
        shapes.EventsAccepted,
        lambda api, it: api.accept_events(it.tenant_id, it.body),
        body=wire.Envelope,
        status=HTTPStatus.ACCEPTED,
        errors=(HTTPStatus.FORBIDDEN, HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
    ),
    Operation(
        "DELETE",
        "/pipeline-runs/{run_id}",
        "deleteRun",
        "Delete a run with all that was recorded of it",
        shapes.Deletion,
        lambda api, it: api.delete_run(it.run),
        status=HTTPStatus.ACCEPTED,
        errors=_MISSING,
        location=_DELETION,
    ),
    Operation(
        "GET",
        _DELETION,
        "readDeletion",
        "The receipt of a deletion",
        shapes.Deletion,
        lambda api, it: api.read_deletion(it.run),
        errors=_MISSING,
    ),
)


def path_of(operation: Operation, given: Mapping[str, str]) -> dict[str, str]:
    """The ids of a path, each of its form. Raises Rejected with the name of the one that is not."""
    return {name: _convert(given[name], PATH_TYPES[name], name) for name in operation.path_names}


def query_of(operation: Operation, given: Mapping[str, str]) -> Struct | None:
    """The parameters of a query. Raises Rejected with the name of the one that is wrong."""
    if operation.query is None:
        return None
    known = {f.encode_name for f in msgspec.structs.fields(operation.query)}
    for name in given:
        if name not in known:
            raise Rejected("unknown_parameter", name, f"known are: {', '.join(sorted(known))}")
    # Whatever is a text stays one: read laxly, a pipeline `null` would be no filter at all.
    numbers = {
        name: _convert(given[name], int, name, strict=False) for name in _NUMBERS & given.keys()
    }
    converted: Struct = _convert({**given, **numbers}, operation.query, "")
    return converted


def _convert(value: Any, into: Any, field_name: str, *, strict: bool = True) -> Any:
    try:
        return msgspec.convert(value, into, strict=strict)
    except msgspec.ValidationError as error:
        raise wire.rejected(str(error), field_name) from None
