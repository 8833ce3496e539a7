"""Whether command line, deployed functions and stored items are of versions that go together."""

from collections import defaultdict
from collections.abc import Iterator
from importlib.metadata import version
from typing import Final

from functions.adapters import settings
from functions.adapters.dynamodb import DynamoDBTable, Span
from functions.core import keys, schema
from functions.core.keys import ItemKey, RunRef
from functions.core.schema import SCHEMA_VERSION
from local.checks import Finding
from local.reading import tenant_ids
from local.stage import Stage

_UNKNOWN: Final = "unknown"
_MOST_TENANTS: Final = 100
_ALWAYS: Final = (0, 10**19)


def deployed_version(stage: Stage) -> Iterator[Finding]:
    """The functions' version, as CDK told them, beside this command line's."""
    functions = stage.client("lambda")
    names: dict[str, list[str]] = defaultdict(list)
    for name in stage.functions:
        configuration = functions.get_function_configuration(FunctionName=name)
        told = configuration.get("Environment", {}).get("Variables", {})
        number, of_items = (
            told.get(variable, _UNKNOWN) for variable in (settings.VERSION, settings.SCHEMA_VERSION)
        )
        names[f"{number}, schema {of_items}"].append(name)
    here = f"{version('runtally-stage')}, schema {SCHEMA_VERSION}"
    if set(names) == {here}:
        yield Finding("deployed version", True, here)
    elif len(names) > 1:
        said = "; ".join(f"{what}: {', '.join(sorted(names[what]))}" for what in sorted(names))
        advice = "A deployment did not get to its end: deploy the stacks again."
        yield Finding("deployed version", False, said, advice)
    else:
        said = f"{next(iter(names))}; this command line is {here}"
        advice = "Deploy the stacks with this version, or use the command line of theirs."
        yield Finding("deployed version", False, said, advice)


def schema_of_items(stage: Stage) -> Iterator[Finding]:
    """The schema of each tenant's newest run: what was written last is what may be too new."""
    table = DynamoDBTable(stage.dynamodb, stage.table_name)
    newest = [ref for tenant in tenant_ids(stage)[:_MOST_TENANTS] for ref in _newest(table, tenant)]
    wanted: list[ItemKey] = []
    for ref in newest:
        wanted += [keys.item_of_run(ref, keys.RUN), keys.item_of_run(ref, keys.SUMMARY)]
    found = [schema.version_of(item) for item in table.get_many(wanted, consistent=False).values()]
    if not found:
        yield Finding("schema of items", None, "not checked: there are no runs yet")
        return
    known = max(found) <= SCHEMA_VERSION
    said = f"{max(found)}, of the newest run of each tenant; this version reads {SCHEMA_VERSION}"
    advice = "Update this command line, and the stacks if they were rolled back."
    yield Finding("schema of items", known, said, "" if known else advice)


def _newest(table: DynamoDBTable, tenant_id: str) -> Iterator[RunRef]:
    span = Span(*keys.runs_between(tenant_id, *_ALWAYS), index=keys.BY_TENANT, newest_first=True)
    for item in table.page(span, limit=1).items:
        yield RunRef(tenant_id, keys.parse_listed_run(item[keys.BY_TENANT_SORT])[1])
