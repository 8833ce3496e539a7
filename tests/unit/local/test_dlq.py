"""`runtally dlq`: dead letters are seen without being taken, and go back as they were sent."""

import io
import json
from typing import Any

import pytest

from functions.core import dead_letters, keys
from local.commands import LocalStageError
from local.dlq_redrive import agreed
from local.queues import queues_of
from tests import command_line
from tests.build import RUN, body, ended, started, step
from tests.fakes.calls import client_error
from tests.fakes.sqs import Sent
from tests.memory_stage import DEAD_LETTERS, RECOUNTS
from tests.unit.local.terminal import Terminal

BAD = body(step(1, cost_usd="-1"), step(2))
RECOUNTS_DEAD = "http://127.0.0.1:1/0/recounts-dead"
JOBS_DEAD = "http://127.0.0.1:1/0/research-dead"


def refused(terminal: Terminal, *bodies: str) -> None:
    assert terminal.memory.ingest(*(bodies or (BAD,))) == []


def in_vain(terminal: Terminal, text: str, url: str = DEAD_LETTERS, **more: Any) -> str:
    """As SQS moves a message there that was received too often: as it was sent."""
    queue = terminal.memory.sqs.queues.setdefault(url, [])
    sent = Sent(f"vain-{len(queue)}", text, sent_at=terminal.memory.sqs.clock.now_ns(), **more)
    queue.append(sent)
    return sent.message_id


def waiting(terminal: Terminal, url: str = "") -> list[Sent]:
    return terminal.memory.sqs.queues.get(url or terminal.stage.event_queue_url, [])


def ingest_again(terminal: Terminal) -> None:
    """What the event source does with all that was moved back."""
    queue = waiting(terminal)
    assert terminal.memory.ingest(*(sent.body for sent in queue)) == []
    queue.clear()


class TestList:
    def test_it_tells_why_where_whose_how_old_and_how_large(self, terminal: Terminal) -> None:
        refused(terminal)
        terminal.memory.sqs.clock.advance(1)
        in_vain(terminal, '{"tenant_id":"acme","run_id":"r-2","agents_total":3}', RECOUNTS_DEAD)
        answer = terminal.json("dlq", "list")
        first, second = answer["letters"]
        assert first == {
            "queue": "events",
            "message_id": "m-1",
            "reason": "invalid_field",
            "field": "events[0].cost_usd",
            "tenant_id": "acme",
            "run_id": "run-1",
            "invocation_id": None,
            "sent_at": first["sent_at"],
            "size": len(BAD.encode()),
            "kept_as": None,
        }
        assert (second["queue"], second["reason"], second["run_id"]) == ("recounts", None, "r-2")
        assert first["sent_at"] < second["sent_at"]
        assert (answer["there"], answer["complete"]) == (2, True)
        shown = terminal("dlq", "list")
        for text in ("m-1", "invalid_field", "events[0].cost_usd", "delivered in vain", "r-2"):
            assert text in shown
        assert "2 dead letters." in shown

    def test_what_it_has_seen_stays_and_shows_again_at_once(self, terminal: Terminal) -> None:
        refused(terminal, *(body(step(n, cost_usd="-1")) for n in range(1, 26)))
        assert len(terminal.json("dlq", "list")["letters"]) == 25
        assert all(sent.visible_at <= 10**18 * 2 for sent in waiting(terminal, DEAD_LETTERS))
        again = terminal.json("dlq", "list")["letters"]
        assert len({letter["message_id"] for letter in again}) == 25

    def test_it_shows_again_also_when_reading_fails(self, terminal: Terminal) -> None:
        refused(terminal, *(body(step(n, cost_usd="-1")) for n in range(1, 26)))
        received = 0

        def fail(call: str, when: str) -> None:
            nonlocal received
            received += (call, when) == ("sqs.receive_message", "before")
            if received == 2 and call == "sqs.receive_message":
                raise client_error("ReceiveMessage", "InternalServerError")

        terminal.memory.calls.hook = fail
        with pytest.raises(LocalStageError):
            terminal("dlq", "list")
        terminal.memory.calls.hook = lambda call, when: None
        assert len(terminal.json("dlq", "list")["letters"]) == 25

    def test_without_time_enough_it_says_so(self, terminal: Terminal) -> None:
        refused(terminal)
        answer = terminal.json("dlq", "list", "--within", "0s")
        assert (answer["letters"], answer["there"], answer["complete"]) == ([], 1, False)
        shown = terminal("dlq", "list", "--within", "0s")
        assert "The first 0 letters, of about 1" in shown

    def test_what_somebody_else_is_looking_at_is_not_there_for_us(self, terminal: Terminal) -> None:
        refused(terminal)
        terminal.memory.sqs.receive_message(QueueUrl=DEAD_LETTERS, VisibilityTimeout=60)
        assert not terminal.json("dlq", "list")["complete"]

    def test_a_queue_and_a_reason_narrow_it(self, terminal: Terminal) -> None:
        refused(terminal, BAD, "{")
        in_vain(terminal, body(step(3)))
        in_vain(terminal, "x", JOBS_DEAD)

        def ids(*arguments: str) -> list[str]:
            found = terminal.json("dlq", "list", *arguments)["letters"]
            return sorted(letter["message_id"] for letter in found)

        assert ids("--reason", "not_json") == ["m-2"]
        assert ids("--reason", "none", "--queue", "events") == ["vain-2"]
        assert ids("--queue", "jobs/research") == ["vain-0"]
        with pytest.raises(LocalStageError, match="no queue nothing"):
            terminal("dlq", "list", "--queue", "nothing")

    def test_none_is_said_to_be_none(self, terminal: Terminal) -> None:
        assert "No dead letters." in terminal("dlq", "list")

    @pytest.mark.parametrize(
        "text",
        ["\x7f[31m", "[]", '{"tenant_id":7,"run_id":["x"]}', "[" * 9_999],
        ids=["no JSON", "no object", "no texts", "deep"],
    )
    def test_a_body_may_be_anything(self, terminal: Terminal, text: str) -> None:
        in_vain(terminal, text)
        (letter,) = terminal.json("dlq", "list")["letters"]
        assert (letter["tenant_id"], letter["run_id"]) == (None, None)
        assert "vain-0" in terminal("dlq", "list")
        assert "\x7f" not in terminal("dlq", "show", "vain-0")


class TestShow:
    def test_it_shows_attributes_refusals_and_an_indented_body(self, terminal: Terminal) -> None:
        refused(terminal)
        shown = terminal("dlq", "show", "m-1")
        assert "✗ events[0].cost_usd:" in shown
        assert '"cost_usd": "-1"' in shown
        answer = terminal.json("dlq", "show", "m-1")
        assert answer["body"] == BAD
        assert answer["attributes"]["refused"] == "1"
        assert terminal.json("dlq", "list")["letters"] == [answer["letter"]]

    def test_raw_is_the_body_byte_for_byte(self, terminal: Terminal) -> None:
        text = '{"n": 1.10,\t"你": "\\u0000"}\r\n'
        in_vain(terminal, text)
        assert terminal("dlq", "show", "vain-0", "--raw") == text

    def test_an_id_that_is_not_there_is_said_so(self, terminal: Terminal) -> None:
        with pytest.raises(LocalStageError, match="no dead letter m-9"):
            terminal("dlq", "show", "m-9")


class TestRedrive:
    def test_it_goes_back_as_it_was_sent_without_the_reasons(self, terminal: Terminal) -> None:
        refused(terminal)
        assert "1 letter moved back" in terminal("dlq", "redrive", "m-1", "--yes")
        (sent,) = waiting(terminal)
        assert (sent.body, sent.attributes) == (BAD, {})
        assert waiting(terminal, DEAD_LETTERS) == []

    def test_what_was_not_meant_stays_before_and_behind_what_was(self, terminal: Terminal) -> None:
        ids = [in_vain(terminal, body(step(n))) for n in range(1, 4)]
        terminal("dlq", "redrive", ids[1])
        assert [sent.body for sent in waiting(terminal)] == [body(step(2))]
        assert [sent.message_id for sent in waiting(terminal, DEAD_LETTERS)] == [ids[0], ids[2]]

    def test_group_and_the_senders_own_attributes_stay(self, terminal: Terminal) -> None:
        in_vain(terminal, body(step(1)), group="acme", attributes={"reason": "the sender's own"})
        terminal("dlq", "redrive", "vain-0")
        (sent,) = waiting(terminal)
        assert (sent.group, sent.attributes) == ("acme", {"reason": "the sender's own"})

    def test_each_goes_back_to_its_own_queue(self, terminal: Terminal) -> None:
        in_vain(terminal, body(step(1)))
        in_vain(terminal, '{"tenant_id":"acme","run_id":"run-1"}', RECOUNTS_DEAD)
        in_vain(terminal, "{}", JOBS_DEAD)
        answer = terminal.json("dlq", "redrive", "--all")
        assert {one["queue"]: one["moved"] for one in answer["queues"]} == {
            "events": 1, "recounts": 1, "jobs/research": 1,
        }  # fmt: skip
        assert len(waiting(terminal)) == len(waiting(terminal, RECOUNTS)) == 1
        assert len(waiting(terminal, "http://127.0.0.1:1/0/research")) == 1

    def test_what_is_mended_is_stored_and_what_is_not_comes_back(self, terminal: Terminal) -> None:
        """I12: what was stored before is recognised."""
        newer = '{"v":1,"tenant_id":"acme","run_id":"run-1","events":[{"type":"new"}]}'
        refused(terminal, BAD, newer)
        in_vain(terminal, body(started(), step(3), ended()))
        terminal("dlq", "redrive", "--all", "--reason", "invalid_field", "--yes")
        terminal("dlq", "redrive", "--all", "--reason", "none")
        ingest_again(terminal)
        terminal.memory.drain()
        letters = terminal.json("dlq", "list")["letters"]
        assert {letter["reason"] for letter in letters} == {"unknown_type", "invalid_field"}
        assert len(letters) == 2
        stored = terminal.memory.items_of(RUN, keys.STEP_PREFIX)
        assert len(stored) == 2
        assert terminal.memory.item(RUN, keys.SUMMARY)["agents_total"] == 2  # type: ignore[index]

    def test_a_dry_run_moves_nothing(self, terminal: Terminal) -> None:
        refused(terminal)
        assert "None was moved." in terminal("dlq", "redrive", "--all", "--dry-run")
        answer = terminal.json("dlq", "redrive", "--all", "--dry-run")
        assert answer == {"dry_run": True, "wanted": 1, "refused": 1, "queues": []}
        assert waiting(terminal) == []

    def test_what_was_refused_needs_a_yes_where_nobody_can_be_asked(
        self, terminal: Terminal, capsys: pytest.CaptureFixture[str]
    ) -> None:
        refused(terminal, BAD, "{")
        with pytest.raises(LocalStageError, match="Nothing was moved"):
            terminal("dlq", "redrive", "--all")
        warned = " ".join(capsys.readouterr().err.split())
        assert "2 letters refused for what they say (invalid_field 1, not_json 1)" in warned
        assert len(waiting(terminal, DEAD_LETTERS)) == 2

    @pytest.mark.parametrize(
        ("typed", "tty", "yes"),
        [("y\n", True, True), ("YES\n", True, True), ("\n", True, False), ("y\n", False, False)],
    )
    def test_a_person_is_asked(self, typed: str, tty: bool, yes: bool) -> None:
        class Asked(io.StringIO):
            def isatty(self) -> bool:
                return tty

        assert agreed(Asked(typed)) is yes

    @pytest.mark.parametrize("arguments", [(), ("m-1", "--all"), ("m-1", "--reason", "x")], ids=str)
    def test_it_wants_ids_or_all(self, terminal: Terminal, arguments: tuple[str, ...]) -> None:
        with pytest.raises(LocalStageError, match="ids or `--all`"):
            terminal("dlq", "redrive", *arguments)

    def test_nothing_is_moved_when_one_of_the_ids_is_not_there(self, terminal: Terminal) -> None:
        refused(terminal)
        with pytest.raises(LocalStageError, match=r"1 letter not found: m-9. Nothing was moved"):
            terminal("dlq", "redrive", "m-1", "m-9", "--yes")
        assert waiting(terminal) == []

    def test_a_letter_whose_send_fails_stays(self, terminal: Terminal) -> None:
        in_vain(terminal, body(step(1)))

        def fail(call: str, when: str) -> None:
            if (call, when) == ("sqs.send_message", "before"):
                raise client_error("SendMessage", "InternalServerError")

        terminal.memory.calls.hook = fail
        with pytest.raises(LocalStageError):
            terminal("dlq", "redrive", "vain-0")
        terminal.memory.calls.hook = lambda call, when: None
        assert len(terminal.json("dlq", "list")["letters"]) == 1

    def test_what_comes_back_while_it_goes_on_is_not_moved_again(self, terminal: Terminal) -> None:
        refused(terminal, *(body(step(n, cost_usd="-1")) for n in range(1, 4)))

        def refuse_at_once(call: str, when: str) -> None:
            if (call, when) == ("sqs.delete_message", "after"):
                terminal.memory.calls.hook = lambda call, when: None
                ingest_again(terminal)
                terminal.memory.calls.hook = refuse_at_once

        terminal.memory.calls.hook = refuse_at_once
        answer = terminal.json("dlq", "redrive", "--all", "--reason", "invalid_field", "--yes")
        assert answer["queues"] == [{"queue": "events", "moved": 3, "why_not": None}]
        assert len(waiting(terminal, DEAD_LETTERS)) == 3


class TestRedriveBySqs:
    def test_all_of_a_queue_are_moved_by_a_task_with_a_destination(
        self, terminal: Terminal
    ) -> None:
        for n in range(1, 26):
            in_vain(terminal, body(step(n)))
        answer = terminal.json("dlq", "redrive", "--all")
        assert answer["queues"] == [{"queue": "events", "moved": 25, "why_not": None}]
        (task,) = terminal.memory.sqs.move_tasks
        assert (task.source, task.destination) == (DEAD_LETTERS, terminal.stage.event_queue_url)
        assert "sqs.delete_message" not in terminal.memory.calls.made

    def test_a_filter_or_ids_do_without(self, terminal: Terminal) -> None:
        in_vain(terminal, body(step(1)))
        terminal("dlq", "redrive", "--all", "--reason", "none")
        in_vain(terminal, body(step(1)))
        terminal("dlq", "redrive", "vain-0")
        assert terminal.memory.sqs.move_tasks == []
        assert len(waiting(terminal)) == 2

    def test_a_service_without_tasks_is_helped_out(self, terminal: Terminal) -> None:
        def lacks(**_: Any) -> Any:
            raise client_error("StartMessageMoveTask", "InvalidAction")

        terminal.memory.sqs.start_message_move_task = lacks  # type: ignore[method-assign]
        in_vain(terminal, body(step(1)))
        terminal("dlq", "redrive", "--all")
        assert len(waiting(terminal)) == 1

    def test_where_one_was_refused_all_go_by_their_ids(self, terminal: Terminal) -> None:
        """A task would move it again as often as it comes back."""
        refused(terminal)
        in_vain(terminal, body(step(3)))
        answer = terminal.json("dlq", "redrive", "--all", "--yes")
        assert answer["queues"] == [{"queue": "events", "moved": 2, "why_not": None}]
        assert terminal.memory.sqs.move_tasks == []

    def test_a_task_does_not_outlive_the_time_of_the_command(self, terminal: Terminal) -> None:
        for n in range(1, 26):
            in_vain(terminal, body(step(n)))
        arguments = ("--all", "--queue", "events", "--within", "0s", "--yes")
        answer = terminal.json("dlq", "redrive", *arguments, code=1)
        (moved,) = answer["queues"]
        assert moved["moved"] == 10
        assert "run it again" in moved["why_not"]
        (task,) = terminal.memory.sqs.move_tasks
        assert task.status == "CANCELLED"
        assert len(waiting(terminal, DEAD_LETTERS)) == 15
        terminal("dlq", "redrive", "--all")
        assert len(waiting(terminal)) == 25

    @pytest.mark.parametrize(
        ("end", "said"),
        [
            (KeyboardInterrupt(), "Interrupted: 10 letters moved back"),
            (client_error("ListMessageMoveTasks", "AccessDenied"), "AccessDenied"),
        ],
        ids=["interrupted", "failed"],
    )
    def test_a_task_does_not_outlive_a_command_that_is_cut_off(
        self, terminal: Terminal, end: BaseException, said: str
    ) -> None:
        for n in range(1, 26):
            in_vain(terminal, body(step(n)))
        move_some = terminal.memory.sqs._move_some

        def once(task: Any) -> None:
            if task.moved:
                raise end
            move_some(task)

        terminal.memory.sqs._move_some = once  # type: ignore[method-assign]
        with pytest.raises(LocalStageError, match=said):
            command_line.run("dlq", "redrive", "--all", stage=terminal.stage, sleep=lambda _: None)
        (task,) = terminal.memory.sqs.move_tasks
        assert task.status == "CANCELLED"

    def test_whatever_signal_ends_it_it_says_how_many_were_moved(
        self, terminal: Terminal, capsys: pytest.CaptureFixture[str]
    ) -> None:
        for n in range(1, 26):
            in_vain(terminal, body(step(n)))

        def end(_: float) -> None:
            raise SystemExit(143)

        with pytest.raises(SystemExit) as ended_by:
            command_line.run("dlq", "redrive", "--all", stage=terminal.stage, sleep=end)
        assert ended_by.value.code == 143
        assert "Interrupted: 10 letters moved back. Run it again" in capsys.readouterr().err
        assert [task.status for task in terminal.memory.sqs.move_tasks] == ["CANCELLED"]

    def test_a_signal_before_the_answer_to_its_start_leaves_no_task_behind(
        self, terminal: Terminal
    ) -> None:
        for n in range(1, 26):
            in_vain(terminal, body(step(n)))
        start = terminal.memory.sqs.start_message_move_task

        def interrupted(**request: Any) -> Any:
            start(**request)
            raise KeyboardInterrupt

        terminal.memory.sqs.start_message_move_task = interrupted  # type: ignore[method-assign]
        with pytest.raises(LocalStageError, match="Interrupted"):
            terminal("dlq", "redrive", "--all")
        assert [task.status for task in terminal.memory.sqs.move_tasks] == ["CANCELLED"]

    def test_a_start_that_is_refused_ends_nobody_else_s_task(self, terminal: Terminal) -> None:
        for n in range(1, 26):
            in_vain(terminal, body(step(n)))
        sqs, arn = terminal.memory.sqs, "arn:memory:sqs:"
        start, to = sqs.start_message_move_task, terminal.stage.event_queue_url
        start(SourceArn=f"{arn}{DEAD_LETTERS}", DestinationArn=f"{arn}{to}")

        def refuse(**_: Any) -> Any:
            raise client_error("StartMessageMoveTask", "InvalidParameterValue")

        sqs.start_message_move_task = refuse  # type: ignore[method-assign]
        with pytest.raises(LocalStageError):
            terminal("dlq", "redrive", "--all")
        assert [task.status for task in sqs.move_tasks] == ["RUNNING"]

    @pytest.mark.parametrize("earlier", [False, True])
    def test_a_task_that_is_listed_a_moment_late_is_waited_for(
        self, terminal: Terminal, *, earlier: bool
    ) -> None:
        in_vain(terminal, body(step(1)))
        if earlier:
            terminal("dlq", "redrive", "--all")
            in_vain(terminal, body(step(2)))
        sqs = terminal.memory.sqs
        list_tasks = sqs.list_message_move_tasks
        before = list_tasks(SourceArn=f"arn:memory:sqs:{DEAD_LETTERS}", MaxResults=1)
        late = [before] * 3

        def lags(**request: Any) -> Any:
            return late.pop() if late else list_tasks(**request)

        sqs.list_message_move_tasks = lags  # type: ignore[method-assign]
        answer = terminal.json("dlq", "redrive", "--all")
        assert answer["queues"] == [{"queue": "events", "moved": 1, "why_not": None}]
        assert [task.status for task in sqs.move_tasks] == ["COMPLETED"] * (1 + earlier)
        assert len(waiting(terminal)) == 1 + earlier

    @pytest.mark.parametrize("to_be_refused", [False, True])
    def test_what_could_not_be_read_in_time_is_not_moved_unasked(
        self, terminal: Terminal, capsys: pytest.CaptureFixture[str], *, to_be_refused: bool
    ) -> None:
        if to_be_refused:
            refused(terminal)
        in_vain(terminal, body(step(3)))
        with pytest.raises(LocalStageError, match="Nothing was moved"):
            terminal("dlq", "redrive", "--all", "--within", "0s")
        warned = " ".join(capsys.readouterr().err.split())
        assert "Among the others may be some that were refused" in warned
        assert terminal.memory.sqs.move_tasks == []
        assert waiting(terminal) == []

    def test_what_sqs_moved_whole_is_all_whatever_was_read_before(self, terminal: Terminal) -> None:
        for n in range(1, 4):
            in_vain(terminal, body(step(n)))
        terminal.memory.sqs.receive_message(QueueUrl=DEAD_LETTERS, VisibilityTimeout=60)
        shown = terminal("dlq", "redrive", "--all", "--yes")
        assert "3 letters moved back" in shown
        assert "There are more" not in shown

    def test_without_tasks_what_was_not_read_is_said_to_be_left(self, terminal: Terminal) -> None:
        def lacks(**_: Any) -> Any:
            raise client_error("ListMessageMoveTasks", "InvalidAction")

        terminal.memory.sqs.list_message_move_tasks = lacks  # type: ignore[method-assign]
        for n in range(1, 4):
            in_vain(terminal, body(step(n)))
        terminal.memory.sqs.receive_message(QueueUrl=DEAD_LETTERS, VisibilityTimeout=60)
        answer = terminal.json("dlq", "redrive", "--all", "--yes", "--queue", "events", code=1)
        (moved,) = answer["queues"]
        assert (moved["moved"], moved["why_not"]) == (2, "others could not be read in time")

    def test_a_task_that_ended_while_it_was_to_be_cancelled_did_no_harm(
        self, terminal: Terminal
    ) -> None:
        for n in range(1, 12):
            in_vain(terminal, body(step(n)))
        cancel = terminal.memory.sqs.cancel_message_move_task

        def too_late(**request: Any) -> Any:
            terminal.memory.sqs.list_message_move_tasks(
                SourceArn=f"arn:memory:sqs:{DEAD_LETTERS}", MaxResults=1
            )
            return cancel(**request)

        terminal.memory.sqs.cancel_message_move_task = too_late  # type: ignore[method-assign]
        arguments = ("--all", "--queue", "events", "--within", "0s", "--yes")
        answer = terminal.json("dlq", "redrive", *arguments, code=1)
        assert answer["queues"][0]["moved"] == 10
        assert len(waiting(terminal)) == 11

    def test_a_task_that_goes_round_is_ended(self, terminal: Terminal) -> None:
        """Ingest refuses them as fast as SQS moves them, and was never seen to before."""
        for n in range(1, 13):
            in_vain(terminal, body(step(n, cost_usd="-1")))
        move_some = terminal.memory.sqs._move_some

        def round_and_round(task: Any) -> None:
            move_some(task)
            ingest_again(terminal)
            if waiting(terminal, DEAD_LETTERS):
                task.status = "RUNNING"

        terminal.memory.sqs._move_some = round_and_round  # type: ignore[method-assign]
        answer = terminal.json("dlq", "redrive", "--all", "--yes", code=1)
        (task,) = terminal.memory.sqs.move_tasks
        assert task.status == "CANCELLED"
        assert "came back" in answer["queues"][0]["why_not"]
        assert len(waiting(terminal, DEAD_LETTERS)) == 12

    def test_a_task_that_fails_says_why(self, terminal: Terminal) -> None:
        in_vain(terminal, body(step(1)))

        def fail(task: Any) -> None:
            task.status = "FAILED"

        terminal.memory.sqs._move_some = fail  # type: ignore[method-assign]
        answer = terminal.json("dlq", "redrive", "--all", code=1)
        assert "FAILED" in answer["queues"][0]["why_not"]


class TestKeptAside:
    """A body that does not fit beside its reasons lies in the bucket."""

    def large(self, terminal: Terminal) -> bytes:
        events = (started(), step(1, cost_usd="-1"), step(2, payload="x"))
        small = body(*events).encode()
        whole = small.replace(b'"x"', b'"' + b"x" * (1_048_576 - len(small) + 1) + b'"')
        assert len(whole) == 1_048_576
        refused(terminal, whole.decode())
        return whole

    def test_it_is_listed_and_shown_as_if_it_were_there(self, terminal: Terminal) -> None:
        whole = self.large(terminal)
        (letter,) = terminal.json("dlq", "list")["letters"]
        assert letter["kept_as"].startswith(keys.DEAD_LETTERS)
        assert (letter["size"], letter["run_id"]) == (len(whole), "run-1")
        assert terminal.json("dlq", "show", "m-1")["body"] == whole.decode()

    @pytest.mark.parametrize("arguments", [("m-1",), ("--all",)])
    def test_however_it_is_moved_ingest_reads_the_body(
        self, terminal: Terminal, arguments: tuple[str, ...]
    ) -> None:
        whole = self.large(terminal)
        before = terminal.memory.items_of(RUN)
        terminal("dlq", "redrive", *arguments, "--yes")
        (sent,) = waiting(terminal)
        assert dead_letters.kept_aside(sent.body)
        ingest_again(terminal)
        (letter,) = terminal.json("dlq", "list")["letters"]
        assert (letter["field"], letter["size"]) == ("events[1].cost_usd", len(whole))
        assert terminal.memory.items_of(RUN) == before

    def test_a_body_that_is_gone_is_said_to_be(self, terminal: Terminal) -> None:
        self.large(terminal)
        terminal.memory.s3.objects.clear()
        assert "gone from the bucket" in terminal("dlq", "show", "m-1")
        with pytest.raises(LocalStageError, match="gone from the bucket"):
            terminal("dlq", "show", "m-1", "--raw")
        terminal("dlq", "redrive", "m-1", "--yes")
        ingest_again(terminal)
        (letter,) = terminal.json("dlq", "list")["letters"]
        assert (letter["reason"], letter["field"]) == ("invalid_claim", "dead_letter.key")


def test_every_queue_of_a_stage_is_there_under_a_name_of_its_own(terminal: Terminal) -> None:
    found = queues_of(terminal.stage)
    assert {"events", "recounts", "jobs/research"} <= {queue.name for queue in found}
    assert len({queue.name for queue in found}) == len(found)
    urls = [url for queue in found for url in (queue.url, queue.dead_letters_url)]
    assert len(set(urls)) == len(urls)
    named = {
        json.dumps(getattr(terminal.stage, name))
        for name in vars(terminal.stage)
        if name.endswith("dead_letter_url")
    }
    assert len(named) == len(found) - 1
