"""Translation: three translators in one event loop. Shows `async with`, and text beyond ASCII.

Names, phases, logs, payloads and the result are Chinese, Japanese and Korean, with characters of
three and four bytes; the glossary tool asks a real database.
"""

import asyncio
import sqlite3
from contextlib import closing

from local.samples.scripted_model import ScriptedModel
from runtally import Recorder, Run, Step

PIPELINE = "翻译流水线 🌏"
SENTENCES = {
    "The agent finished without errors.": {
        "中文": "智能体已完成，没有任何错误。",
        "日本語": "エージェントはエラーなしで完了しました。",
        "한국어": "에이전트가 오류 없이 완료되었습니다.",
    },
    "Every step is counted exactly once.": {
        "中文": "每一步都恰好被计数一次。𠮷祥如意 🎉",
        "日本語": "各ステップはちょうど一度だけ数えられます。𠮟られません 🎌",
        "한국어": "모든 단계는 정확히 한 번만 집계됩니다. 👩‍👩‍👧‍👦",
    },
    "Costs are added up to the last digit.": {
        "中文": "费用精确累加到最后一位小数。",
        "日本語": "費用は最後の桁まで正確に合計されます。",
        "한국어": "비용은 마지막 자리까지 정확하게 더해집니다.",
    },
}
GLOSSARY = [("agent", "智能体", "エージェント", "에이전트"), ("step", "步骤", "ステップ", "단계")]
LANGUAGES = ("中文", "日本語", "한국어")


def main(recorder: Recorder) -> None:
    asyncio.run(translate_all(recorder))


async def translate_all(recorder: Recorder) -> None:
    async with recorder.run(pipeline=PIPELINE, session_id="会话-2026") as run:
        translated = await asyncio.gather(*(translate(run, language) for language in LANGUAGES))
        reviews = await asyncio.gather(
            *(review(run, *each) for each in zip(LANGUAGES, translated, strict=True))
        )
        run.log("审校完成 ✅", *reviews)
        run.result = dict(zip(LANGUAGES, translated, strict=True))


async def translate(run: Run, language: str) -> list[str]:
    async with run.step(
        f"翻译成{language}", phase="翻译 📝", agent=f"译者·{language}", kind="agent"
    ) as step:
        terms = await look_up(step, language)
        model = ScriptedModel(lambda prompt: SENTENCES[prompt][language], system=terms)
        answers = [model.ask(step, sentence) for sentence in SENTENCES]
        step.set(payload={"语言": language, "译文": answers})
    return answers


async def look_up(caller: Step, language: str) -> str:
    """The tool: the glossary for a language, from a database."""
    async with caller.step("查询术语表 📖", kind="tool") as step:
        rows = await asyncio.to_thread(glossary, LANGUAGES.index(language))
        step.set(payload=[{"术语": term, "译名": name} for term, name in rows])
    return "；".join(f"{term}＝{name}" for term, name in rows)


def glossary(column: int) -> list[tuple[str, str]]:
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute("CREATE TABLE glossary (term, zh, ja, ko)")
        database.executemany("INSERT INTO glossary VALUES (?, ?, ?, ?)", GLOSSARY)
        rows = database.execute("SELECT * FROM glossary ORDER BY term").fetchall()
    return [(row[0], row[1 + column]) for row in rows]


async def review(run: Run, language: str, sentences: list[str]) -> str:
    async with run.step(f"审校{language}", phase="审校 🔍", agent="审校员", kind="agent") as step:
        model = ScriptedModel(lambda prompt: f"{language}：通过（{len(prompt)} 字）👍")
        return model.ask(step, "\n".join(sentences))


if __name__ == "__main__":
    with Recorder.from_environment() as to_queue:
        main(to_queue)
