"""Logs and metrics of one function: a structured line and one EMF blob a batch.

No metric has a tenant or a run as dimension: each new value of a dimension is a metric of its own
and costs as one. Payloads, keys and bodies are never logged.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from aws_lambda_powertools.logging import Logger
from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit, single_metric

NAMESPACE = "runtally"


class Telemetry:
    def __init__(self, service: str) -> None:
        self.logger = Logger(service=service)
        self._service = service

    def emit(
        self,
        counts: Mapping[str, float],
        milliseconds: Mapping[str, Iterable[float]] | None = None,
        rejected: Iterable[str] = (),
    ) -> None:
        """Publish counts that are not zero, measured times, and how often each reason rejected."""
        metrics = EphemeralMetrics(namespace=NAMESPACE, service=self._service)
        for name, value in counts.items():
            if value:
                metrics.add_metric(name=name, unit=MetricUnit.Count, value=value)
        for name, times in (milliseconds or {}).items():
            for time in times:
                metrics.add_metric(name=name, unit=MetricUnit.Milliseconds, value=max(0, time))
        if metrics.metric_set:
            metrics.flush_metrics()
        for reason, times_rejected in Counter(rejected).items():
            with single_metric(
                name="Rejected", unit=MetricUnit.Count, value=times_rejected, namespace=NAMESPACE
            ) as metric:
                metric.add_dimension(name="service", value=self._service)
                metric.add_dimension(name="reason", value=reason)
