"""A table whose partitions take so much a second, and the client that asks again.

https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html
"""

import math
import random
from bisect import bisect_left, bisect_right, insort
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable
from typing import Any, Final

from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.retries import quota, standard

from benchmarks.hot.virtual_time import VirtualTime
from functions.adapters.clients import CONFIG, Patience
from functions.core import keys
from tests.fakes.calls import client_error
from tests.fakes.dynamodb import MemoryDynamoDB, item_size

WRITES_A_SECOND: Final = 1_000
READS_A_SECOND: Final = 3_000
"""Of a partition, whatever the capacity mode; a collection whose sort key grows is never split:
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/throttling-key-range-limit-exceeded-mitigation.html
where it also says that reads and writes are throttled independently of each other."""
NEW_TABLE_PARTITIONS: Final = 4
"""A new table on demand takes 4,000 writes a second, which is four partitions' worth:
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/on-demand-capacity-mode.html"""
DOCUMENTED_BURST_S: Final = 300
"""Unused capacity is kept for so long, and "can't alleviate partition-level throttling":
https://repost.aws/knowledge-center/dynamodb-spiky-workloads-short-intervals
so that it is only counted on where a scenario says so."""
_PAGE_UNIT: Final = 4_096

ATTEMPTS: Final[int] = CONFIG.retries["total_max_attempts"]  # type: ignore[attr-defined]
_CODE: Final = "ThrottlingException"  # of a table on demand, for a key range that is too hot
_LATENCY_S: Final = {"get_item": 0.004, "put_item": 0.006, "update_item": 0.006, "query": 0.1}
"""Assumed; a Query brings 1 MB, which a recount takes longer to read than DynamoDB to send."""


class Allowance:
    """So many units a second, unused ones kept for `burst_s`. The request that finds any left is
    taken whole, and the next ones wait for what it took too much."""

    def __init__(self, a_second: float, burst_s: float) -> None:
        self._a_second = a_second
        self._most = a_second * burst_s
        self._left = self._most
        self._at = 0.0

    def admits(self, now: float) -> bool:
        self._left = min(self._most, self._left + (now - self._at) * self._a_second)
        self._at = now
        return self._left > 0

    def take(self, units: float) -> None:
        self._left -= units


class Partitions:
    """What each partition may still take, and what each key took: by second, by kind of item."""

    def __init__(
        self, burst_s: float = 1, partition_of: Callable[[str], Hashable] = lambda key: key
    ) -> None:
        self.partition_of = partition_of
        self._allowances = {
            kind: defaultdict[Hashable, Allowance](lambda rate=rate: Allowance(rate, burst_s))  # type: ignore[misc]
            for kind, rate in (("write", WRITES_A_SECOND), ("read", READS_A_SECOND))
        }
        self.written: dict[str, Counter[int]] = defaultdict(Counter)
        self.read: dict[str, Counter[int]] = defaultdict(Counter)
        self.kinds: dict[str, Counter[str]] = defaultdict(Counter)
        self.throttled = Counter[str]()

    def admits(self, kind: str, key: str, now: float) -> bool:
        admitted = self._allowances[kind][self.partition_of(key)].admits(now)
        self.throttled[kind] += not admitted
        return admitted

    def take(self, kind: str, key: str, units: float, now: float) -> None:
        self._allowances[kind][self.partition_of(key)].take(units)
        (self.written if kind == "write" else self.read)[key][int(now)] += int(units)


class HotTable(MemoryDynamoDB):
    """Hands each stream record to `on_record` instead of keeping all; queries without a scan."""

    def __init__(self, on_record: Callable[[str, dict[str, Any]], None]) -> None:
        super().__init__()
        self._on_record = on_record
        self._sorts: dict[str, list[str]] = defaultdict(list)

    def _record(self, name: str, key: tuple[str, str], old: Any, new: Any) -> None:
        super()._record(name, key, old, new)
        self._on_record(key[0], self.stream.pop())
        if name == "INSERT":
            insort(self._sorts[key[0]], key[1])
        self.settle()

    def _query(self, request: dict[str, Any]) -> dict[str, Any]:
        values = request["ExpressionAttributeValues"]
        partition, first, last = (values[name]["S"] for name in (":pk", ":first", ":last"))
        sorts = self._sorts[partition]
        after = request.get("ExclusiveStartKey")
        place = bisect_right(sorts, after["SK"]["S"]) if after else bisect_left(sorts, first)
        page: list[Any] = []
        size = 0
        while place < len(sorts) and sorts[place] <= last:
            key = partition, sorts[place]
            page.append(self._projected(self.items[key], request))
            size += self._size_of(key, self.items[key])
            place += 1
            if size >= self.page_bytes:
                start = {"PK": {"S": key[0]}, "SK": {"S": key[1]}}
                return {"Items": page, "LastEvaluatedKey": start, "size": size}
        return {"Items": page, "size": size}


class Retries:
    """botocore's own, of one client: how long before the next attempt, or None for no more.

    botocore gives up when its quota is used up, which is after some hundred retries; a client
    with `patience` then goes on by the functions' own rule.
    """

    def __init__(self, chance: random.Random, patience: Patience | None = None) -> None:
        self._patience = patience
        adapter = standard.RetryEventAdapter()
        throttling = standard.ThrottlingErrorDetector(adapter)
        backoff = standard.ExponentialBackoff(
            random=chance.random, service_name="dynamodb", throttling_detector=throttling
        )
        policy = standard.RetryPolicy(standard.StandardRetryConditions(ATTEMPTS), backoff)
        self._quota = standard.RetryQuotaChecker(quota.RetryQuota(), throttling)
        # The types say a quota; botocore itself gives it the checker.
        self._handler = standard.RetryHandler(policy, adapter, self._quota)  # type: ignore[arg-type]

    def pause(self, attempt: int, context: dict[str, Any]) -> float | None:
        refused = AWSResponse("", 400, HTTPHeaders(), None), {"Error": {"Code": _CODE}}
        delay: float | None = self._handler.needs_retry(
            response=refused,
            attempts=attempt,
            operation=None,
            caught_exception=None,
            request_dict={"context": context},
        )
        if delay is None and self._patience:
            return self._patience.pause(response=refused)
        return delay

    def succeeded(self, context: dict[str, Any]) -> None:
        answered = AWSResponse("", 200, HTTPHeaders(), None)
        self._quota.release_retry_quota(context, answered)  # type: ignore[arg-type] # it is a dict


class Cpu:
    """One at a time: what a function computes for each request."""

    def __init__(self, time: VirtualTime, seconds_a_request: float) -> None:
        self._time = time
        self._seconds = seconds_a_request
        self._free_at = 0.0

    def turn(self) -> float:
        """How long until this request has been computed."""
        self._free_at = max(self._free_at, self._time.now) + self._seconds
        return self._free_at - self._time.now


class HotClient:
    """The table as one function's client shows it: with latency, throttling, and retries."""

    def __init__(
        self,
        time: VirtualTime,
        table: HotTable,
        partitions: Partitions,
        cpu: Cpu,
        retries: Retries,
    ) -> None:
        self._time, self._table, self._partitions, self._cpu = time, table, partitions, cpu
        self._retries = retries

    def get_item(self, **request: Any) -> dict[str, Any]:
        return self._ask("get_item", "read", request["Key"], request)

    def put_item(self, **request: Any) -> dict[str, Any]:
        return self._ask("put_item", "write", request["Item"], request)

    def update_item(self, **request: Any) -> dict[str, Any]:
        return self._ask("update_item", "write", request["Key"], request)

    def query(self, **request: Any) -> dict[str, Any]:
        partition = request["ExpressionAttributeValues"][":pk"]
        return self._ask("query", "read", {"PK": partition, "SK": {"S": "a page"}}, request)

    def _ask(
        self, operation: str, kind: str, item: dict[str, Any], request: dict[str, Any]
    ) -> dict[str, Any]:
        key = item["PK"]["S"]
        context: dict[str, Any] = {}
        attempt = 1
        self._time.sleep(self._cpu.turn() + _LATENCY_S[operation])
        while not self._partitions.admits(kind, key, self._time.now):
            pause = self._retries.pause(attempt, context)
            if pause is None:
                raise client_error(operation, _CODE, "TableWriteKeyRangeThroughputExceeded")
            attempt += 1
            self._time.sleep(pause + self._cpu.turn() + _LATENCY_S[operation])
        before = self._table.write_units
        answer: dict[str, Any] = {}
        try:
            answer = getattr(self._table, operation)(**request)
        finally:
            self._bill(kind, key, item["SK"]["S"], self._table.write_units - before, answer)
        self._retries.succeeded(context)  # not after a refused condition, which is no 2xx
        return answer

    def _bill(self, kind: str, key: str, sort: str, written: int, answer: dict[str, Any]) -> None:
        now = self._time.now
        if kind == "read":
            size = answer.get("size") or item_size(answer.get("Item", {}))
            self._partitions.take(kind, key, max(1, math.ceil(size / _PAGE_UNIT)), now)
            return
        of_item = written
        stored = self._table.items.get((key, sort), {})
        if keys.BY_TENANT_PARTITION in stored:  # the rest was for the indexes; it is told of one
            of_item = min(written, math.ceil(item_size(stored) / 1_024))
            index = stored[keys.BY_TENANT_PARTITION]["S"]
            self._partitions.take("write", f"{keys.BY_TENANT} {index}", written - of_item, now)
        self._partitions.take("write", key, of_item, now)
        self._partitions.kinds[key][sort.partition("#")[0]] += of_item
