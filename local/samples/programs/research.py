"""Research: a planner, eight searchers at once, a writer. Shows phases, nested agents and threads.

The question is which idioms Python's own library uses; the search tool reads that library's source.
"""

import re
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from local.samples.scripted_model import ScriptedModel
from runtally import Recorder, Run, Step

PIPELINE = "research"
QUESTION = "Which idioms does Python's standard library prefer?"
LIBRARY = Path(sysconfig.get_path("stdlib"))
IDIOMS = {
    "context managers": r"^\s*with \w",
    "comprehensions": r"\[[^\[\]]+ for \w+ in ",
    "f-strings": r"\bf[\"']",
    "%-formatting": r"[\"'] % [\w(]",
    "assignment expressions": r"\(\w+ := ",
    "match statements": r"^\s*match .+:$",
    "async functions": r"^\s*async def ",
    "type annotations": r"^\s*def .+ -> ",
}


def main(recorder: Recorder) -> None:
    with recorder.run(pipeline=PIPELINE, attributes={"question": QUESTION}) as run:
        topics = plan(run)
        # Eight threads; each step names its parent itself, so no thread needs to know another.
        with (
            run.step("search all", phase="search", agent="coordinator", kind="agent") as searching,
            ThreadPoolExecutor(max_workers=8) as threads,
        ):
            findings = list(threads.map(lambda topic: investigate(searching, topic), topics))
        run.log(*findings)
        run.result = write(run, findings)


def plan(run: Run) -> list[str]:
    with run.step("plan", phase="plan", agent="planner", kind="agent") as step:
        model = ScriptedModel(lambda _prompt: "; ".join(IDIOMS), system="You plan research.")
        topics = model.ask(step, f"Split into topics: {QUESTION}").split("; ")
        step.set(payload={"question": QUESTION, "topics": topics})
    return topics


def investigate(searching: Step, topic: str) -> str:
    with searching.step(f"search {topic}", agent="searcher", kind="agent") as step:
        lines = search(step, IDIOMS[topic])
        model = ScriptedModel(lambda prompt: f"{topic}: {prompt.count(chr(10))} lines")
        return model.ask(step, "Sum up what was found:\n" + "\n".join(lines))


def search(caller: Step, pattern: str) -> list[str]:
    """The tool: lines of the library that match, as `file:line: text`."""
    with caller.step("search_files", kind="tool") as step:
        matches = [
            f"{path.name}:{number}: {line.strip()[:120]}"
            for path in sorted(LIBRARY.glob("[a-d]*.py"))
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
            if re.search(pattern, line)
        ]
        step.set(payload={"pattern": pattern, "matches": matches[:200], "found": len(matches)})
    return matches[:200]


def write(run: Run, findings: list[str]) -> str:
    with run.step("write", phase="write", agent="writer", kind="agent") as step:
        model = ScriptedModel(lambda prompt: "Found " + ", ".join(prompt.splitlines()[1:]) + ".")
        return model.ask(step, "\n".join(["Write the report from:", *findings]))


if __name__ == "__main__":
    with Recorder.from_environment() as to_queue:
        main(to_queue)
