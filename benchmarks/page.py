"""How a run of 33,000 calls feels in the Pipeline page: `python -m benchmarks page`.

A headless Chromium opens the run, zooms and moves its timeline and scrolls its table, by 60 frames
a second at best. The API's answer is made before: what is measured is the page.
"""

import statistics
from collections.abc import Callable, Iterable
from typing import Any, Final

from playwright.sync_api import Page

from local.page import PageServer
from tests.page.browser import Visitor, launched
from tests.page.large_run import CALLS, RUN, large_run
from tests.wsgi import App, StartResponse

FRAME_MS: Final = 1_000 / 60
_PACE_MS: Final = 30
"""Between two turns of a wheel, or two places of a pointer."""

_OBSERVE: Final = """
window.longTasks = [];
new PerformanceObserver((list) => {
  for (const task of list.getEntries()) window.longTasks.push(task.duration);
}).observe({ type: "longtask", buffered: true });
"""
_DRAWN: Final = """() => {
  if (!document.querySelector(".timeline canvas") || document.querySelector(".progress")) return 0;
  return performance.now();
}"""
_ANSWER: Final = """() => {
  const [{ startTime, responseEnd, decodedBodySize }] = performance
    .getEntriesByType("resource").filter(({ name }) => name.includes("/api/"));
  return [responseEnd - startTime, decodedBodySize];
}"""
_COUNT_FRAMES: Final = """() => {
  window.frames_ = [];
  let last = performance.now();
  const tick = (now) => {
    window.frames_.push(now - last);
    last = now;
    window.counting = requestAnimationFrame(tick);
  };
  window.counting = requestAnimationFrame(tick);
}"""
_FRAMES: Final = "() => { cancelAnimationFrame(window.counting); return window.frames_.slice(1); }"
_A_PLACE: Final = """(element) => {
  const { x, y } = element.getBoundingClientRect();
  return [x + 300, y + 120];
}"""
_NODES: Final = "() => document.querySelectorAll('*').length"
_TAKE_LONG_TASKS: Final = "() => window.longTasks.splice(0)"


class Remembered:
    """An app that is asked for each address once."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._answers: dict[str, tuple[str, list[tuple[str, str]], list[bytes]]] = {}

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        address = environ["REQUEST_URI"]
        if address not in self._answers:
            head: list[Any] = []
            body = list(self._app(environ, lambda status, headers: head.extend((status, headers))))
            self._answers[address] = (head[0], head[1], body)
        status, headers, body = self._answers[address]
        start_response(status, headers)
        return body


def measure() -> dict[str, Any]:
    with (
        large_run(Remembered) as run,
        PageServer(run.api_url) as server,
        launched() as browser,
    ):
        warming = Visitor(browser, server.address, run.client.key)
        _open(warming)
        warming.leave()
        tab = Visitor(browser, server.address, run.client.key)
        tab.context.add_init_script(_OBSERVE)
        figures = {"calls": CALLS, **_opened(tab), **_moved(tab.page)}
        if troubles := tab.leave():
            raise AssertionError(troubles)
        return figures


def _open(tab: Visitor) -> float:
    """Milliseconds from the navigation until every call is drawn."""
    tab.open(f"#/runs/{RUN.run_id}")
    drawn = tab.page.wait_for_function(_DRAWN, polling="raf", timeout=120_000)
    return float(drawn.json_value())


def _opened(tab: Visitor) -> dict[str, Any]:
    page = tab.page
    drawn_ms = _open(tab)
    answer_ms, answer_bytes = page.evaluate(_ANSWER)
    clicked = page.evaluate("() => performance.now()")
    page.get_by_role("tab", name="Calls").click()
    page.locator("table.calls tbody a").first.wait_for()
    answered_ms = page.evaluate("() => performance.now()") - clicked
    tasks = page.evaluate(_TAKE_LONG_TASKS)
    return {
        "time_to_interactive_ms": round(drawn_ms + answered_ms),
        "of_it_answer_ms": round(answer_ms),
        "of_it_click_ms": round(answered_ms),
        "answer_mb": round(answer_bytes / 1e6, 1),
        "long_tasks": len(tasks),
        "long_tasks_ms": round(sum(tasks)),
        "longest_task_ms": round(max(tasks, default=0)),
    }


def _moved(page: Page) -> dict[str, Any]:
    scroller = page.locator(".scroller")
    scroller.hover()
    frames = {"scroll": _frames(page, lambda: page.mouse.wheel(0, 900), 60)}
    nodes = page.evaluate(_NODES)
    page.get_by_role("tab", name="Timeline").click()
    page.locator(".timeline canvas").first.wait_for()
    x, y = page.locator(".timeline").evaluate(_A_PLACE)
    page.mouse.move(x, y)
    page.keyboard.down("Control")
    frames["zoom"] = _frames(page, lambda: page.mouse.wheel(0, -120), 40)
    page.keyboard.up("Control")
    page.mouse.down()
    places = iter(range(40))
    frames["pan"] = _frames(page, lambda: page.mouse.move(x + 10 * next(places), y), 40)
    page.mouse.up()
    return {
        "frames": frames,
        "dom_nodes": max(nodes, page.evaluate(_NODES)),
        "heap_mb": round(_heap(page) / 1e6, 1),
    }


def _frames(page: Page, act: Callable[[], object], times: int) -> dict[str, float]:
    page.evaluate(_COUNT_FRAMES)
    for _ in range(times):
        act()
        page.wait_for_timeout(_PACE_MS)
    took: list[float] = page.evaluate(_FRAMES)
    ordered = statistics.quantiles(took, n=100)
    return {
        "frames": len(took),
        "p50_ms": round(ordered[49], 1),
        "p95_ms": round(ordered[94], 1),
        # A timestamp is rounded: a frame is late by more than that.
        "share_late": round(sum(ms > FRAME_MS + 1 for ms in took) / len(took), 3),
        "share_over_50_ms": round(sum(ms > 50 for ms in took) / len(took), 3),
    }


def _heap(page: Page) -> int:
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    used: int = session.send("Runtime.getHeapUsage")["usedSize"]
    return used


def table(found: dict[str, Any]) -> str:
    return "\n".join(f"  {name:24}{value}" for name, value in found.items())
