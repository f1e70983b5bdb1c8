"""Ask a model behind an OpenAI-compatible endpoint: one POST to `/chat/completions`, one message back.

The key goes into one header and nowhere else: not into a `repr`, a message or an exception, even when the server
repeats it.  Redirects are not followed, because they would take the key elsewhere.  Only a call that surely did not
run is made again: a connection that was refused, and the statuses 429 and 5xx.

Source: the OpenAI API reference, "Create chat completion"; RFC 9110 §10.2.3 (Retry-After).
"""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import os
import re
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Self

from extforge_harness.errors import ChatMalformed, ChatMissing, ChatRefused, ChatTimeout

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

__all__ = ["Chat", "Endpoint", "Message", "is_secret"]

Message = dict[str, Any]

RETRIES = 2
LONGEST_WAIT = 30.0  # seconds that a Retry-After may ask for; beyond, the call fails at once
SIZE_LIMIT = 4 << 20  # bytes of one answer
PUBLIC_URL = "https://api.openai.com/v1"  # what a bare OPENAI_API_KEY means everywhere
INSTALL = 'install it with: pip install "extforge[chat]"'
_URL = re.compile(r"https?://[^\s/?#@]+(?:/[^\s?#@]*)?")
_KEY = re.compile(r"[!-~]+")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a model answers."""

    base_url: str
    model: str
    api_key: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        """Refuse what cannot work, or would carry a secret into messages.

        Raises:
            ChatMissing: naming the setting.
        """
        if not _URL.fullmatch(self.base_url):
            raise ChatMissing(
                "the endpoint's URL is not of the form http(s)://host/v1",
                "set OPENAI_BASE_URL without user, password and query; the key belongs into OPENAI_API_KEY",
            )
        if not self.model.strip():
            raise ChatMissing("no model is named", "set OPENAI_MODEL")
        if self.api_key and not _KEY.fullmatch(self.api_key):
            raise ChatMissing("the key has characters that no key has", "set OPENAI_API_KEY anew")

    @classmethod
    def from_environment(
        cls, base_url: str | None = None, model: str | None = None, environment: Mapping[str, str] = os.environ
    ) -> Endpoint:
        """Return the endpoint of OPENAI_BASE_URL, OPENAI_MODEL and OPENAI_API_KEY; arguments come first.

        Raises:
            ChatMissing: when there is none, naming what is not set.
        """
        key = environment.get("OPENAI_API_KEY", "").strip()
        url = (base_url or environment.get("OPENAI_BASE_URL", "")).strip() or (PUBLIC_URL if key else "")
        name = (model or environment.get("OPENAI_MODEL", "")).strip()
        unset = [what for what, value in (("OPENAI_BASE_URL", url), ("OPENAI_MODEL", name)) if not value]
        if unset:
            raise ChatMissing("there is no model to ask", f"set {' and '.join(unset)}")
        return cls(url.rstrip("/"), name, key)

    def reach(self, seconds: float = 10.0) -> None:
        """Return when somebody listens there: it is known before an agent is started, and after one failed.

        Which way a proxy would take is not known, so behind one nothing is tried.

        Raises:
            ChatMissing: when nobody does, within these seconds.
        """
        import socket  # noqa: PLC0415 -- with urllib 10 ms, for who asks a model only
        from urllib.parse import urlsplit  # noqa: PLC0415
        from urllib.request import getproxies, proxy_bypass  # noqa: PLC0415

        try:
            url = urlsplit(self.base_url)
            host, port = url.hostname or "", url.port or {"http": 80, "https": 443}[url.scheme]
            if proxy_bypass(host) or not {url.scheme, "all"} & set(getproxies()):
                socket.create_connection((host, port), timeout=seconds).close()
        except (OSError, ValueError):  # ValueError: a port or a name that there cannot be
            raise self.nobody() from None

    def nobody(self) -> ChatMissing:
        """Return the exception that says that nothing answers here."""
        fix = "start the server there, or give another address in OPENAI_BASE_URL"
        return ChatMissing(f"nothing answers at {self.base_url}", fix)


class Chat:
    """An open connection to an endpoint; use it with `async with`."""

    def __init__(self, endpoint: Endpoint, *, timeout: float = 120.0, size_limit: int = SIZE_LIMIT) -> None:
        """Prepare to ask.

        Args:
            endpoint: where to ask, and which model.
            timeout: seconds that one attempt may take, from connecting to the last byte.
            size_limit: bytes that one answer may have.

        Raises:
            ChatMissing: when httpx is not installed.
        """
        try:
            import httpx  # noqa: PLC0415 -- an extra
        except ImportError:
            raise ChatMissing("httpx is not installed", INSTALL) from None
        self.endpoint, self.timeout, self.size_limit = endpoint, timeout, size_limit
        headers = {"Accept-Encoding": "identity", "User-Agent": "extforge"}
        if endpoint.api_key:
            headers["Authorization"] = f"Bearer {endpoint.api_key}"
        self._httpx = httpx
        self._client = httpx.AsyncClient(headers=headers, timeout=httpx.Timeout(timeout), follow_redirects=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.aclose()

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] | None = None, **options: Any
    ) -> Message:
        """Return the model's next message: `role`, `content` and, when it calls tools, `tool_calls`.

        Args:
            messages: the conversation so far.
            tools: functions that the model may call, in the API's form.
            options: further fields of the request, such as temperature; None leaves one out.

        Raises:
            ChatMissing: when nothing answers at the endpoint.
            ChatRefused: when it answers with an HTTP error (after two more attempts for 429 and 5xx).
            ChatTimeout: when an answer takes longer than `timeout`.
            ChatMalformed: when the answer is too large, or no message.
        """
        body = {"model": self.endpoint.model, "messages": list(messages)}
        if tools:
            body["tools"] = list(tools)
        body |= {key: value for key, value in options.items() if value is not None}
        data = json.dumps(body).encode()
        for attempt in range(RETRIES + 1):
            last = attempt == RETRIES
            try:
                async with asyncio.timeout(self.timeout):
                    status, wait, answer = await self._post(data)
            except (self._httpx.ConnectError, self._httpx.ConnectTimeout):
                if last:
                    raise self.endpoint.nobody() from None
                await asyncio.sleep(_pause(attempt))
                continue
            except (TimeoutError, self._httpx.TimeoutException):
                words = f"{self.endpoint.base_url} did not answer within {self.timeout:g} seconds"
                raise ChatTimeout(words) from None
            except self._httpx.HTTPError as exc:
                words = f"{self.endpoint.base_url} broke the connection: {type(exc).__name__}"
                raise ChatMalformed(words) from None
            if status == 200:
                return _message(answer)
            pause = _pause(attempt) if wait is None else wait
            if last or pause > LONGEST_WAIT or not (status == 429 or status >= 500):
                raise ChatRefused(self._refusal(status, answer), status)
            await asyncio.sleep(pause)
        raise AssertionError

    async def _post(self, data: bytes) -> tuple[int, float | None, bytes]:
        """Return status, what Retry-After asks for, and the body; the body is never larger than the limit."""
        url = f"{self.endpoint.base_url}/chat/completions"
        headers = {"Content-Type": "application/json"}
        async with self._client.stream("POST", url, content=data, headers=headers) as response:
            body = bytearray()
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > self.size_limit:
                    raise ChatMalformed(f"the answer has more than {self.size_limit:,} bytes")
            return response.status_code, _retry_after(response.headers.get("Retry-After")), bytes(body)

    def _refusal(self, status: int, body: bytes) -> str:
        """Say what an HTTP error means, in the server's words, which may hold the key."""
        try:
            error = json.loads(body)["error"]
            said = str(error["message"] if isinstance(error, dict) else error)
        except (ValueError, KeyError, TypeError, RecursionError):
            said = body.decode("utf-8", "replace")
        if is_secret(self.endpoint.api_key):
            said = said.replace(self.endpoint.api_key, "[key]")
        said = " ".join("".join(c if c.isprintable() else " " for c in said).split())[:300]
        meaning = {401: " (OPENAI_API_KEY is missing or wrong)", 404: " (wrong OPENAI_BASE_URL or OPENAI_MODEL)"}
        return f"{self.endpoint.base_url} answered HTTP {status}{meaning.get(status, '')}{': ' if said else ''}{said}"


def is_secret(key: str) -> bool:
    """Say whether a key must be taken out of what others say: `EMPTY` and `none`, as local servers take, are words."""
    return len(key) >= 8


def _pause(attempt: int) -> float:
    return 0.25 * 4.0**attempt


def _retry_after(value: str | None) -> float | None:
    """Return seconds from a Retry-After header: a number, or a date."""
    if value is None:
        return None
    if re.fullmatch(r"\d{1,9}", value.strip()):
        return float(value)
    try:
        until = parsedate_to_datetime(value)
    except (ValueError, TypeError):
        return None
    if until.tzinfo is None:
        until = until.replace(tzinfo=dt.UTC)
    return max(0.0, (until - dt.datetime.now(dt.UTC)).total_seconds())


def _message(body: bytes) -> Message:
    """Return the message of an answer, of the right shape throughout."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        raise ChatMalformed("the answer is not JSON") from None
    try:
        message = answer["choices"][0]["message"]
        content, calls = message.get("content"), message.get("tool_calls") or []
        calls = [
            {
                "id": str(call.get("id") or f"call_{number}"),
                "type": "function",
                "function": {"name": call["function"]["name"], "arguments": call["function"].get("arguments") or "{}"},
            }
            for number, call in enumerate(calls)
        ]
        texts = [call["function"][key] for call in calls for key in ("name", "arguments")]
    except (AttributeError, IndexError, KeyError, TypeError):
        raise ChatMalformed("the answer has no message in choices[0]") from None
    if not (content is None or isinstance(content, str)) or not all(isinstance(text, str) for text in texts):
        raise ChatMalformed("the answer's message is not made of texts")
    if content is None and not calls:
        raise ChatMalformed("the answer's message says nothing")
    return {"role": "assistant", "content": content, **({"tool_calls": calls} if calls else {})}
