"""Logs and metrics of one function: a structured line a batch, which is its EMF blob, too.

No metric has a tenant or a run as dimension: each new value of a dimension is a metric of its own
and costs as one. Payloads, keys and bodies are never logged.
"""

import logging
import os
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from aws_lambda_powertools.logging import Logger
from aws_lambda_powertools.logging.formatter import LambdaPowertoolsFormatter
from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit
from botocore.exceptions import ClientError

from functions.core.errors import Unavailable

NAMESPACE: Final = "runtally"
"""Where nobody set another: each deployed stage has one of its own, or their sums would mix."""

_WITH_BODIES: Final = ("botocore", "boto3", "urllib3", "aws_lambda_powertools")
"""Libraries that log requests and events whole at DEBUG, which a stage may switch on for all."""


class _WithoutWords(LambdaPowertoolsFormatter):
    """Tells of an exception what it is and where it was raised, and its words if they are AWS's:
    those of any other may quote what was sent."""

    def formatException(self, ei: Any) -> str:  # noqa: N802 - logging's own name
        told: list[str] = []
        seen: set[int] = set()
        error: BaseException | None = ei[1]
        while error is not None and id(error) not in seen:  # a chain may end where it began
            seen.add(id(error))
            words = f": {error}" if isinstance(error, (Unavailable, ClientError)) else ""
            told += [f"{type(error).__name__}{words}\n", *traceback.format_tb(error.__traceback__)]
            error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        return "".join(told)


class Defect(Exception):  # noqa: N818 - what it is
    """A function failed as a whole, for a reason that its log has and Lambda's must not repeat."""


class Telemetry:
    def __init__(self, service: str) -> None:
        for library in _WITH_BODIES:
            logging.getLogger(library).setLevel(logging.INFO)
        self.logger = Logger(
            service=service, logger_formatter=_WithoutWords(serialize_stacktrace=False)
        )
        self._service = service
        self._namespace = os.environ.get("POWERTOOLS_METRICS_NAMESPACE", NAMESPACE)

    def tell(self, library: str, level: int) -> None:
        """Log what a library says from that level on as the function's own: without the words."""
        logger = logging.getLogger(library)
        logger.setLevel(level)
        logger.propagate = False  # to Lambda's handler, which tells them
        for handler in self.logger.handlers:
            logger.addHandler(handler)  # which takes each handler once

    def emit(
        self,
        counts: Mapping[str, float],
        milliseconds: Mapping[str, Iterable[float]] | None = None,
        rejected: Iterable[str] = (),
        about: Mapping[str, object] | None = None,
    ) -> None:
        """Publish counts that are not zero, measured times, and how often each reason rejected.

        What the batch was `about` stands on the same line, for queries, and costs no metric.
        """
        metrics = self._metrics()
        # First, because it publishes by itself what is complete after a hundred values.
        for name, times in (milliseconds or {}).items():
            for time in times:
                metrics.add_metric(name=name, unit=MetricUnit.Milliseconds, value=max(0, time))
        for name, value in counts.items():
            if value:
                metrics.add_metric(name=name, unit=MetricUnit.Count, value=value)
        if metrics.metric_set:
            for name, fact in (about or {}).items():
                metrics.add_metadata(name, fact)
            metrics.flush_metrics()
        for reason, times_rejected in Counter(rejected).items():
            metrics = self._metrics()
            metrics.add_dimensions(service=self._service, reason=reason)
            metrics.add_metric(name="Rejected", unit=MetricUnit.Count, value=times_rejected)
            metrics.flush_metrics()

    @contextmanager
    def without_words(self) -> Iterator[None]:
        """Log what is raised here, and raise Defect instead: Lambda would log it word for word.

        Unavailable, whose words are AWS's, stays itself.
        """
        try:
            yield
        except Unavailable:
            raise
        except Exception as defect:
            self.logger.exception("function failed")
            raise Defect(type(defect).__name__) from None

    def _metrics(self) -> EphemeralMetrics:
        return EphemeralMetrics(namespace=self._namespace, service=self._service)
