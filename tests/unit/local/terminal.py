"""A terminal before a stage in memory: commands go in, what they print comes out."""

import json
from typing import Any

import pytest

from local.stage import Stage
from runtally import wire
from tests import build, command_line
from tests.fakes.cloud import MemoryCloud
from tests.memory_stage import DEAD_LETTERS, ERASURES, RECOUNTS, MemoryStage
from tests.unit.local.test_stage import OUTPUTS


class Buckets:
    """One client for those of a stage and its lake."""

    def __init__(self, memory: MemoryStage) -> None:
        assert memory.lake
        self._of = {"l": memory.lake.s3}
        self._other = memory.s3

    def __getattr__(self, operation: str) -> Any:
        def request(**given: Any) -> Any:
            return getattr(self._of.get(given.get("Bucket", ""), self._other), operation)(**given)

        return request


class Terminal:
    """`memory` is the stage; what is sent to it is recorded and, unless said so, summarised."""

    def __init__(
        self, capsys: pytest.CaptureFixture[str], *, lake: bool = False, **clients: Any
    ) -> None:
        # The commands go by the clock of today, whenever that is: no run expires before it.
        self.memory = MemoryStage(retention_days=36_500, lake=lake)
        given = {
            "dynamodb": self.memory.dynamodb,
            "s3": Buckets(self.memory) if lake else self.memory.s3,
            "sqs": self.memory.sqs,
            **clients,
        }
        outputs = {
            **OUTPUTS,
            "ApiUrl": "https://api",
            "RecountQueueUrl": RECOUNTS,
            "ErasureQueueUrl": ERASURES,
            "EventQueueDeadLetterUrl": DEAD_LETTERS,
            **({"LakeUrl": "s3://l/lake/", "LakeRetentionDays": "36500"} if lake else {}),
        }
        self.stage = Stage.of_outputs(outputs, MemoryCloud(**given))
        self._capsys = capsys

    def __call__(self, *arguments: str, code: int = 0) -> str:
        """Standard output of a command that ends with this exit code."""
        returned = command_line.run(*arguments, stage=self.stage)
        assert (returned or 0) == code
        return self._capsys.readouterr().out

    def json(self, *arguments: str, code: int = 0) -> Any:
        """Under a strict parser: one value, no NaN, no name twice."""
        return strictly(self(*arguments, "--json", code=code))

    def record(
        self, run_id: str, *events: wire.Event, tenant: str = "acme", counted: bool = True
    ) -> None:
        run = build.RUN._replace(tenant_id=tenant, run_id=run_id)
        assert self.memory.ingest(build.body(*events, run=run)) == []
        if counted:
            self.memory.drain()
        self.memory.dynamodb.settle()


def strictly(text: str) -> Any:
    return json.loads(text, parse_constant=_refuse, object_pairs_hook=_once)


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    assert len({name for name, _ in pairs}) == len(pairs)
    return dict(pairs)
