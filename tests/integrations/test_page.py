"""What docs/integrations.md tells users to paste is what was run, to the letter."""

import shutil
from pathlib import Path
from typing import Final

import pytest

from tests.integrations import page
from tests.integrations.programs import EXAMPLES, run
from tests.integrations.serving import ADVISED, Place
from tests.memory_stage import EVENTS

AWS: Final = """aws() {
  test "$*" = "sqs send-message --queue-url $QUEUE_URL --message-body file://message.json"
  cp message.json sent.json
}
"""


def test_every_snippet_is_in_the_program_that_it_is_from() -> None:
    snippets = [block for block in page.blocks() if block.language in {"python", "js"}]
    assert {block.example for block in snippets} == {
        str(path.relative_to(EXAMPLES))
        for path in [*EXAMPLES.glob("*.py"), *EXAMPLES.glob("*/*.mjs")]
        if path.name != "stub_model.py"
    }
    for block in snippets:
        assert block.code in (EXAMPLES / block.example).read_text("utf-8"), block


def test_the_settings_are_those_that_the_recipes_run_with(place: Place, tmp_path: Path) -> None:
    script = f"{page.command('export OTEL_BSP')}\nenv"
    told = dict(line.partition("=")[::2] for line in shell(script, place, tmp_path).splitlines())
    otlp = {name: value for name, value in told.items() if name.startswith("OTEL_")}
    assert otlp == {n: v for n, v in place.environment.items() if n.startswith("OTEL_")} | ADVISED


def test_a_message_sent_with_curl_is_a_run(place: Place, tmp_path: Path) -> None:
    if not shutil.which("curl"):
        pytest.skip("curl is not installed")
    send = page.command("curl")
    shell(page.command("cat >message.json") + send + send, place, tmp_path)
    check_run_by_hand(place)


def test_a_message_sent_with_the_aws_command_line_is_a_run(place: Place, tmp_path: Path) -> None:
    """The command itself is played, lest it should find its way to AWS."""
    script = AWS + page.command("cat >message.json") + page.command("aws sqs send-message")
    shell(script, place, tmp_path)
    body = (tmp_path / "sent.json").read_text("utf-8")
    for _ in range(2):
        place.stage.sqs.send_message(QueueUrl=EVENTS, MessageBody=body)
    check_run_by_hand(place)


def check_run_by_hand(place: Place) -> None:
    told = place.the_run()
    assert (told["run"]["pipeline"], told["run"]["status"]) == ("research", "succeeded")
    assert told["result"]["result"] == "約1,400万人"
    assert [call["status"] for call in told["calls"]] == ["failed", "succeeded"]
    assert told["calls"][0]["error"] == "統計局に接続できません"
    assert told["totals"]["cost_usd_total"] == "0.00035"
    assert [phase["phase"] for phase in told["phases"]["entries"]] == ["search", "write"]


def shell(script: str, place: Place, directory: Path) -> str:
    """What bash prints, with the variables of the page set."""
    variables = {
        "API_URL": place.environment["OTEL_EXPORTER_OTLP_ENDPOINT"],
        "KEY": place.client.key,
        "QUEUE_URL": place.environment["RUNTALLY_QUEUE_URL"],
    }
    done = run(["bash", "-euc", script], variables, directory)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
