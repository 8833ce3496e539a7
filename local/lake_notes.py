"""The notes of a stage's lake, made anew from its files: a table that lost them cannot tell which
files a run has, and would add to them, or put fewer calls in their place."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Final

from botocore.exceptions import ClientError

from functions.adapters.dynamodb import DynamoDBTable
from functions.adapters.dynamodb_lake import DynamoDBLakeNotes
from functions.adapters.s3_lake_versions import S3LakeVersions
from functions.core import keys, lake, lake_ports
from functions.core.keys import RunRef
from functions.core.lake_ports import LakeNote
from local.at_once import each_done
from local.commands import LocalStageError
from local.stage import Stage

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

_ALL: Final = f"{keys.LAKE_OBJECTS}{lake.CALLS.name}/"
_GONE: Final = "404"

type Days = dict[str, bool]
"""Under which there is any version of a run's file, and whether readers find one there."""


def restore_notes(
    stage: Stage, tenant: str | None, run: str | None, at_once: int
) -> Iterator[bool]:
    """Of each run of which the lake has files, whether its note was not there, or not whole, and is
    now: of all runs, of a tenant's, or of the one.

    No other note changes, and repeating it changes nothing. Raises LocalStageError for a lake that
    a version deployed whose notes do not say how many calls there are.
    """
    if not stage.lake_retention_days:
        raise LocalStageError(
            f"The lake of the stage {stage.stage} is older than this command line.",
            f"Deploy it first: `uv run npx cdk deploy --all -c stage={stage.stage}`.",
        )
    below = _ALL if tenant is None else lake_ports.files_of_calls(tenant)
    found = _runs_below(stage.s3, stage.lake_bucket, below)
    wanted = (one for one in found if run in {None, one[0].run_id})
    notes = DynamoDBLakeNotes(DynamoDBTable(stage.dynamodb, stage.table_name))
    expires_at = lake_ports.noted_until(time.time_ns(), stage.lake_retention_days)
    restore = RestoreNote(stage.s3, stage.lake_bucket, notes, expires_at)
    with ThreadPoolExecutor(at_once) as pool:
        yield from each_done(pool, at_once, restore, wanted)


def _runs_below(s3: "S3Client", bucket: str, prefix: str) -> Iterator[tuple[RunRef, Days]]:
    """Tenant by tenant: below one, a run of several days lies in several places."""
    files = _files_below(s3, bucket, prefix)
    for _, of_tenant in groupby(files, key=lambda file: file[0].tenant_id):
        found: dict[RunRef, Days] = {}
        for ref, day, is_shown in of_tenant:
            days = found.setdefault(ref, {})
            days[day] = days.get(day, False) or is_shown
        yield from found.items()


def _files_below(s3: "S3Client", bucket: str, prefix: str) -> Iterator[tuple[RunRef, str, bool]]:
    for key, is_shown in S3LakeVersions(s3, bucket).files_below(prefix):
        with suppress(ValueError):  # what somebody else put there
            yield *lake_ports.parse_object(key), is_shown


@dataclass(frozen=True, slots=True)
class RestoreNote:
    """May be called from several threads."""

    s3: "S3Client"
    bucket: str
    notes: DynamoDBLakeNotes
    expires_at: int

    def __call__(self, found: tuple[RunRef, Days]) -> bool:
        ref, days = found
        while True:
            before = self.notes.load_note(ref)
            if before.turn and days.keys() <= set(before.days):
                return False
            if self.notes.put_note(ref, before, self._mended(before, ref, days)):
                return True

    def _mended(self, before: LakeNote, ref: RunRef, days: Days) -> LakeNote:
        """One that somebody wrote since says how many calls its own files have."""
        return LakeNote(
            days=tuple(dict.fromkeys((*before.days, *days))),
            turn=before.turn + 1,
            expires_at=max(before.expires_at, self.expires_at),
            calls=before.calls if before.turn else self._calls(ref, days),
        )

    def _calls(self, ref: RunRef, days: Days) -> int:
        """Of the two files that a run may show, whose writer was killed while it moved, the one
        with more is the newer."""
        shown = [day for day, is_shown in days.items() if is_shown]
        return max((self._calls_under(ref, day) for day in shown), default=0)

    def _calls_under(self, ref: RunRef, day: str) -> int:
        """0 where the file is gone by now."""
        key = lake_ports.object_of_run(lake.CALLS, ref, day)
        try:
            answer = self.s3.head_object(Bucket=self.bucket, Key=key)
        except ClientError as error:
            if error.response["Error"]["Code"] == _GONE:
                return 0
            raise
        return int(answer["Metadata"].get(lake_ports.ROWS, 0))
