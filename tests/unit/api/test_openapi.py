"""The document that says what the API does: whole, valid, and as it is published."""

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
import schemathesis

from functions.api import openapi
from functions.api.operations import OPERATIONS, PREFIX
from tests.api import HttpClient, request_event
from tests.event_files import EVENTS

DOCUMENT = openapi.describe()
COMPONENTS: dict[str, Any] = DOCUMENT["components"]["schemas"]


def operations() -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in DOCUMENT["paths"].items():
        for method, described in methods.items():
            yield f"{method.upper()} {path}", described


def test_the_published_document_is_the_generated_one() -> None:
    published = EVENTS / "schema" / "openapi-v1.json"
    assert published.read_text() == json.dumps(DOCUMENT, indent=2) + "\n", (
        "run: python -m functions.api.openapi > events/schema/openapi-v1.json"
    )


def test_it_is_served_without_a_key(client: HttpClient) -> None:
    answer = client.answer(request_event("GET", f"{PREFIX}/openapi.json"))
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    assert answer.json == DOCUMENT


def test_it_is_valid_openapi() -> None:
    schemathesis.openapi.from_dict(DOCUMENT).validate()
    for schema in COMPONENTS.values():
        jsonschema.Draft202012Validator.check_schema(schema)


def test_it_refers_to_all_of_its_components_and_to_no_other() -> None:
    referred = {
        part.split('"')[0] for part in json.dumps(DOCUMENT).split("#/components/schemas/")[1:]
    }
    assert referred == set(COMPONENTS)


def test_it_has_every_operation() -> None:
    described = {(name, it["operationId"], it["summary"]) for name, it in operations()}
    assert described == {(f"{o.method} {PREFIX}{o.path}", o.name, o.summary) for o in OPERATIONS}
    assert len({o.name for o in OPERATIONS}) == len(OPERATIONS)


def test_every_operation_needs_a_key_and_answers_errors_as_problems() -> None:
    assert DOCUMENT["security"] == [{"apiKey": []}]
    for name, described in operations():
        assert "security" not in described, name
        (success, *errors) = sorted(described["responses"])
        assert success.startswith("2"), name
        assert {"400", "401", "500", "503"} <= set(errors), name
        for status in errors:
            (kind,) = described["responses"][status]["content"].items()
            problem = {"schema": {"$ref": "#/components/schemas/Problem"}}
            assert kind == ("application/problem+json", problem), (name, status)


def test_everything_has_a_type_but_what_is_any_json() -> None:
    fields = {
        f"{component}.{name}": schema
        for component, described in COMPONENTS.items()
        for name, schema in described.get("properties", {}).items()
    }
    parameters = {
        f"{name} {parameter['name']}": parameter["schema"]
        for name, described in operations()
        for parameter in described["parameters"]
    }
    assert all("type" in schema for schema in parameters.values()), parameters
    untyped = {
        name for name, schema in fields.items() if not {"type", "$ref", "anyOf"} & set(schema)
    }
    assert untyped == {"InvocationWanted.input", "Payload.payload", "Step.payload"}


@pytest.mark.parametrize(
    "field",
    [
        f"{component}.{name}"
        for component, described in COMPONENTS.items()
        for name in described.get("properties", {})
        if name.startswith("cost") and not name.startswith("cost_unknown") and component != "Change"
    ],
)
def test_money_is_a_string(field: str) -> None:
    component, name = field.split(".")
    schema = COMPONENTS[component]["properties"][name]
    (kind,) = [k for k in schema.get("anyOf", [schema]) if k["type"] != "null"]
    assert kind["type"] == "string"
    assert "pattern" in kind


def test_it_loads_when_it_is_asked_for_and_not_before() -> None:
    script = "import sys, functions.api.handler\nprint('\\n'.join(sys.modules))"
    run = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)  # noqa: S603
    loaded = set(run.stdout.split())
    assert "functions.api.operations" in loaded
    assert not loaded & {"functions.api.openapi", "pydantic", "google.protobuf"}
