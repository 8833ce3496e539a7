"""What a stage looks like: one dashboard for what runs and costs, one for how it holds up."""

from collections.abc import Iterable, Sequence
from typing import Final

from aws_cdk import Duration
from aws_cdk import aws_apigatewayv2 as apigatewayv2
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from cdk import queries
from cdk.measures import NOW, Statistic, computed, ours, summed, throttled_requests
from cdk.settings import StageSettings
from cdk.watched import Watched

_WIDTH: Final = 24
_HEIGHT: Final = 6
_SUMMARISING: Final = ("summarize", "recount")
_WRITERS: Final = ("ingest", "summarize", "recount", "dead_jobs", "sweep", "erase")
_REFUSED: Final = ("ingest", "summarize", "recount", "dead_jobs")

type Row = Sequence[cloudwatch.IWidget]


def business_dashboard(scope: Construct, settings: StageSettings, watched: Watched) -> None:
    """What is recorded: the queries read lines of log, and cost by what they read."""
    groups = watched.log_groups(*_SUMMARISING)
    times: tuple[Statistic, ...] = ("p50", "p95", "Maximum")
    _dashboard(
        scope,
        "Business",
        settings,
        [
            [
                _query("Runs by status", queries.RUNS_BY_STATUS, groups, 3, _PIE),
                _graph("Calls", [ours(settings, "summarize", "StepsCounted")], 3),
                _graph(
                    "How long calls take, ms",
                    [ours(settings, "summarize", "StepTime", each) for each in times],
                    3,
                ),
            ],
            [
                _query("Runs, calls and cost by hour", queries.BY_HOUR, groups, 2),
                _query("Cost per hour, by pipeline", queries.COST_BY_PIPELINE, groups, 2),
            ],
            [
                _query("Failed calls by phase", queries.FAILED_PHASES, groups, 3),
                _query("Calls of unknown cost", queries.UNKNOWN_COST, groups, 3),
                _query("Tenants' share", queries.TENANTS, groups, 3),
            ],
        ],
    )


def technical_dashboard(
    scope: Construct, settings: StageSettings, watched: Watched, api: apigatewayv2.HttpApi
) -> None:
    """How it holds up, from the queue to the answer."""
    _dashboard(
        scope,
        "Technical",
        settings,
        [
            _queues(watched),
            _recording(settings),
            _counting(settings, watched),
            _tidying(settings),
            _table(settings, watched),
            _functions(watched),
            _requests(settings, api),
            *_lake(settings, watched),
        ],
    )


def _queues(watched: Watched) -> Row:
    return [
        _graph(
            "Messages waiting",
            [
                each.queue.metric_approximate_number_of_messages_visible(
                    statistic="Maximum", period=NOW, label=each.name
                )
                for each in watched.live_queues
            ],
            3,
        ),
        _graph(
            "Age of the oldest message, s",
            [
                each.queue.metric_approximate_age_of_oldest_message(
                    statistic="Maximum", period=NOW, label=each.name
                )
                for each in watched.live_queues
            ],
            3,
        ),
        _graph(
            "Dead letters",
            [
                each.queue.metric_approximate_number_of_messages_visible(
                    statistic="Maximum", period=NOW, label=each.name
                )
                for each in watched.dead_letters
            ],
            3,
        ),
    ]


def _recording(settings: StageSettings) -> Row:
    rejected = f'{{"{settings.metrics_namespace}",reason,service}} MetricName="Rejected"'
    steps = ("StepsStored", "Duplicates", "Conflicts", "AfterDeletion")
    messages = ("Messages", "MessagesFailed", "Answers", "LateAnswers")
    return [
        _graph("Steps stored, and not", [ours(settings, "ingest", each) for each in steps], 4),
        _graph(
            "Messages, stream records and answers",
            [
                *(ours(settings, "ingest", each) for each in messages),
                ours(settings, "summarize", "Records"),
                ours(settings, "dead_jobs", "Messages"),
            ],
            4,
        ),
        _graph("Rejected, by reason", [computed(f"SEARCH('{rejected}', 'Sum', 300)", {}, "")], 4),
        _graph(
            "From a step's end to stored, and to counted, ms",
            [
                *(ours(settings, "ingest", "StoreLag", each) for each in _LAGS),
                *(ours(settings, "summarize", "CountLag", each) for each in _LAGS),
            ],
            4,
        ),
    ]


def _counting(settings: StageSettings, watched: Watched) -> Row:
    ages = [
        each.function.metric("IteratorAge", statistic="Maximum", period=NOW, label=each.service)
        for each in watched.functions
        if each.reads_stream
    ]
    failing = [
        ours(settings, "summarize", "RunsFailed"),
        ours(settings, "recount", "FailedBatches"),
        ours(settings, "recount", "RecountsFailed"),
        *(ours(settings, each, "EventsRefused") for each in _SUMMARISING),
        ours(settings, "dead_jobs", "MessagesFailed"),
        ours(settings, "dead_jobs", "InvocationsFailed"),
        ours(settings, "dead_jobs", "Rejected"),
    ]
    drift = [
        ours(settings, each, name)
        for each in _SUMMARISING
        for name in ("RecountDrift", "LastingDrift")
    ]
    recounts = [
        *(ours(settings, each, "Recounts") for each in _SUMMARISING),
        *(ours(settings, each, "RecountsRequested") for each in ("summarize", "sweep")),
        ours(settings, "summarize", "EventsPublished"),
    ]
    return [
        _graph("Age of the stream's oldest record, ms", ages, 4),
        _graph("Runs and batches that failed", failing, 4),
        _graph("Steps by which totals were off", drift, 4),
        _graph("Recounts, and run.ended told", recounts, 4),
    ]


def _tidying(settings: StageSettings) -> Row:
    open_runs = ours(settings, "sweep", "OpenRuns", "Maximum")
    sweeps = ("RunsStale", "RunsResumed", "RunsFailed", "EventsRefused", "SweepsUnfinished")
    deletions = ("DeletionsBegun", "DeletionsOverdue")
    erasures = ("Erasures", "ErasuresFailed", "ErasuresDropped", "DeletionsFinished")
    erased = ("ItemsErased", "ObjectsErased", "VersionsErased")
    return [
        _graph("Open runs", [open_runs], 4),
        _graph("What the sweep did", [ours(settings, "sweep", name) for name in sweeps], 4),
        _graph(
            "Deletions",
            [
                *(ours(settings, "sweep", name) for name in deletions),
                *(ours(settings, "erase", name) for name in erasures),
            ],
            4,
        ),
        _graph("Erased", [ours(settings, "erase", name) for name in erased], 4),
    ]


def _table(settings: StageSettings, watched: Watched) -> Row:
    table = {"TableName": watched.table.table_name}
    consumed = [
        cloudwatch.Metric(
            namespace="AWS/DynamoDB",
            metric_name=f"Consumed{kind}CapacityUnits",
            dimensions_map=table,
            statistic="Sum",
            period=NOW,
        )
        for kind in ("Read", "Write")
    ]
    return [
        _graph("Units consumed by the table", consumed, 4),
        _graph("Table and indexes throttled", throttled_requests(watched.table), 4),
        _graph(
            "Write units by function", [ours(settings, each, "WriteUnits") for each in _WRITERS], 4
        ),
        _graph(
            "Writes refused by a condition",
            [ours(settings, each, "RefusedWrites") for each in _REFUSED],
            4,
        ),
    ]


def _functions(watched: Watched) -> Row:
    functions = watched.functions
    throttles = [each.function.metric_throttles(period=NOW) for each in functions]
    return [
        _graph(
            "Errors",
            [each.function.metric_errors(period=NOW, label=each.service) for each in functions],
            4,
        ),
        _graph(
            "Duration, p95, ms",
            [
                each.function.metric_duration(statistic="p95", period=NOW, label=each.service)
                for each in functions
            ],
            4,
        ),
        _graph("Throttled invocations", [summed(throttles, "all functions")], 4),
        _query("Memory", queries.MEMORY, watched.log_groups(), 4),
    ]


def _requests(settings: StageSettings, api: apigatewayv2.HttpApi) -> Row:
    counts = [
        *(ours(settings, "api", each) for each in ("Requests", "ClientErrors", "ServerErrors")),
        # Also when the function did not come to answer.
        api.metric_server_error(statistic="Sum", period=NOW, label="5xx of the gateway"),
    ]
    times = [
        *(ours(settings, "api", "RequestTime", each) for each in _LAGS),
        api.metric_latency(statistic="p95", period=NOW, label="p95 at the gateway"),
    ]
    return [
        _graph("Requests", counts, 3),
        _graph("Latency, ms", times, 3),
        _graph(
            "Bytes recorded, and answered",
            [ours(settings, "ingest", "PayloadBytes"), ours(settings, "api", "ResponseBytes")],
            3,
        ),
    ]


def _lake(settings: StageSettings, watched: Watched) -> Iterable[Row]:
    """In a stage that has one."""
    if watched.function("lake"):
        shown = {
            "Runs written to the lake": ("Records", "RunsWritten", "RunsFailed", "RefusedWrites"),
            "Rows written, and write units": ("RowsWritten", "WriteUnits"),
        }
        yield [
            _graph(title, [ours(settings, "lake", each) for each in names], 2)
            for title, names in shown.items()
        ]


_LAGS: Final[tuple[Statistic, ...]] = ("p50", "p95")
_TABLE: Final = cloudwatch.LogQueryVisualizationType.TABLE
_PIE: Final = cloudwatch.LogQueryVisualizationType.PIE


def _dashboard(scope: Construct, name: str, settings: StageSettings, rows: Iterable[Row]) -> None:
    cloudwatch.Dashboard(
        scope,
        name,
        # CloudFormation's own name would not say of which stage it is.
        dashboard_name=f"{settings.prefix}-{name.lower()}",
        default_interval=Duration.days(1),
        widgets=[list(row) for row in rows],
    )


def _graph(
    title: str, metrics: Sequence[cloudwatch.IMetric], in_row: int
) -> cloudwatch.GraphWidget:
    return cloudwatch.GraphWidget(
        title=title,
        left=list(metrics),
        left_y_axis=cloudwatch.YAxisProps(min=0, show_units=False),
        width=_WIDTH // in_row,
        height=_HEIGHT,
    )


def _query(
    title: str,
    text: str,
    log_groups: Sequence[str],
    in_row: int,
    view: cloudwatch.LogQueryVisualizationType = _TABLE,
) -> cloudwatch.LogQueryWidget:
    return cloudwatch.LogQueryWidget(
        title=title,
        log_group_names=list(log_groups),
        query_string=text,
        view=view,
        width=_WIDTH // in_row,
        height=_HEIGHT,
    )
