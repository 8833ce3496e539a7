"""What was used for so many steps, and what AWS asks for it."""

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

from benchmarks import aws_prices

PRICES: Final = {
    "sqs_requests": aws_prices.SQS_REQUEST,
    "s3_puts": aws_prices.S3_PUT,
    "s3_gets": aws_prices.S3_GET,
    "write_units": aws_prices.DYNAMODB_WRITE_UNIT,
    "read_units": aws_prices.DYNAMODB_READ_UNIT,
    "lambda_requests": aws_prices.LAMBDA_REQUEST,
    "events": aws_prices.EVENTBRIDGE_EVENT,
}
"""What is counted, and does not depend on the machine."""


@dataclass(slots=True)
class Usage:
    """`gb_seconds` are Lambda's, by what they were spent on: CPU is measured, waiting is a model.

    `seen` says more of how it came about.
    """

    steps: int = 0
    counted: dict[str, float] = field(default_factory=dict)
    gb_seconds: dict[str, float] = field(default_factory=dict)
    seen: dict[str, Any] = field(default_factory=dict)

    @property
    def counted_usd(self) -> Decimal:
        """Per million steps."""
        return sum(self._counted_usd().values(), Decimal(0))

    @property
    def modelled_usd(self) -> Decimal:
        """Per million steps."""
        return sum(self._modelled_usd().values(), Decimal(0))

    def figures(self) -> dict[str, Any]:
        return {
            "steps": self.steps,
            **self.seen,
            "write_units_per_step": round(self.counted["write_units"] / self.steps, 3),
            "counted": {name: round(n, 1) for name, n in self.counted.items()},
            "usd": {name: _cents(usd) for name, usd in self._counted_usd().items()},
            "counted_usd": _cents(self.counted_usd),
            "lambda_time_usd": {name: _cents(usd) for name, usd in self._modelled_usd().items()},
            "usd_per_million": _cents(self.counted_usd + self.modelled_usd),
        }

    def _counted_usd(self) -> dict[str, Decimal]:
        return {
            name: Decimal(str(used)) * PRICES[name] * aws_prices.MILLION / self.steps
            for name, used in self.counted.items()
            if used
        }

    def _modelled_usd(self) -> dict[str, Decimal]:
        scale = aws_prices.LAMBDA_GB_SECOND * aws_prices.MILLION / self.steps
        return {name: Decimal(str(spent)) * scale for name, spent in self.gb_seconds.items()}


def _cents(usd: Decimal) -> float:
    """For people and JSON: a tenth of a cent is as exact as anything here."""
    return float(round(usd, 3))
