"""A model that needs no key: OpenAI's chat completions, played from a script.

    $ python stub_model.py
    export OPENAI_API_KEY=none OPENAI_BASE_URL=http://127.0.0.1:41075/v1

Offered a tool, it calls it until a result tells how many people live there; then, or without tools,
it answers. Every call counts 1,000 input tokens, 200 more for each result of a tool, and 50 output
tokens; from the second on, 512 of the input come from the cache.
"""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ANSWER = "東京の人口は約1,400万人です。🗼"
FOUND = "万人"


def message_for(request: dict[str, Any]) -> dict[str, Any]:
    results = tool_results(request)
    if not request.get("tools") or any(FOUND in str(result) for result in results):
        return {"role": "assistant", "content": ANSWER}
    function = {
        "name": request["tools"][0]["function"]["name"],
        "arguments": json.dumps({"city": "東京"}, ensure_ascii=False),
    }
    call = {"id": f"call_{len(results) + 1}", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def usage_for(request: dict[str, Any]) -> dict[str, Any]:
    results = len(tool_results(request))
    tokens = {"prompt_tokens": 1000 + 200 * results, "completion_tokens": 50}
    cached = {"cached_tokens": 512 if results else 0}
    return {**tokens, "total_tokens": sum(tokens.values()), "prompt_tokens_details": cached}


def tool_results(request: dict[str, Any]) -> list[Any]:
    return [m.get("content") for m in request["messages"] if m["role"] == "tool"]


def completion(request: dict[str, Any], kind: str, **more: Any) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": kind, "created": 0, "model": request["model"], **more}


def chunks_of(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    message = message_for(request)
    finish = "tool_calls" if message.get("tool_calls") else "stop"
    calls = [{"index": n, **call} for n, call in enumerate(message.pop("tool_calls", []))]
    if calls:
        message["tool_calls"] = calls
    kind = "chat.completion.chunk"
    first = {"index": 0, "delta": message, "finish_reason": None}
    yield completion(request, kind, choices=[first])
    yield completion(request, kind, choices=[{"index": 0, "delta": {}, "finish_reason": finish}])
    yield completion(request, kind, choices=[], usage=usage_for(request))


def whole_of(request: dict[str, Any]) -> dict[str, Any]:
    message = message_for(request)
    finish = "tool_calls" if message.get("tool_calls") else "stop"
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return completion(request, "chat.completion", choices=[choice], usage=usage_for(request))


class StubModel(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if request.get("stream"):
            lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks_of(request)]
            self.answer("text/event-stream", "".join([*lines, "data: [DONE]\n\n"]))
        else:
            self.answer("application/json", json.dumps(whole_of(request)))

    def answer(self, content_type: str, body: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *told: object) -> None:
        """The output belongs to the agent."""


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), StubModel)
    address = f"http://127.0.0.1:{server.server_port}/v1"
    print(f"export OPENAI_API_KEY=none OPENAI_BASE_URL={address}", flush=True)
    server.serve_forever()
