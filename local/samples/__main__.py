"""Record every sample program again."""

from rich.console import Console

from local import recordings, samples

console = Console()
for program in samples.PROGRAMS:
    path = samples.record(program, samples.RECORDINGS)
    for run in recordings.load(path):
        totals = recordings.expected_totals(run.messages)
        console.print(program, totals.status, f"{totals.agents_total} steps", path.stat().st_size)
