"""A cloud for local.stage.Stage: clients that are fakes, and stacks with outputs."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from tests.fakes.calls import client_error


class MemoryCloud:
    """Hands out the given clients, by service."""

    def __init__(self, **clients: Any) -> None:
        self._clients = clients

    def client(self, service: str) -> Any:
        return self._clients[service]

    def api_url(self, outputs: Mapping[str, str]) -> str:
        return outputs["ApiUrl"]


class MemoryCloudFormation:
    """Stacks by name, each with its outputs; `failure` is what every request raises."""

    meta = SimpleNamespace(region_name="eu-west-1")

    def __init__(self, stacks: Mapping[str, Mapping[str, str]], failure: Exception | None = None):
        self.stacks = stacks
        self.failure = failure
        self.closed = False

    def describe_stacks(self, *, StackName: str) -> dict[str, Any]:  # noqa: N803 - boto3's name
        if self.failure:
            raise self.failure
        if StackName not in self.stacks:
            message = f"Stack with id {StackName} does not exist"
            raise client_error("DescribeStacks", "ValidationError", message)
        outputs = [
            {"OutputKey": key, "OutputValue": value}
            for key, value in self.stacks[StackName].items()
        ]
        # As AWS answers: a stack without outputs has no such field.
        return {"Stacks": [{"StackName": StackName} | ({"Outputs": outputs} if outputs else {})]}

    def close(self) -> None:
        self.closed = True
