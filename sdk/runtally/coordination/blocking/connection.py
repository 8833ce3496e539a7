"""Requests over the blocking client."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import valkey
from valkey.exceptions import NoScriptError, ValkeyClusterException, ValkeyError
from valkey.retry import Retry

from runtally.coordination import connecting
from runtally.coordination.errors import Unavailable
from runtally.coordination.script import SCRIPT, SHA1

if TYPE_CHECKING:
    from runtally.coordination.iam import ElastiCacheIam

Client = valkey.Valkey | valkey.ValkeyCluster


class Connection:
    def __init__(self, client: Client) -> None:
        connecting.refuse_decoding(client)
        self._client = client
        self._execute: Callable[..., Any] = client.execute_command

    @classmethod
    def to(cls, url: str, timeout_s: float, iam: "ElastiCacheIam | None") -> "Connection":
        retry = Retry(connecting.BACKOFF, connecting.ATTEMPTS - 1)
        options = connecting.options(timeout_s, iam)
        return cls(valkey.Valkey.from_url(url, retry=retry, **options))

    def run(self, key: str, arguments: Sequence[str | bytes]) -> list[bytes]:
        """The script's answer. Raises Unavailable when there is none."""
        try:
            try:
                answer = self._execute("EVALSHA", SHA1, 1, key, *arguments)
            except NoScriptError:  # a server that is new, or was restarted
                answer = self._execute("EVAL", SCRIPT, 1, key, *arguments)
        except (ValkeyError, ValkeyClusterException, OSError) as error:
            if not connecting.is_unreachable(error):
                raise
            raise Unavailable(f"Valkey does not answer: {error}") from error
        return cast("list[bytes]", answer)

    def close(self) -> None:
        close: Callable[[], None] = self._client.close
        close()
