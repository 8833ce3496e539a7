"""What importing costs: ingest needs `runtally.wire` alone, boto3 waits for the first send."""

import subprocess
import sys

import pytest

import runtally


def loaded_by(statement: str) -> set[str]:
    script = f"import sys\n{statement}\nprint('\\n'.join(sys.modules))"
    run = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)  # noqa: S603
    return set(run.stdout.split())


def test_the_wire_format_loads_nothing_of_the_recorder() -> None:
    loaded = loaded_by("import runtally.wire")
    assert {m for m in loaded if m.startswith("runtally")} == {
        "runtally",
        "runtally.wire",
        "runtally.json_text",
    }
    assert not loaded & {"boto3", "asyncio", "threading", "logging"} - loaded_by("import msgspec")


def test_a_job_loads_the_wire_format_and_nothing_more() -> None:
    assert loaded_by("import runtally.job") - loaded_by("import runtally.wire") == {"runtally.job"}


def test_a_recorder_does_not_load_boto3_before_it_sends() -> None:
    made = "from runtally import Recorder; Recorder(tenant_id='a', queue_url='https://queue')"
    assert not loaded_by(made) & {"boto3", "botocore"}


@pytest.mark.parametrize("name", runtally.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(runtally, name).__name__ == name


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="Recorde"):
        _ = runtally.Recorde
