"""What watches a stage: nothing is forgotten, nothing is named that nobody publishes, and every
alarm leads to a section of the runbook."""

import json
import re
from collections.abc import Iterator
from typing import Any, Final, cast

import pytest

from benchmarks import aws_prices
from cdk.bundle import ROOT
from functions.core import keys
from tests import emf, happenings
from tests.emf import Series
from tests.event_files import event
from tests.infra import idle_bill, metric_maths
from tests.infra.assembly import Assembly, Properties, with_all_options
from tests.infra.idle_bill import idle_by_stack
from tests.telling import SERVICES, listening, namespace_of

RUNBOOK: Final = "docs/operations.md"
QUERY_WORDS: Final = frozenset(
    {"filter", "fields", "stats", "sort", "limit", "by", "as", "and", "asc", "desc", "like"}
)


@pytest.fixture(scope="module")
def whole() -> Assembly:
    return with_all_options(coordinated=True)


@pytest.fixture
def lines(
    whole: Assembly, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> list[dict[str, Any]]:
    """All that the functions of the stage print when everything happens."""
    with listening(monkeypatch, capsys, namespace_of(whole)) as (stage, told):
        happenings.everything(stage)
        return told.lines()


def alarms(assembly: Assembly) -> dict[str, Properties]:
    return assembly.resources("AWS::CloudWatch::Alarm")


# -- alarms -------------------------------------------------------------------------------------


def imported(assembly: Assembly, value: Any) -> str:
    """The logical id, in its own stack, of what another stack's export leads to."""
    exports = {
        output["Export"]["Name"]: output["Value"]
        for template in assembly.templates
        for output in template["Outputs"].values()
        if "Export" in output
    }
    found = exports[value["Fn::ImportValue"]] if "Fn::ImportValue" in value else value
    logical_id: str = found["Ref"] if "Ref" in found else found["Fn::GetAtt"][0]
    return logical_id


def watched_queues(assembly: Assembly, metric: str) -> set[str]:
    """Logical ids of the queues of which an alarm reads a metric."""
    return {
        imported(assembly, json.loads(value))
        for alarm in alarms(assembly).values()
        for series in metric_maths.series_in(alarm)
        if series.name == metric
        for name, value in series.dimensions
        if name == "QueueName"
    }


def test_every_queue_of_every_stack_has_its_alarms(aws_assembly: Assembly) -> None:
    queues = {
        logical_id: resource["Properties"]
        for template in aws_assembly.templates
        for logical_id, resource in template["Resources"].items()
        if resource["Type"] == "AWS::SQS::Queue"
    }
    assert watched_queues(aws_assembly, "ApproximateNumberOfMessagesVisible") == set(queues)
    live = {name for name, queue in queues.items() if "RedrivePolicy" in queue}
    assert watched_queues(aws_assembly, "NumberOfMessagesReceived") == live
    dead = {
        imported(aws_assembly, queue["RedrivePolicy"]["deadLetterTargetArn"])
        for queue in queues.values()
        if "RedrivePolicy" in queue
    }
    assert dead == set(queues) - live
    of_functions = {
        imported(aws_assembly, mapping["EventSourceArn"])
        for mapping in aws_assembly.resources("AWS::Lambda::EventSourceMapping").values()
    }
    assert watched_queues(aws_assembly, "ApproximateAgeOfOldestMessage") == of_functions & live


def imports_of(assembly: Assembly) -> set[str]:
    text = json.dumps(assembly.observability)
    return set(re.findall(r'"Fn::ImportValue": "([^"]+)"', text))


def exports_of(assembly: Assembly) -> set[str]:
    """Of what the stack that watches imports from."""
    others = [each for each in assembly.templates if each is not assembly.observability]
    outputs = [output for each in others for output in each["Outputs"].values()]
    return {output["Export"]["Name"] for output in outputs if "Export" in output}


def test_a_service_entry_goes_where_the_stack_that_watches_it_is_deployed_first() -> None:
    """As docs/upgrading.md says: in the other order CloudFormation refuses."""
    before = with_all_options()
    after = with_all_options(service_entries=())
    assert not imports_of(before) <= exports_of(after)
    assert imports_of(after) <= exports_of(before)


def test_every_function_has_its_alarm(aws_assembly: Assembly) -> None:
    ours = {
        logical_id
        for template in aws_assembly.templates
        for logical_id, resource in template["Resources"].items()
        if resource["Type"] == "AWS::Lambda::Function"
        and resource["Properties"]["Handler"].startswith("functions.")
    }
    for metric in ("Errors", "Throttles"):
        watched = {
            imported(aws_assembly, json.loads(value))
            for alarm in alarms(aws_assembly).values()
            for series in metric_maths.series_in(alarm)
            if series.name == metric
            for _, value in series.dimensions
        }
        assert watched == ours


def test_every_alarm_tells_the_topic_and_is_armed(aws_assembly: Assembly) -> None:
    assert aws_assembly.observability
    resources = aws_assembly.observability["Resources"]
    (topic,) = (name for name, each in resources.items() if each["Type"] == "AWS::SNS::Topic")
    assert alarms(aws_assembly)
    for alarm in alarms(aws_assembly).values():
        assert alarm["AlarmActions"] == [{"Ref": topic}]
        assert alarm.get("ActionsEnabled", True)


def anchors(text: str) -> list[str]:
    """Of a document's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]


def test_every_alarm_leads_to_a_section_of_the_runbook(aws_assembly: Assembly) -> None:
    text = (ROOT / RUNBOOK).read_text()
    there = anchors(text)
    assert len(there) == len(set(there))
    for name, alarm in alarms(aws_assembly).items():
        document, _, anchor = alarm["AlarmDescription"].rpartition(": ")[2].partition("#")
        assert (document, anchor in there) == (RUNBOOK, True), name


def test_every_alarm_is_in_the_table_of_the_runbook_with_its_section(whole: Assembly) -> None:
    """So that whoever has only the alarm's name finds the way."""
    text = (ROOT / RUNBOOK).read_text()
    rows = dict(re.findall(r"^\| `(\w+|…\w+)`.*\| \[.*\]\(#([\w-]+)\) \|$", text, re.MULTILINE))
    for name, alarm in alarms(whole).items():
        section = alarm["AlarmDescription"].partition("#")[2]
        shown = [row for row in rows if name == row or name.endswith(row.removeprefix("…"))]
        row = name if name in shown else max(shown, key=len)
        assert rows[row] == section, name


def test_cloudwatch_may_tell_the_topic_over_tls_only(aws_assembly: Assembly) -> None:
    (policy,) = aws_assembly.resources("AWS::SNS::TopicPolicy").values()
    allowed, denied = sorted(
        policy["PolicyDocument"]["Statement"], key=lambda statement: str(statement["Effect"])
    )
    assert allowed["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
    assert allowed["Action"] == "sns:Publish"
    assert allowed["Condition"] == {
        "StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}
    }
    assert (denied["Effect"], denied["Principal"]) == ("Deny", "*")
    assert denied["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


def test_nobody_gets_mail_unless_an_address_is_given(aws_assembly: Assembly) -> None:
    """There is one among all options."""
    subscriptions = list(aws_assembly.resources("AWS::SNS::Subscription").values())
    addresses = [each["Endpoint"] for each in subscriptions if each["Protocol"] == "email"]
    given = aws_assembly.settings.alarm_email
    assert addresses == ([given] if given else [])
    assert len(subscriptions) == len(addresses)


# -- metrics ------------------------------------------------------------------------------------


def dashboards(assembly: Assembly) -> list[dict[str, Any]]:
    """Their bodies; what only CloudFormation knows stands as `?`."""
    bodies = []
    for dashboard in assembly.resources("AWS::CloudWatch::Dashboard").values():
        body = dashboard["DashboardBody"]
        parts = body["Fn::Join"][1] if isinstance(body, dict) else [body]
        text = "".join(part if isinstance(part, str) else "?" for part in parts)
        bodies.append(json.loads(text))
    return bodies


def series_on_dashboards(assembly: Assembly) -> Iterator[Series]:
    """As they stand in widgets: namespace, name, dimensions, and `.` for what is as above."""
    for body in dashboards(assembly):
        for widget in body["widgets"]:
            row: list[Any] = []
            for metric in widget["properties"].get("metrics", []):
                given = [part for part in metric if not isinstance(part, dict)]
                if not given:
                    continue  # computed
                row = [old if part == "." else part for old, part in _aligned(row, given)]
                pairs = zip(row[2::2], row[3::2], strict=True)
                yield Series(row[0], row[1], frozenset(pairs))


def _aligned(row: list[Any], given: list[Any]) -> Iterator[tuple[Any, Any]]:
    yield from zip([*row, *[None] * len(given)], given, strict=False)


def searched(assembly: Assembly) -> Iterator[tuple[str, str, frozenset[str]]]:
    """Namespace, name and names of dimensions of all searches on dashboards."""
    for body in dashboards(assembly):
        for widget in body["widgets"]:
            for metric in widget["properties"].get("metrics", []):
                expression = metric[0].get("expression", "") if len(metric) == 1 else ""
                pattern = r"SEARCH\('\{\"([\w/]+)\",([\w,]+)\} MetricName=\"(\w+)\"'"
                if found := re.match(pattern, expression):
                    yield found[1], found[3], frozenset(found[2].split(","))


def test_what_is_looked_at_is_published_and_the_reverse(
    whole: Assembly, lines: list[dict[str, Any]]
) -> None:
    """A metric costs by the month: those that nobody looks at are a field of the line instead."""
    namespace = namespace_of(whole)
    published = set(emf.measured_in(lines))
    looked_at = {
        *series_on_dashboards(whole),
        *(each for alarm in alarms(whole).values() for each in metric_maths.series_in(alarm)),
    }
    ours = {series for series in looked_at if series.namespace.startswith("runtally")}
    assert ours - published == set(), "never published"
    of_searches = {
        series
        for series in published
        if (series.namespace, series.name, frozenset(name for name, _ in series.dimensions))
        in set(searched(whole))
    }
    assert of_searches
    assert published - ours - of_searches == set(), "nobody looks at it"
    assert {series.namespace for series in published} == {namespace}


def test_no_metric_has_a_tenant_a_run_a_phase_or_a_pipeline_as_dimension(
    lines: list[dict[str, Any]],
) -> None:
    dimensions = {name for each in emf.measured_in(lines) for name, _ in each.dimensions}
    assert dimensions == {"service", "reason"}


def test_two_stages_in_one_account_do_not_mix() -> None:
    from tests.infra.assembly import synthesise  # noqa: PLC0415

    namespaces = [namespace_of(synthesise(stage)) for stage in ("local", "dev", "prod")]
    assert len(set(namespaces)) == 3


def test_a_dashboard_shows_what_dynamodb_throttles_of_every_index(whole: Assembly) -> None:
    shown = {
        (series.name, dict(series.dimensions).get("GlobalSecondaryIndexName"))
        for series in series_on_dashboards(whole)
    }
    for place in (None, keys.BY_TENANT, keys.OPEN_RUNS):
        assert {("ReadThrottleEvents", place), ("WriteThrottleEvents", place)} <= shown, place


def test_dashboards_are_named_after_their_stage(aws_assembly: Assembly) -> None:
    names = [
        each["DashboardName"]
        for each in aws_assembly.resources("AWS::CloudWatch::Dashboard").values()
    ]
    assert sorted(names) == [
        f"{aws_assembly.settings.prefix}-business",
        f"{aws_assembly.settings.prefix}-technical",
    ]


# -- queries ------------------------------------------------------------------------------------


def saved(assembly: Assembly) -> dict[str, str]:
    queries = assembly.resources("AWS::Logs::QueryDefinition").values()
    return {each["Name"].rpartition("/")[2]: each["QueryString"] for each in queries}


def all_queries(assembly: Assembly) -> list[str]:
    on_dashboards = [
        re.sub(r"SOURCE '.*?' \| ", "", widget["properties"]["query"])
        for body in dashboards(assembly)
        for widget in body["widgets"]
        if widget["type"] == "log"
    ]
    return [*saved(assembly).values(), *on_dashboards]


def test_the_queries_that_are_saved(aws_assembly: Assembly) -> None:
    assert set(saved(aws_assembly)) == {
        "All events of a run",
        "Rejected by reason",
        "Slowest batches",
        "One tenant",
    }
    for each in aws_assembly.resources("AWS::Logs::QueryDefinition").values():
        assert each["LogGroupNames"]


def fields_of(query: str) -> set[str]:
    """Names that a query reads from lines; those that it makes itself are no such names."""
    code = re.sub(r'"[^"]*"|^#.*$', " ", query, flags=re.MULTILINE)
    made = set(re.findall(r"\bas\s+(\w+)", code))
    names = set(re.findall(r"(?<![\w.@])[A-Za-z_][\w.]*(?!\s*\(|[\w.])", code))
    return names - made - QUERY_WORDS


def paths_in(value: Any, path: str = "") -> Iterator[str]:
    """As Logs Insights finds them: `a.b` of an object, `a.0` of a list."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield from paths_in(each, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from paths_in(each, f"{path}.{number}")
    else:
        yield path


def test_every_field_of_a_query_stands_on_a_line(
    whole: Assembly, lines: list[dict[str, Any]]
) -> None:
    printed: list[dict[str, Any]] = [*lines, *cast("Any", event("lambda/platform-lines"))]
    queries = all_queries(whole)
    assert len(queries) > 10
    for query in queries:
        message = re.search(r'filter (message|type) = "([^"]+)"', query)
        found = [one for one in printed if not message or one.get(message[1]) == message[2]]
        assert found, query
        there = {path for one in found for path in paths_in(one)}
        assert fields_of(query) <= there, query


def test_a_run_s_way_can_be_followed_by_its_id(lines: list[dict[str, Any]]) -> None:
    """Through every function that works on it, and whatever becomes of it."""
    services = {line["service"] for line in lines if "run-1" in json.dumps(line)}
    assert services == {"ingest", "summarize", "recount"}
    deleted = {line["service"] for line in lines if "run-to-delete" in json.dumps(line)}
    assert {"ingest", "erase"} <= deleted
    (message,) = (
        message
        for line in lines
        for message in line.get("messages", [])
        if message.get("run_id") == "run-1" and message["stored"] == 5
    )
    assert message["message_id"] == "0"


def test_every_warning_says_whose_it_is(lines: list[dict[str, Any]]) -> None:
    """By run, or by message where the run is not known, or by request."""
    for line in lines:
        if line.get("level") in {"WARNING", "ERROR"} and line["message"] not in {
            "function failed",  # as a whole
            "record cannot be read",  # has the record's key
            "will be looked at again",  # has the run in its words
        }:
            assert {"run_id", "message_id", "request_id"} & set(line), line


def test_one_line_a_batch(lines: list[dict[str, Any]]) -> None:
    for service in set(SERVICES) - {"api", "sweep", "erase", "dead_jobs"}:
        batches = [line for line in lines if line.get("service") == service and "took_ms" in line]
        assert batches, service


# -- what it costs ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def by_use() -> Assembly:
    """What is paid for by the hour is left out."""
    return with_all_options()


def dollars_by_stack(assembly: Assembly) -> dict[str, float]:
    return {stack: idle.dollars for stack, idle in idle_by_stack(assembly).items()}


def test_the_runbook_has_the_idle_bill(whole: Assembly, by_use: Assembly) -> None:
    """Of the cache all that comes with it: its alarms stand in another stack."""
    bill, with_cache = dollars_by_stack(by_use), dollars_by_stack(whole)
    bill["coordination"] = sum(with_cache.values()) - sum(bill.values())
    assert set(bill) == set(with_cache)
    text = (ROOT / RUNBOOK).read_text()
    for stack, dollars in bill.items():
        row = re.search(rf"^\| {stack} \|.*\| \$([\d.]+) \|$", text, re.MULTILINE)
        assert row, stack
        assert float(row[1]) == pytest.approx(dollars), stack
    said = f"${bill['coordination']:.2f} a month while idle"
    assert said in (ROOT / "README.md").read_text()


def test_the_runbook_says_what_a_stage_in_an_account_of_its_own_pays(by_use: Assembly) -> None:
    """Idle, for what watches it: of its dashboards, only the small one costs nothing."""
    sizes = [
        sum(len(widget["properties"].get("metrics", [])) for widget in body["widgets"])
        for body in dashboards(by_use)
    ]
    free = sum(size <= idle_bill.FREE_DASHBOARD_METRICS for size in sizes)
    assert (len(sizes), free) == (2, 1), sizes
    alarm_metrics = idle_by_stack(by_use)["observability"].alarm_metrics
    paid = (alarm_metrics - idle_bill.FREE_ALARM_METRICS) * float(aws_prices.ALARM_METRIC_MONTH)
    paid += (len(sizes) - min(free, idle_bill.FREE_DASHBOARDS)) * float(aws_prices.DASHBOARD_MONTH)
    said = re.search(r"account of its own pays \$([\d.]+) ", (ROOT / RUNBOOK).read_text())
    assert said
    assert float(said[1]) == pytest.approx(paid)
