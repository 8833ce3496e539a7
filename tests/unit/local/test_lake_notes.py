"""`runtally rebuild` beside a lake whose notes were lost: its files say which runs it has."""

import time

import pytest

from functions.core import keys, lake, lake_ports
from functions.core.keys import RunRef
from functions.core.lake_ports import LakeNote
from local.commands import LocalStageError
from tests.build import RUN, T0, ended, started, step
from tests.fakes.s3 import MemoryS3
from tests.unit.local.terminal import Terminal

DAY = 86_400 * 10**9
FIRST, LATER = "2026-11-27", "2026-11-28"
OTHER = RunRef("globex", "run-1")
ACME_2 = RUN._replace(run_id="run-2")


@pytest.fixture
def terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Three runs, of which one moved from a later day to an earlier one."""
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.delenv("RUNTALLY_STAGE", raising=False)
    terminal = Terminal(capsys, lake=True)
    assert terminal.memory.lake
    terminal.memory.lake.write_plain()
    terminal.record("run-1", started(T0 - DAY), step(1), step(2), ended())
    terminal.record("run-1", started(T0 - 2 * DAY), step(3))
    terminal.record("run-2", started(), step(1), ended())
    terminal.record("run-1", started(), step(1), ended(), tenant="globex")
    return terminal


def files(terminal: Terminal) -> MemoryS3:
    assert terminal.memory.lake
    return terminal.memory.lake.s3


def note(terminal: Terminal, ref: RunRef = RUN) -> LakeNote:
    assert terminal.memory.lake
    return terminal.memory.lake.parts.write.source.load_note(ref)


def lose(terminal: Terminal, *sorts: str) -> None:
    items = terminal.memory.dynamodb.items
    for key in [key for key in items if not sorts or key[1] in sorts]:
        del items[key]


def rebuild(terminal: Terminal, *arguments: str) -> int:
    """How many notes it says it made."""
    answer = terminal.json("rebuild", *arguments, "--no-wait")
    restored: int = answer["lake_notes"]
    return restored


def test_a_note_that_was_lost_says_again_how_many_calls_lie_under_which_days(
    terminal: Terminal,
) -> None:
    before = note(terminal)
    assert (set(before.days), before.calls) == ({FIRST, LATER}, 3)
    lose(terminal)
    files(terminal).most_versions = 1
    assert terminal.json("rebuild", "--dry-run")["lake_notes"] == 0
    assert note(terminal) == LakeNote()
    began = time.time_ns()
    assert rebuild(terminal) == 3
    made = note(terminal)
    assert (set(made.days), made.calls, made.turn) == ({FIRST, LATER}, 3, 1)
    assert made.expires_at >= lake_ports.noted_until(began, 36_500)
    assert rebuild(terminal) == 0
    assert note(terminal) == made
    lose(terminal)
    assert "Notes of 3 runs of the lake were lost" in terminal("rebuild", "--no-wait")


def test_a_note_that_is_there_stays(terminal: Terminal) -> None:
    before = note(terminal)
    lose(terminal, keys.RUN)
    terminal.memory.calls.made.clear()
    assert rebuild(terminal) == 0
    assert note(terminal) == before
    assert "s3.head_object" not in terminal.memory.calls.made


@pytest.mark.parametrize(
    ("arguments", "restored"),
    [
        (("run-1", "--tenant", "acme"), {RUN}),
        (("--tenant", "acme"), {RUN, ACME_2}),
        ((), {RUN, ACME_2, OTHER}),
    ],
)
def test_notes_are_made_of_the_runs_that_are_rebuilt(
    terminal: Terminal, arguments: tuple[str, ...], restored: set[RunRef]
) -> None:
    lose(terminal)
    assert rebuild(terminal, *arguments) == len(restored)
    assert {ref for ref in (RUN, ACME_2, OTHER) if note(terminal, ref).turn} == restored


def test_a_run_that_is_hidden_has_a_note_without_calls(terminal: Terminal) -> None:
    """As one that was deleted while a lock held its files."""
    lose(terminal)
    for key in [key for key in files(terminal).objects if f"/{RUN.run_id}." in key]:
        files(terminal).delete_objects(Delete={"Objects": [{"Key": key}]})
    rebuild(terminal)
    assert (set(note(terminal).days), note(terminal).calls) == ({FIRST, LATER}, 0)


def test_a_delete_marker_that_is_left_alone_is_noted_too(terminal: Terminal) -> None:
    lose(terminal)
    key = lake_ports.object_of_run(lake.CALLS, RUN, LATER)
    older = files(terminal).older
    older[key] = [version for version in older[key] if version.content is None]
    assert len(older[key]) == 1
    rebuild(terminal)
    assert set(note(terminal).days) == {FIRST, LATER}


def test_where_a_move_was_killed_the_newer_file_has_more_calls(terminal: Terminal) -> None:
    lose(terminal)
    for day, rows in ((LATER, "2"), ("2026-11-30", "")):
        key = lake_ports.object_of_run(lake.CALLS, RUN, day)
        metadata = {"rows": rows} if rows else {}  # of somebody who copied the files
        files(terminal).put_object(Key=key, Body=b"", Metadata=metadata)
    rebuild(terminal)
    assert note(terminal).calls == 3


def test_a_note_that_somebody_wrote_since_gets_the_days_that_it_lacks(terminal: Terminal) -> None:
    lose(terminal)
    since = LakeNote(("2026-11-30",), 5, 2**33, 1)
    put_note(terminal, LakeNote(), since)
    assert rebuild(terminal, "run-1", "--tenant", "acme") == 1
    made = note(terminal)
    assert set(made.days) == {"2026-11-30", FIRST, LATER}
    assert (made.turn, made.expires_at, made.calls) == (6, 2**33, 1)


def put_note(terminal: Terminal, before: LakeNote, after: LakeNote) -> None:
    assert terminal.memory.lake
    assert terminal.memory.lake.parts.write.source.put_note(RUN, before, after)


def test_who_gets_ahead_is_not_overwritten(terminal: Terminal) -> None:
    """A run of the stage is written to the lake between the look at its note and the put."""
    lose(terminal)

    def ahead(call: str, when: str) -> None:
        if (call, when) == ("s3.head_object", "after"):
            terminal.memory.calls.hook = lambda *_: None
            put_note(terminal, LakeNote(), LakeNote((FIRST,), 1, 2**33, 7))

    terminal.memory.calls.hook = ahead
    rebuild(terminal, "run-1", "--tenant", "acme")
    made = note(terminal)
    assert (set(made.days), made.turn, made.calls) == ({FIRST, LATER}, 2, 7)


def test_a_file_that_is_gone_meanwhile_has_no_calls(terminal: Terminal) -> None:
    lose(terminal)

    def gone(call: str, when: str) -> None:
        if (call, when) == ("s3.head_object", "before"):
            files(terminal).objects.clear()

    terminal.memory.calls.hook = gone
    assert rebuild(terminal) == 3
    assert note(terminal).calls == 0


def test_what_is_no_file_of_a_run_makes_no_note(terminal: Terminal) -> None:
    lose(terminal)
    files(terminal).objects.clear()
    files(terminal).older.clear()
    for key in ("lake/calls/", "lake/calls/tenant_id=acme/", "lake/calls/tenant_id=acme/x.parquet"):
        files(terminal).put_object(Key=key, Body=b"")
    assert rebuild(terminal) == 0


def test_a_run_that_expired_before_can_be_deleted_from_the_lake_again(terminal: Terminal) -> None:
    lose(terminal)
    terminal.memory.s3.objects.clear()
    delete = ("delete", "run", "run-1", "--tenant", "acme")
    terminal("tenants", "create", "acme")
    with pytest.raises(LocalStageError, match="no such run"):
        terminal(*delete)
    rebuild(terminal)
    terminal(*delete)
    terminal.memory.erase_all()
    assert terminal.memory.lake
    assert terminal.memory.lake.versions_of(RUN) == []
    assert len(terminal.memory.lake.files_of(ACME_2)) == 3
    assert note(terminal) == LakeNote()


def test_a_lake_that_keeps_no_count_has_to_be_deployed_first(terminal: Terminal) -> None:
    terminal.stage.__dict__["lake_retention_days"] = 0
    with pytest.raises(LocalStageError, match="older than this") as error:
        rebuild(terminal)
    assert "cdk deploy" in error.value.advice
    assert not terminal.memory.sqs.queues.get(terminal.stage.event_queue_url)


def test_interrupted_before_anything_is_sent_it_says_so(terminal: Terminal) -> None:
    lose(terminal)

    def interrupt(call: str, when: str) -> None:
        if call == "s3.head_object":
            raise KeyboardInterrupt

    terminal.memory.calls.hook = interrupt
    with pytest.raises(LocalStageError, match="nothing is sent yet"):
        rebuild(terminal)
