"""Draw where the time goes, as flame graphs: `python -m benchmarks.flames FOLDER`.

py-spy, which uv fetches, samples the very programs that `benchmarks cpu` and `benchmarks recount`
measure. A frame's width is its share of the samples.
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from benchmarks.cpu.stub import answering
from benchmarks.cpu.ways import ENVIRONMENT
from benchmarks.served import served_run
from local.progress import doing

_PY_SPY: Final = "py-spy==0.4.3"
_A_SECOND: Final = "500"
_INGEST: Final = """\
from benchmarks.cpu.ways import OURS, batches, recording
way = OURS[1]
record, these = recording(way), batches(way, 3_000)
for one in these:
    record(one)"""


def main() -> None:
    folder = Path(sys.argv[1])
    with doing("a recount of 100,000 steps"), served_run(100_000) as served:
        program = ["-m", "benchmarks.recount", "100000"]
        _draw(folder / "flame-recount.svg", program, served.environment)
    with doing("ingest of messages of ten"), answering() as endpoint:
        environment = {**os.environ, **ENVIRONMENT, "AWS_ENDPOINT_URL": endpoint}
        _draw(folder / "flame-ingest.svg", ["-c", _INGEST], environment)


def _draw(picture: Path, program: list[str], environment: Mapping[str, str]) -> None:
    uv = os.environ.get("UV", "uv")
    spy = [uv, "tool", "run", "--quiet", _PY_SPY, "record", "--function", "--rate", _A_SECOND]
    subprocess.run(  # noqa: S603 - fixed arguments
        [*spy, "--output", str(picture), "--", sys.executable, *program],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )


if __name__ == "__main__":
    main()
