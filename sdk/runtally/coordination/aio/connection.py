"""Requests over the asynchronous client."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import valkey.asyncio
from valkey.asyncio.retry import Retry
from valkey.exceptions import NoScriptError, ValkeyClusterException, ValkeyError

from runtally.coordination import connecting
from runtally.coordination.errors import Unavailable
from runtally.coordination.script import SCRIPT, SHA1

if TYPE_CHECKING:
    from runtally.coordination.iam import ElastiCacheIam

Client = valkey.asyncio.Valkey | valkey.asyncio.ValkeyCluster


class Connection:
    def __init__(self, client: Client) -> None:
        connecting.refuse_decoding(client)
        self._client = client
        self._execute: Callable[..., Any] = client.execute_command

    @classmethod
    def to(cls, url: str, timeout_s: float, iam: "ElastiCacheIam | None") -> "Connection":
        retry = Retry(connecting.BACKOFF, connecting.ATTEMPTS - 1)
        options = connecting.options(timeout_s, iam)
        return cls(valkey.asyncio.Valkey.from_url(url, retry=retry, **options))

    async def run(self, key: str, arguments: Sequence[str | bytes]) -> list[bytes]:
        """The script's answer. Raises Unavailable when there is none."""
        try:
            try:
                answer = await self._execute("EVALSHA", SHA1, 1, key, *arguments)
            except NoScriptError:  # a server that is new, or was restarted
                answer = await self._execute("EVAL", SCRIPT, 1, key, *arguments)
        except (ValkeyError, ValkeyClusterException, OSError) as error:
            if not connecting.is_unreachable(error):
                raise
            raise Unavailable(f"Valkey does not answer: {error}") from error
        return cast("list[bytes]", answer)

    async def close(self) -> None:
        await self._client.aclose()
