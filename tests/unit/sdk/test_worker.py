import hashlib
import threading
from collections.abc import Callable
from typing import Any, cast

import msgspec
import pytest

from runtally import AnswerNotSent, JobFailed, JobWorker, Received, wire
from runtally.job import Job, seal_job
from tests.fakes.calls import Calls, client_error
from tests.fakes.clock import MemoryClock
from tests.fakes.s3 import MemoryS3
from tests.fakes.sqs import MemorySQS, Sent
from tests.unit.sdk.recording import events_of, until

JOBS, DEAD, EVENTS = "https://jobs", "https://dead", "https://events"
RECEIVE, DELETE, SEND, EXTEND = (
    "sqs.receive_message",
    "sqs.delete_message",
    "sqs.send_message_batch",
    "sqs.change_message_visibility",
)


class Entry:
    """A service entry: its work queue, its dead letters, the event queue and a worker."""

    def __init__(
        self, *, bucket: str | None = "bucket", queues: type[MemorySQS] = MemorySQS
    ) -> None:
        self.clock = MemoryClock()
        self.calls = Calls()
        self.sqs = queues(self.calls, self.clock)
        self.sqs.redrives[JOBS] = (5, DEAD)
        self.s3 = MemoryS3(self.calls)
        self.worker = JobWorker(
            job_queue_url=JOBS,
            queue_url=EVENTS,
            bucket=bucket,
            sqs=cast("Any", self.sqs),
            s3=cast("Any", self.s3),
            clock=self.clock,
        )

    def invoke(self, text: bytes = b"{}", *, name: str = "i-1", within_s: int = 3_600) -> None:
        deadline = self.clock.now_ns() + within_s * 10**9
        self.put(seal_job(Job(1, "acme", "research", name, deadline, msgspec.Raw(text))))

    def put(self, body: str) -> None:
        self.sqs.send_message(QueueUrl=JOBS, MessageBody=body)

    def receive(self) -> Received:
        received = self.worker.receive(0)
        assert received is not None
        return received

    def failing(self, call: str, times: int, *, lost: bool = False) -> None:
        """Fail so many requests; when the answer is lost, the request itself was done."""
        left = times

        def hook(made: str, when: str) -> None:
            nonlocal left
            if made == call and when == ("after" if lost else "before") and left:
                left -= 1
                raise ConnectionError("for the test")

        self.calls.hook = hook

    @property
    def waiting(self) -> list[Sent]:
        return self.sqs.queues[JOBS]

    @property
    def hidden_s(self) -> float:
        (sent,) = self.waiting
        return (sent.visible_at - self.clock.now_ns()) / 1e9

    @property
    def bodies(self) -> list[str]:
        return [sent.body for sent in self.sqs.queues.get(EVENTS, [])]

    @property
    def answers(self) -> list[wire.Event]:
        return [event for body in self.bodies for event in events_of(body.encode())]


@pytest.fixture
def entry() -> Entry:
    return Entry()


def heartbeats() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "runtally-heartbeat"]


# Answers


def test_a_job_is_answered_and_gone(entry: Entry) -> None:
    entry.invoke(b'{"question":"why?"}')
    with entry.receive() as job:
        assert (job.tenant_id, job.service_entry, job.invocation_id) == ("acme", "research", "i-1")
        assert job.input == {"question": "why?"}
        assert job.input is job.input
        assert job.deadline_at == entry.clock.now_ns() + 3_600 * 10**9
        job.succeed({"because": "日本"})
    assert entry.answers == [wire.InvocationEnded("i-1", "succeeded", '{"because":"日本"}')]
    head = wire.open_message(entry.bodies[0]).head
    assert head == wire.Head(1, "acme")
    assert entry.waiting == []
    assert entry.calls.made[-2:] == [SEND, DELETE]


def test_a_failure_is_an_answer_too(entry: Entry) -> None:
    entry.invoke()
    with entry.receive() as job:
        job.fail("no such page \ud800", [1])
    assert entry.answers == [
        wire.InvocationEnded("i-1", "failed", "[1]", "no such page \ufffd"),
    ]
    assert entry.waiting == []


@pytest.mark.parametrize(
    ("result", "sent"),
    [
        (None, None),
        ("as it is", "as it is"),
        (0, "0"),
        ("\ud800 \ufffe", "\ufffd \ufffe"),
        ("你" * 100_000, "你" * 100_000),
    ],
)
def test_a_result_is_text_or_json(entry: Entry, result: object, sent: str | None) -> None:
    entry.invoke()
    with entry.receive() as job:
        job.succeed(result)
    assert entry.answers == [wire.InvocationEnded("i-1", "succeeded", sent)]


def test_an_answer_over_the_limit_goes_through_the_bucket(entry: Entry) -> None:
    entry.invoke()
    with entry.receive() as job:
        job.succeed("x" * wire.SQS_LIMIT_BYTES)
    ((key, content),) = entry.s3.objects.items()
    sha256 = hashlib.sha256(content).hexdigest()
    assert key == f"inbox/acme/_/{sha256}"
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert("_", wire.RunId)  # so that no run's inbox is here
    claim = wire.Claim(key=key, sha256=sha256, bytes=len(content))
    assert wire.open_message(entry.bodies[0]).head == wire.Head(1, "acme", claim=claim)
    (ended,) = events_of(content)
    assert ended == wire.InvocationEnded("i-1", "succeeded", "x" * wire.SQS_LIMIT_BYTES)


def test_without_a_bucket_it_is_shortened_aloud(caplog: pytest.LogCaptureFixture) -> None:
    entry = Entry(bucket=None)
    entry.invoke()
    with entry.receive() as job:
        job.succeed("x" * wire.SQS_LIMIT_BYTES)
    (ended,) = entry.answers
    assert isinstance(ended, wire.InvocationEnded)
    assert (ended.result or "").endswith("x… (1048576 characters)")
    assert "the answer to i-1 is shortened" in caplog.text


@pytest.mark.parametrize("number", [9007199254740993, 2**64, 10**40])
def test_an_integer_in_the_input_stays_the_same_integer(entry: Entry, number: int) -> None:
    entry.invoke(b"[%d]" % number)
    with entry.receive() as job:
        assert job.input == [number]
        job.succeed(job.input)
    assert entry.answers == [wire.InvocationEnded("i-1", "succeeded", f"[{number}]")]


def test_an_answer_is_given_once(entry: Entry) -> None:
    entry.invoke()
    with entry.receive() as job:
        job.succeed(1)
        with pytest.raises(RuntimeError, match="i-1 is answered already"):
            job.fail("too late")
    assert len(entry.answers) == 1


def test_an_answer_that_got_lost_is_sent_again_as_the_same_bytes(entry: Entry) -> None:
    entry.invoke()
    entry.failing(SEND, 2, lost=True)
    with entry.receive() as job:
        job.succeed(1)
    assert len(entry.bodies) == 3
    assert len(set(entry.bodies)) == 1
    assert entry.clock.pauses == [1, 4]
    assert entry.waiting == []


def test_a_job_whose_answer_cannot_be_sent_comes_again(entry: Entry) -> None:
    entry.invoke()
    entry.failing(SEND, 4)
    with pytest.raises(AnswerNotSent, match="out of reach"), entry.receive() as job:
        job.succeed(1)
    assert entry.calls.made.count(SEND) == 4
    assert (entry.hidden_s, entry.bodies) == (10, [])
    entry.clock.advance(10)
    with entry.receive() as job:
        job.succeed(1)
    assert len(entry.answers) == 1


class RefusingSQS(MemorySQS):
    def send_message_batch(self, **request: Any) -> dict[str, Any]:
        failed = {"Id": "0", "Code": "KmsAccessDenied", "Message": "no", "SenderFault": True}
        return self.calls(SEND, lambda: {"Failed": [failed]})


def test_an_answer_that_the_queue_refuses_is_not_tried_again() -> None:
    entry = Entry(queues=RefusingSQS)
    entry.invoke()
    with pytest.raises(AnswerNotSent, match="i-1: refused, KmsAccessDenied: no"):  # noqa: SIM117
        with entry.receive() as job:
            job.succeed(1)
    assert entry.calls.made.count(SEND) == 1
    assert len(entry.waiting) == 1


def test_an_answered_job_that_is_not_deleted_at_first_is_later(entry: Entry) -> None:
    entry.invoke()
    entry.failing(DELETE, 3)
    with entry.receive() as job:
        job.succeed(1)
    assert (entry.waiting, len(entry.answers)) == ([], 1)


def test_an_answered_job_that_is_never_deleted_is_reported(
    entry: Entry, caplog: pytest.LogCaptureFixture
) -> None:
    entry.invoke()
    entry.failing(DELETE, 4)
    with entry.receive() as job:
        job.succeed(1)
    assert (len(entry.waiting), len(entry.answers)) == (1, 1)
    assert "message m-1 stays, its job will be done again" in caplog.text


def test_an_answered_job_that_is_gone_already_is_deleted_no_more(entry: Entry) -> None:
    def hook(call: str, when: str) -> None:
        if call == DELETE:
            raise client_error("DeleteMessage", "ReceiptHandleIsInvalid")

    entry.invoke()
    entry.calls.hook = hook
    with entry.receive() as job:
        job.succeed(1)
    assert (entry.calls.made.count(DELETE), entry.clock.pauses) == (1, [])


# Jobs that come again


def test_an_exception_goes_on_and_the_job_comes_again_later_each_time(entry: Entry) -> None:
    entry.invoke()
    for pause in (10, 40, 160, 600, 600):
        with pytest.raises(ZeroDivisionError), entry.receive():
            raise ZeroDivisionError
        assert entry.hidden_s == pause
        assert heartbeats() == []
        entry.clock.advance(pause - 1)
        assert entry.worker.receive(0) is None
        entry.clock.advance(1)
    assert entry.worker.receive(0) is None
    assert (entry.waiting, len(entry.sqs.queues[DEAD]), entry.bodies) == ([], 1, [])


def test_an_exception_after_the_answer_takes_nothing_back(entry: Entry) -> None:
    def answer_and_fail() -> None:
        with entry.receive() as job:
            job.succeed(1)
            raise ZeroDivisionError

    entry.invoke()
    with pytest.raises(ZeroDivisionError):
        answer_and_fail()
    assert (len(entry.answers), entry.waiting) == (1, [])
    assert EXTEND not in entry.calls.made


def test_a_job_left_without_an_answer_is_an_error_of_the_callers(entry: Entry) -> None:
    entry.invoke()
    with pytest.raises(RuntimeError, match="i-1 is left without an answer"), entry.receive():
        pass
    assert entry.hidden_s == 10


def test_the_job_of_a_process_that_died_comes_again(entry: Entry) -> None:
    entry.invoke()
    entry.receive()
    entry.clock.advance(119)
    assert entry.worker.receive(0) is None
    entry.clock.advance(1)
    with entry.receive() as job:
        job.succeed(1)
    assert len(entry.answers) == 1


def test_a_return_that_fails_hides_no_exception(
    entry: Entry, caplog: pytest.LogCaptureFixture
) -> None:
    entry.invoke()
    entry.failing(EXTEND, 1)
    with pytest.raises(ZeroDivisionError), entry.receive():
        raise ZeroDivisionError
    assert entry.hidden_s == 120
    assert "message m-1 keeps its timeout" in caplog.text


# The heartbeat


def beat(entry: Entry, until_hidden_s: int = 120) -> None:
    """Let the heartbeat's time come, and wait until it was done."""
    before = entry.calls.made.count(EXTEND)
    entry.clock.advance(40)
    until(lambda: entry.calls.made.count(EXTEND) > before)
    until(lambda: entry.hidden_s == until_hidden_s)


def held(entry: Entry, work: Callable[[Received], None]) -> None:
    """Work within the block, once its heartbeat waits for the time to pass."""
    with entry.receive() as job:
        until(lambda: entry.clock.waiting)
        work(job)
        job.succeed(1)


def test_a_job_is_hidden_for_as_long_as_it_takes_and_no_longer(entry: Entry) -> None:
    entry.invoke(within_s=10**6)

    def work(job: Received) -> None:
        for _ in range(5):
            beat(entry)
        assert entry.worker.receive(0) is None
        assert job.remaining_s() == 10**6 - 200

    held(entry, work)
    assert heartbeats() == []
    entry.clock.advance(1_000)
    assert entry.calls.made.count(EXTEND) == 5


def test_a_heartbeat_that_fails_is_tried_again_and_harms_nothing(
    entry: Entry, caplog: pytest.LogCaptureFixture
) -> None:
    entry.invoke()
    entry.failing(EXTEND, 1)

    def work(_: Received) -> None:
        beat(entry, until_hidden_s=80)
        beat(entry)

    held(entry, work)
    assert "message m-1 keeps its timeout" in caplog.text
    assert len(entry.answers) == 1


def test_a_job_that_is_no_longer_held_is_reported_once_and_goes_on(
    entry: Entry, caplog: pytest.LogCaptureFixture
) -> None:
    entry.invoke()

    def work(_: Received) -> None:
        entry.waiting.clear()
        entry.clock.advance(40)
        until(lambda: not heartbeats())
        entry.clock.advance(1_000)

    held(entry, work)
    assert caplog.text.count("is held no longer, its job may be done twice") == 1
    assert len(entry.answers) == 1


def test_no_heartbeat_hides_a_job_that_is_given_back(entry: Entry) -> None:
    """One that is on its way when the block is left is waited for."""
    entry.invoke()
    on_its_way, may_go_on = threading.Event(), threading.Event()

    def hook(call: str, when: str) -> None:
        if call == EXTEND and when == "before" and not on_its_way.is_set():
            on_its_way.set()
            threading.Timer(0.05, may_go_on.set).start()
            may_go_on.wait(10)

    def fail_during_a_heartbeat() -> None:
        with entry.receive():
            until(lambda: entry.clock.waiting)
            entry.clock.advance(40)
            on_its_way.wait(10)
            raise ZeroDivisionError

    entry.calls.hook = hook
    with pytest.raises(ZeroDivisionError):
        fail_during_a_heartbeat()
    assert entry.hidden_s == 10


# What is not to be done


def test_a_job_past_its_deadline_is_not_done(
    entry: Entry, caplog: pytest.LogCaptureFixture
) -> None:
    entry.invoke(name="late", within_s=0)
    entry.invoke(name="good", within_s=1)
    with entry.receive() as job:
        assert (job.invocation_id, job.remaining_s()) == ("good", 1)
        entry.clock.advance(2)
        assert job.remaining_s() == 0
        job.succeed(1)
    assert entry.waiting == []
    assert "invocation late is past its deadline" in caplog.text


def test_what_is_no_job_ends_among_the_dead_letters(
    entry: Entry, caplog: pytest.LogCaptureFixture
) -> None:
    entry.put('{"v":1,"tenant_id":"secret/secret"}')
    for _ in range(6):
        entry.invoke()
        with entry.receive() as job:
            job.succeed(1)
        entry.clock.advance(120)
    assert (entry.waiting, len(entry.sqs.queues[DEAD]), len(entry.answers)) == ([], 1, 6)
    assert caplog.text.count("message m-1 is no job: tenant_id: ") == 5
    assert "secret" not in caplog.text


def test_nothing_to_do_is_none(entry: Entry) -> None:
    assert entry.worker.receive() is None


# Serving


def test_serving_answers_job_after_job_until_it_is_stopped(entry: Entry) -> None:
    for number in range(3):
        entry.invoke(b"%d" % number, name=f"i-{number}")
    stop = threading.Event()

    def double(job: Received) -> object:
        assert isinstance(job.input, int)
        if job.input == 1:
            stop.set()
        return job.input * 2

    entry.worker.serve(double, stop)
    assert entry.answers == [
        wire.InvocationEnded("i-0", "succeeded", "0"),
        wire.InvocationEnded("i-1", "succeeded", "2"),
    ]
    assert len(entry.waiting) == 1


def serve_once(entry: Entry, handler: Callable[[Received], object]) -> None:
    stop = threading.Event()

    def handle(job: Received) -> object:
        stop.set()
        return handler(job)

    entry.worker.serve(handle, stop)


def test_a_handler_that_says_failed_answers_at_once(entry: Entry) -> None:
    def refuse(_: Received) -> object:
        raise JobFailed("no such customer")

    entry.invoke()
    serve_once(entry, refuse)
    assert entry.answers == [wire.InvocationEnded("i-1", "failed", error="no such customer")]
    assert entry.waiting == []


def test_any_other_exception_is_logged_and_the_job_comes_again(
    entry: Entry, caplog: pytest.LogCaptureFixture
) -> None:
    entry.invoke()
    serve_once(entry, lambda _: 1 / 0)
    assert (entry.answers, entry.hidden_s) == ([], 10)
    assert "the work on invocation i-1 failed" in caplog.text
    assert "ZeroDivisionError" in caplog.text


def test_an_interrupt_ends_the_loop_and_the_job_comes_again(entry: Entry) -> None:
    def interrupt(_: Received) -> object:
        raise KeyboardInterrupt

    entry.invoke()
    with pytest.raises(KeyboardInterrupt):
        entry.worker.serve(interrupt)
    assert entry.hidden_s == 10


def test_an_outage_of_the_queue_is_waited_out_with_growing_pauses(
    entry: Entry, caplog: pytest.LogCaptureFixture
) -> None:
    entry.invoke()
    entry.failing(RECEIVE, 8)
    serve_once(entry, lambda _: 1)
    assert entry.clock.pauses == [2, 4, 8, 16, 32, 60, 60, 60]
    assert len(entry.answers) == 1
    assert caplog.text.count("no job can be received") == 8


def test_each_outage_begins_with_a_short_pause(entry: Entry) -> None:
    outages = iter([True, True, False, True, False])

    def hook(call: str, when: str) -> None:
        if call == RECEIVE and when == "before" and next(outages):
            raise ConnectionError("for the test")

    def first_and_second(job: Received) -> None:
        if job.input == 2:
            stop.set()

    stop = threading.Event()
    entry.invoke(b"1")
    entry.invoke(b"2", name="i-2")
    entry.calls.hook = hook
    entry.worker.serve(first_and_second, stop)
    assert entry.clock.pauses == [2, 4, 2]


def test_a_stop_ends_the_pause_of_an_outage(entry: Entry) -> None:
    def hook(call: str, when: str) -> None:
        stop.set()
        raise ConnectionError("for the test")

    stop = threading.Event()
    entry.calls.hook = hook
    entry.worker.serve(lambda _: 1, stop)
    assert entry.clock.pauses == []


def test_an_answer_that_cannot_be_sent_does_not_end_the_loop(entry: Entry) -> None:
    entry.invoke()
    entry.failing(SEND, 4)
    serve_once(entry, lambda _: 1)
    assert (entry.answers, entry.hidden_s) == ([], 10)


def test_a_job_that_comes_after_the_stop_is_left_to_others(entry: Entry) -> None:
    stop = threading.Event()
    entry.invoke()
    entry.calls.hook = lambda call, when: stop.set()
    entry.worker.serve(lambda _: 1, stop)
    assert (entry.answers, entry.hidden_s) == ([], 0)
    assert entry.worker.receive(0) is not None


# Settings


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RUNTALLY_JOB_QUEUE_URL", "RUNTALLY_QUEUE_URL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ValueError, match="RUNTALLY_JOB_QUEUE_URL, RUNTALLY_QUEUE_URL"):
        JobWorker.from_environment()
    for name in ("AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "for-the-test")
    monkeypatch.setenv("RUNTALLY_JOB_QUEUE_URL", JOBS)
    monkeypatch.setenv("RUNTALLY_QUEUE_URL", EVENTS)
    without = JobWorker.from_environment()
    assert (without._job_queue_url, without._sender.limit_bytes) == (JOBS, wire.SQS_LIMIT_BYTES)
    monkeypatch.setenv("RUNTALLY_BUCKET", "bucket")
    assert JobWorker.from_environment()._sender.limit_bytes == wire.CLAIM_LIMIT_BYTES


def test_a_request_says_how_long_it_waits_and_hides(entry: Entry) -> None:
    asked: list[dict[str, Any]] = []

    class Asked:
        def receive_message(self, **request: Any) -> dict[str, Any]:
            asked.append(request)
            return {}

    JobWorker(job_queue_url=JOBS, queue_url=EVENTS, sqs=cast("Any", Asked())).receive(7)
    assert (asked[0]["WaitTimeSeconds"], asked[0]["VisibilityTimeout"]) == (7, 120)


def test_an_error_of_the_service_comes_through(entry: Entry) -> None:
    def deny(call: str, when: str) -> None:
        raise client_error("ReceiveMessage", "AccessDenied")

    entry.calls.hook = deny
    with pytest.raises(Exception, match="AccessDenied"):
        entry.worker.receive()
