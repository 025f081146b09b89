"""A real HTTP server on loopback whose answers a test writes byte by byte."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

Handler = Callable[[dict[str, Any], "Stream"], Awaitable[None]]


class Stream:
    """One answer under way; ``connection`` numbers the TCP connections from 1."""

    def __init__(self, request: web.Request, connection: int, number: int) -> None:
        self._request = request
        self._response: web.StreamResponse | None = None
        self.connection, self.number = connection, number

    async def send(self, data: bytes) -> None:
        """Send bytes as a TCP segment of their own."""
        if self._response is None:
            self._response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
            await self._response.prepare(self._request)
        await self._response.write(data)
        await asyncio.sleep(0.002)

    async def event(self, data: Any) -> None:
        """Send one event with a JSON value, or with the text given."""
        text = data if isinstance(data, str) else json.dumps(data)
        await self.send(f"data: {text}\n\n".encode())

    async def content(self, text: str, **more: Any) -> None:
        """Send one chat chunk."""
        await self.event(
            {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}], **more}
        )

    async def finish(self, output_tokens: int, *, reason: str = "length", **more: Any) -> None:
        """Send finish reason, usage and end mark as llama.cpp does."""
        await self.event({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
        usage = {"completion_tokens": output_tokens, "prompt_tokens": 7}
        await self.event({"choices": [], "usage": usage, **more})
        await self.event("[DONE]")

    def close_when_done(self) -> None:
        """Close the connection after this answer without having said so."""
        assert self._response is not None
        self._response.force_close()

    def reset(self) -> None:
        """Break the connection so that the client gets a reset and not an end."""
        assert self._request.transport is not None
        self._request.transport.abort()

    async def whole(self, data: Any) -> None:
        """Answer with one JSON value and no stream."""
        self._response = web.json_response(data)

    async def refuse(self, status: int, text: str) -> None:
        """Answer with an HTTP error."""
        self._response = web.Response(status=status, text=text)

    @property
    def response(self) -> web.StreamResponse:
        """What aiohttp is to finish."""
        return self._response or web.Response(status=204)


class StreamingServer:
    """Runs ``handler`` for every POST, in a thread of its own, from ``with`` to its end.

    Texts are tokenized by ``tokenizer``, token 0 before them where special tokens are asked for; a server
    without one refuses that.
    """

    def __init__(self, handler: Handler, tokenizer: Callable[[str], list[int]] | None = None) -> None:
        self._handler = handler
        self._tokenizer = tokenizer
        self._loop = asyncio.new_event_loop()
        self._connections: list[object] = []
        self.bodies: list[dict[str, Any]] = []
        self.url = ""

    async def _serve(self) -> None:
        app = web.Application()
        app.router.add_post("/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        if request.transport not in self._connections:
            self._connections.append(request.transport)
        body = await request.json()
        if request.path.endswith("/tokenize") and "content" in body:
            if self._tokenizer is None:
                return web.Response(status=404)
            begin = [0] if body["add_special"] else []
            return web.json_response({"tokens": begin + self._tokenizer(body["content"])})
        self.bodies.append(body)
        stream = Stream(request, len(self._connections), len(self.bodies))
        await self._handler(body, stream)
        return stream.response

    def stop(self) -> None:
        """Close the port and every connection; may be called twice."""
        if self._loop.is_running():
            asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result(5)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(5)

    def __enter__(self) -> StreamingServer:
        self._loop.run_until_complete(self._serve())
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._loop.close()
