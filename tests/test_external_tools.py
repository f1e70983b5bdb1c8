"""Tools that reach outside, against the real thing: local servers, real programs, real databases."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import sqlite3
import ssl
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import Plans, design, load_work

from extforge.check import load_plan
from extforge.render import build_context

Answer = tuple[int, dict[str, str], bytes]


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


_TREES: dict[str, Path] = {}


def work_of(plans: Plans, spec: dict[str, Any]) -> Any:
    """Return the work module of a design's tool.

    The code depends on the names alone, so it is generated once; the data beside it is written anew.
    """
    name = spec["extension_name"]
    (blueprint,) = load_plan(plans.write(spec)).blueprints
    if name not in _TREES:
        _TREES[name] = plans.folder.parent / f"tree_of_{name}" / name
        shutil.copytree(plans.tree(spec), _TREES[name])
    tree = plans.folder / f"copy{plans.count}" / name
    shutil.copytree(_TREES[name], tree)
    (tool,) = build_context(blueprint, {})["tools"]
    (tree / f"{tool['work_path']}.json").write_text(tool["data"], encoding="utf-8")
    return load_work(tree, f"tools.{name}")


# --------------------------------------------------------------------------- http


class Api:
    """A server on 127.0.0.1 that answers from a list, the last answer again and again, and keeps what it was asked."""

    def __init__(self) -> None:
        self.answers: list[Answer] = [(200, {}, b'{"ok": true}')]
        self.seen: list[tuple[str, str, dict[str, str], bytes]] = []
        self.behave: Any = None  # instead of an answer: a function of the handler
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def answer(self) -> None:
                length = int(self.headers.get("content-length") or 0)
                headers = {name.lower(): value for name, value in self.headers.items()}
                api.seen.append((self.command, self.path, headers, self.rfile.read(length)))
                if api.behave is not None:
                    with contextlib.suppress(OSError):
                        api.behave(self)
                    self.close_connection = True
                    return
                status, more, body = api.answers.pop(0) if len(api.answers) > 1 else api.answers[0]
                self.send_response(status)
                for name, value in {"Content-Type": "application/json", **more}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                with contextlib.suppress(OSError):
                    self.wfile.write(body)

            do_GET = do_POST = do_PUT = do_DELETE = answer  # noqa: N815 -- the names that the base class calls

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None  # type: ignore[method-assign]
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()

    def json(self, value: Any, status: int = 200, **headers: str) -> None:
        self.answers = [(status, headers, json.dumps(value, ensure_ascii=False).encode())]

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    server = Api()
    monkeypatch.setenv("ORDER_LOOKUP_BASE_URL", f"http://127.0.0.1:{server.port}")
    monkeypatch.setenv("OPENJIUWEN_EXTENSION_PRIVATE_HOSTS", f"127.0.0.1:{server.port}")
    yield server
    server.stop()


def http_tool(plans: Plans, params: dict[str, Any] | None = None, **spec: Any) -> Any:
    spec = {"url": "https://api.example.com/v1/orders/{order_id}", **spec}
    tool: dict[str, Any] = {"does": {"http": spec}}
    if params is not None:
        tool["input_params"] = params
    return work_of(plans, design("order_lookup", tools=[tool]))


def test_a_call_is_made_and_its_json_returned(plans: Plans, api: Api) -> None:
    api.json({"id": 7, "状态": "ok"})
    tool = http_tool(plans, query={"lang": "{lang}"}, headers={"X-Client": "extforge"})
    result = tool.run({"order_id": "7", "lang": "zh & en"})
    assert result == {"success": True, "status": 200, "response": {"id": 7, "状态": "ok"}}
    method, path, headers, body = api.seen[0]
    assert (method, path, body) == ("GET", "/v1/orders/7?lang=zh%20%26%20en", b"")
    assert (headers["x-client"], headers["host"]) == ("extforge", f"127.0.0.1:{api.port}")
    assert "content" not in result


@pytest.mark.parametrize(
    ("value", "path"),
    [
        pytest.param("a/b", "/v1/orders/a%2Fb", id="a slash"),
        pytest.param("../../admin", "/v1/orders/..%2F..%2Fadmin", id="steps upwards"),
        pytest.param("x?y=1#z", "/v1/orders/x%3Fy%3D1%23z", id="a query"),
        pytest.param("x\r\nHost: evil", "/v1/orders/x%0D%0AHost%3A%20evil", id="a header"),
        pytest.param("订单", "/v1/orders/%E8%AE%A2%E5%8D%95", id="Chinese"),
        pytest.param("@evil.example", "/v1/orders/%40evil.example", id="a host"),
        pytest.param("%2e%2e", "/v1/orders/%252e%252e", id="encoded twice"),
        pytest.param("{order_id}", "/v1/orders/%7Border_id%7D", id="a place"),
    ],
)
def test_an_input_stays_one_step_of_the_path(plans: Plans, api: Api, value: str, path: str) -> None:
    assert http_tool(plans).run({"order_id": value})["success"] is True
    assert api.seen[0][1] == path


@pytest.mark.parametrize("value", ["", ".", "..", " "])
def test_an_input_that_would_change_the_path_is_refused(plans: Plans, api: Api, value: str) -> None:
    result = http_tool(plans).run({"order_id": value})
    assert (result["success"], result["error_kind"], api.seen) == (False, "invalid-input", [])


def test_a_body_keeps_types_and_leaves_out_what_is_absent(plans: Plans, api: Api) -> None:
    params = {
        "type": "object",
        "properties": {"item": {"type": "string"}, "count": {"type": "integer"}, "note": {"type": "string"}, "order_id": {"type": "string", "default": "new"}},
        "required": ["item", "count"],
    }  # fmt: skip
    body = {"line": {"item": "{item}", "count": "{count}"}, "note": "{note}", "text": "{count} x {item} {{literally}}"}
    tool = http_tool(plans, params, method="POST", body=body)
    assert tool.run({"item": 'te"a', "count": 3})["success"] is True
    method, path, headers, sent = api.seen[0]
    assert (method, path, headers["content-type"]) == ("POST", "/v1/orders/new", "application/json")
    assert json.loads(sent) == {"line": {"item": 'te"a', "count": 3}, "text": '3 x te"a {literally}'}


def test_headers_of_the_plan_replace_the_usual_ones(plans: Plans, api: Api) -> None:
    tool = http_tool(plans, method="POST", body={}, headers={"accept": "text/json", "CONTENT-TYPE": "text/x-json"})
    assert tool.run({"order_id": "7"})["success"] is True
    headers = api.seen[0][2]
    assert (headers["accept"], headers["content-type"]) == ("text/json", "text/x-json")


def test_redirects_are_not_followed(plans: Plans, api: Api) -> None:
    for status in (301, 302, 303, 307, 308):
        api.seen.clear()
        api.answers = [(status, {"Location": f"http://127.0.0.1:{api.port}/elsewhere"}, b"")]
        result = http_tool(plans).run({"order_id": "7"})
        assert (result["success"], result["error_kind"], result["status"]) == (False, "redirect", status)
        assert "/elsewhere" in result["error"]
        assert [path for _, path, _, _ in api.seen] == ["/v1/orders/7"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        pytest.param(b"<html>no</html>", "text/html", id="HTML"),
        pytest.param(b'{"a": NaN}', "NaN is not JSON", id="NaN"),
        pytest.param(b'{"a": 1', "did not answer with JSON", id="cut"),
        pytest.param(b"[" * 100_000, "did not answer with JSON", id="deep"),
        pytest.param(b'{"a": "\xff\xfe"}', "did not answer with JSON", id="not UTF-8"),
    ],
)
def test_an_answer_that_is_no_json_is_a_typed_error(plans: Plans, api: Api, body: bytes, words: str) -> None:
    api.answers = [(200, {"Content-Type": "text/html"}, body)]
    result = http_tool(plans).run({"order_id": "7"})
    assert (result["success"], result["error_kind"]) == (False, "bad-json")
    assert words in result["error"]


def test_no_answer_at_all_is_none_and_a_byte_order_mark_is_passed_over(plans: Plans, api: Api) -> None:
    tool = http_tool(plans)
    api.answers = [(204, {}, b"")]
    assert tool.run({"order_id": "7"}) == {"success": True, "status": 204, "response": None}
    api.answers = [(200, {}, b"\xef\xbb\xbf[1]")]
    assert tool.run({"order_id": "7"})["response"] == [1]


def test_a_large_answer_is_cut_off_while_it_comes(plans: Plans, api: Api) -> None:
    tool = http_tool(plans, max_bytes=1000)
    api.json("x" * 2000)
    assert tool.run({"order_id": "7"})["error_kind"] == "too-large"
    sent = []

    def flood(handler: Any) -> None:
        handler.send_response(200)
        handler.send_header("Connection", "close")
        handler.end_headers()
        for _ in range(10_000):  # a gigabyte, if anybody read it
            handler.wfile.write(b" " * 100_000)
            sent.append(1)

    api.behave = flood
    started = time.monotonic()
    assert tool.run({"order_id": "7"})["error_kind"] == "too-large"
    assert time.monotonic() - started < 5
    assert len(sent) < 1000


def test_a_compressed_answer_is_refused_unread(plans: Plans, api: Api) -> None:
    import gzip

    api.answers = [(200, {"Content-Encoding": "gzip"}, gzip.compress(b" " * 10_000_000))]
    result = http_tool(plans).run({"order_id": "7"})
    assert result["error_kind"] == "protocol"
    assert api.seen[0][2]["accept-encoding"] == "identity"


def test_an_answer_cut_short_is_an_error(plans: Plans, api: Api) -> None:
    def cut(handler: Any) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "100")
        handler.end_headers()
        handler.wfile.write(b'{"a": 1}')

    api.behave = cut
    assert http_tool(plans).run({"order_id": "7"})["error_kind"] == "protocol"


def drip_body(handler: Any) -> None:
    handler.send_response(200)
    handler.send_header("Connection", "close")
    handler.end_headers()
    for _ in range(200):
        handler.wfile.write(b" ")
        time.sleep(0.05)


def drip_headers(handler: Any) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-A: ")
    for _ in range(200):
        handler.wfile.write(b"a")
        time.sleep(0.05)


@pytest.mark.parametrize("behave", [pytest.param(lambda _: time.sleep(5), id="silence"), drip_body, drip_headers])
def test_a_slow_server_meets_the_timeout_however_it_is_slow(plans: Plans, api: Api, behave: Any) -> None:
    api.behave = behave
    started = time.monotonic()
    result = http_tool(plans, timeout=0.5, retries=0).run({"order_id": "7"})
    assert (result["error_kind"], result["success"]) == ("timeout", False)
    assert time.monotonic() - started < 2


def test_only_safe_calls_are_tried_again(plans: Plans, api: Api) -> None:
    busy = (503, {"Retry-After": "0"}, b"busy")
    api.answers = [busy, busy, (200, {}, b"[1]")]
    assert http_tool(plans).run({"order_id": "7"})["response"] == [1]
    assert len(api.seen) == 3
    api.answers, api.seen = [busy], []
    assert http_tool(plans, retries=1).run({"order_id": "7"})["status"] == 503
    assert len(api.seen) == 2
    for method in ("POST", "PUT", "DELETE"):
        api.seen = []
        assert http_tool(plans, method=method).run({"order_id": "7"})["error_kind"] == "status"
        assert len(api.seen) == 1
    api.answers, api.seen = [(404, {}, b"no such order")], []
    result = http_tool(plans).run({"order_id": "7"})
    assert (result["status"], len(api.seen)) == (404, 1)
    assert "no such order" in result["error"]
    api.answers, api.seen = [(503, {"Retry-After": "3600"}, b"")], []
    assert http_tool(plans).run({"order_id": "7"})["status"] == 503
    assert len(api.seen) == 1  # nobody waits for an hour


def test_a_call_that_may_have_been_carried_out_says_so(plans: Plans, api: Api) -> None:
    api.behave = lambda _: time.sleep(2)
    result = http_tool(plans, method="POST", timeout=0.3).run({"order_id": "7"})
    assert result["error_kind"] == "timeout"
    assert "may have been carried out" in result["error"]


def test_nobody_listening_is_a_connection_error(plans: Plans, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    monkeypatch.setenv("ORDER_LOOKUP_BASE_URL", f"http://127.0.0.1:{port}")
    result = http_tool(plans, allow_private=True, retries=0).run({"order_id": "7"})
    assert result["error_kind"] == "connection"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "127.1", "2130706433", "0.0.0.0"])
def test_private_addresses_are_refused_under_every_name(
    plans: Plans, api: Api, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    monkeypatch.delenv("OPENJIUWEN_EXTENSION_PRIVATE_HOSTS")
    monkeypatch.setenv("ORDER_LOOKUP_BASE_URL", f"http://{host}:{api.port}")
    result = http_tool(plans, retries=0).run({"order_id": "7"})
    assert result["error_kind"] in ("private-address", "dns"), result  # not every system has an ::1
    assert api.seen == []


def test_which_addresses_are_public(plans: Plans) -> None:
    network = __import__("importlib").import_module(http_tool(plans).__name__ + "_network")
    for address in (
        "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1",
        "::1", "fe80::1%eth0", "fc00::1", "::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:a00:1::1", "255.255.255.255",
    ):  # fmt: skip
        assert not network.is_public(address), address
    for address in ("93.184.216.34", "8.8.8.8", "2606:4700:4700::1111", "64:ff9b::808:808"):
        assert network.is_public(address), address


def test_the_address_that_was_checked_is_the_one_that_is_called(
    plans: Plans, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that resolves to a public address for the check, and to a private one afterwards, gains nothing."""
    real, asked = socket.getaddrinfo, []

    def resolve(host: Any, *arguments: Any, **options: Any) -> Any:
        if host == "rebind.example":
            asked.append(host)
            host = "127.0.0.1" if len(asked) > 1 else "192.0.2.1"
        return real(host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    monkeypatch.setenv("ORDER_LOOKUP_BASE_URL", f"http://rebind.example:{api.port}")
    tool = http_tool(plans, retries=0, timeout=0.3)
    assert tool.run({"order_id": "7"})["error_kind"] == "private-address"  # 192.0.2.1 is for documentation
    asked.clear()
    monkeypatch.setenv("OPENJIUWEN_EXTENSION_PRIVATE_HOSTS", f"rebind.example:{api.port}")
    assert tool.run({"order_id": "7"})["error_kind"] in ("timeout", "connection")
    assert (asked, api.seen) == (["rebind.example"], [])
    asked[:] = ["once"]
    assert tool.run({"order_id": "7"})["success"] is True
    assert api.seen[0][2]["host"] == f"rebind.example:{api.port}"


def test_secrets_come_from_the_environment_and_never_come_out(
    plans: Plans, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = http_tool(plans, secrets={"Authorization": {"env": "ORDERS_TOKEN", "prefix": "Bearer "}})
    missing = tool.run({"order_id": "7"})
    assert (missing["error_kind"], api.seen) == ("not-configured", [])
    assert "ORDERS_TOKEN" in missing["error"]
    monkeypatch.setenv("ORDERS_TOKEN", "s3cr3t-value")
    api.json({"you sent": "Bearer s3cr3t-value"})
    assert tool.run({"order_id": "7"})["response"] == {"you sent": "Bearer [secret]"}
    assert api.seen[0][2]["authorization"] == "Bearer s3cr3t-value"
    api.json("bad token s3cr3t-value", status=401)
    assert "s3cr3t" not in tool.run({"order_id": "7"})["error"]
    monkeypatch.setenv("ORDERS_TOKEN", "two\nlines")
    broken = tool.run({"order_id": "7"})
    assert broken["error_kind"] == "not-configured"
    assert "two" not in broken["error"]


@pytest.mark.parametrize(
    "base",
    ["ftp://host", "orders", "http://", "http://host?x=1", "http://user:pw@host", "http://host:port", "http://[::1"],
)
def test_a_base_url_that_is_none_is_named(plans: Plans, monkeypatch: pytest.MonkeyPatch, base: str) -> None:
    monkeypatch.setenv("ORDER_LOOKUP_BASE_URL", base)
    result = http_tool(plans).run({"order_id": "7"})
    assert result["error_kind"] == "not-configured"
    assert "ORDER_LOOKUP_BASE_URL" in result["error"]


def test_a_path_alone_needs_the_base_url_from_the_environment(
    plans: Plans, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = http_tool(plans, url="/orders/{order_id}", base_url_env="MY_API")
    assert "MY_API" in tool.run({"order_id": "7"})["error"]
    monkeypatch.setenv("MY_API", f"http://127.0.0.1:{api.port}/prefix/")
    assert tool.run({"order_id": "7"})["success"] is True
    assert api.seen[0][1] == "/prefix/orders/7"


def test_a_part_of_the_answer_is_selected_and_missing_keys_are_named(plans: Plans, api: Api) -> None:
    api.json({"data": {"items": [{"a/b": 1}]}})
    tool = http_tool(plans, select="/data/items/0", required_keys=["data", "/data/items/0/a~1b"])
    assert tool.run({"order_id": "7"})["response"] == {"a/b": 1}
    api.json({"data": {"items": []}})
    result = tool.run({"order_id": "7"})
    assert (result["success"], result["error_kind"]) == (False, "missing-key")


def test_a_certificate_of_nobody_is_refused(
    plans: Plans, api: Api, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    certificate, key = self_signed(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    secure = Api()
    secure.server.socket = context.wrap_socket(secure.server.socket, server_side=True)
    try:
        monkeypatch.setenv("ORDER_LOOKUP_BASE_URL", f"https://127.0.0.1:{secure.port}")
        tool = http_tool(plans, allow_private=True, retries=0)
        assert tool.run({"order_id": "7"})["error_kind"] == "tls"
        assert secure.seen == []
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))  # the operator trusts it
        assert tool.run({"order_id": "7"})["success"] is True
    finally:
        secure.stop()


def self_signed(folder: Path) -> tuple[Path, Path]:
    """Return a certificate of 127.0.0.1 that nobody has signed, and its key."""
    import datetime as dt
    import ipaddress

    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    paths = folder / "cert.pem", folder / "key.pem"
    paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    form = serialization.PrivateFormat.PKCS8
    paths[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, form, plain))
    return paths


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=st.text(max_size=40))
def test_no_input_reaches_another_path(plans: Plans, api: Api, value: str) -> None:
    tool = _SHARED.setdefault("http", http_tool(plans))
    api.seen.clear()
    result = tool.run({"order_id": value})
    if result["success"]:
        ((_, path, _, _),) = api.seen
        assert path.count("/") == 3
        assert path.startswith("/v1/orders/")
        assert path.isascii()
    else:
        assert (result["error_kind"], api.seen) == ("invalid-input", [])


_SHARED: dict[str, Any] = {}


# --------------------------------------------------------------------------- command


ECHO = "import json, os, sys; print(json.dumps([sys.argv[1:], sorted(os.environ), sys.stdin.read()]))"


def command_tool(plans: Plans, argv: list[str], params: dict[str, Any] | None = None, **spec: Any) -> Any:
    tool: dict[str, Any] = {"does": {"command": {"argv": argv, **spec}}}
    if params is not None:
        tool["input_params"] = params
    return work_of(plans, design("text_counter", tools=[tool]))


@pytest.fixture
def echo(tmp_path: Path) -> str:
    """A program that says what it was given."""
    path = tmp_path / "echo.py"
    path.write_text(f"#!{sys.executable}\n{ECHO}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    "value",
    [
        "plain", "two words", "$(touch pwned)", "`touch pwned`", "; touch pwned", "| touch pwned", "&& touch pwned", "> pwned",
        "a\ntouch pwned", "'\"", "$HOME", "*", "~", "%PATH%", "\\", "", "中文 😀", "!!", "${IFS}touch${IFS}pwned", "{word}", "--x".lstrip("-"),
    ],
)  # fmt: skip
def test_every_input_is_exactly_one_argument(plans: Plans, echo: str, scratch: Path, value: str) -> None:
    result = command_tool(plans, [echo, "{word}", "--name={word}", "{{word}}"]).run({"word": value})
    assert result["success"] is True, result
    assert json.loads(result["stdout"])[0] == [value, f"--name={value}", "{word}"]
    assert not (scratch / "pwned").exists()


@pytest.mark.parametrize("value", ["-rf", "--output=/etc/passwd", "-"])
def test_a_value_that_looks_like_an_option_is_refused(plans: Plans, echo: str, value: str) -> None:
    result = command_tool(plans, [echo, "{word}"]).run({"word": value})
    assert (result["success"], result["error_kind"]) == (False, "invalid-input")
    assert "looks like an option" in result["error"]
    after = command_tool(plans, [echo, "--", "{word}"]).run({"word": value})
    assert json.loads(after["stdout"])[0] == ["--", value]


def test_a_list_becomes_one_argument_each_and_defaults_are_used(plans: Plans, echo: str) -> None:
    params = {
        "type": "object",
        "properties": {
            "files": {"type": "array", "items": {"type": "string"}},
            "count": {"type": "integer", "default": 5, "maximum": 9},
        },
        "required": ["files"],
    }
    tool = command_tool(plans, [echo, "-n", "{count}", "{files}"], params)
    assert json.loads(tool.run({"files": ["a b", "c"]})["stdout"])[0] == ["-n", "5", "a b", "c"]
    assert "inputs.count: 10 is more than 9" in tool.run({"files": [], "count": 10})["error"]
    assert "looks like an option" in tool.run({"files": ["a", "-x"]})["error"]
    assert "must be string" in tool.run({"files": [["a"]]})["error"]


def test_nul_characters_never_reach_a_program(plans: Plans, echo: str) -> None:
    result = command_tool(plans, [echo, "{word}"]).run({"word": "a\x00b"})
    assert (result["success"], result["error_kind"]) == (False, "invalid-input")


def test_a_program_sees_only_the_environment_it_was_promised(
    plans: Plans, echo: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    monkeypatch.setenv("EDITOR_OF_CHOICE", "x")
    tool = command_tool(plans, [echo], environment=["EDITOR_OF_CHOICE"])
    seen = json.loads(tool.run({})["stdout"])[1]
    assert "EDITOR_OF_CHOICE" in seen
    assert "AWS_SECRET_ACCESS_KEY" not in seen


def test_input_is_given_on_stdin(plans: Plans, echo: str) -> None:
    tool = command_tool(plans, [echo], stdin="text: {text}")
    assert json.loads(tool.run({"text": "a\nb 中"})["stdout"])[2] == "text: a\nb 中"
    ignoring = command_tool(plans, [sys.executable, "-c", "pass"], stdin="{text}")
    assert ignoring.run({"text": "x" * 2000})["success"] is True


def test_an_exit_code_is_a_typed_failure_with_the_output(plans: Plans) -> None:
    code = "import sys; print('out'); print('why', file=sys.stderr); sys.exit(3)"
    result = command_tool(plans, [sys.executable, "-c", code]).run({})
    assert (result["success"], result["error_kind"], result["exit_code"]) == (False, "exit-code", 3)
    assert (result["stdout"], result["stderr"]) == ("out\n", "why\n")
    assert "why" in result["error"]
    assert command_tool(plans, [sys.executable, "-c", code], exit_codes=[0, 3]).run({})["success"] is True


def test_a_program_that_takes_too_long_is_ended_with_its_children(plans: Plans, scratch: Path) -> None:
    import fcntl

    child = "import fcntl, time; f = open('lock', 'w'); fcntl.flock(f, fcntl.LOCK_EX); print('locked', flush=True); time.sleep(60)"
    code = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {child!r}]); time.sleep(60)"
    started = time.monotonic()
    result = command_tool(plans, [sys.executable, "-c", code], timeout=1.5).run({})
    assert (result["error_kind"], result["stdout"]) == ("timeout", "locked\n")
    assert time.monotonic() - started < 8
    with (scratch / "lock").open("w") as lock:
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
        else:
            pytest.fail("the child still lives")


def test_a_program_that_says_too_much_is_stopped(plans: Plans) -> None:
    started = time.monotonic()
    result = command_tool(plans, [sys.executable, "-c", "while True: print('x' * 1000)"], max_output=5000).run({})
    assert (result["success"], result["error_kind"]) == (False, "too-much-output")
    assert len(result["stdout"]) == 5000
    assert time.monotonic() - started < 10
    exact = command_tool(plans, [sys.executable, "-c", "print('x' * 4999)"], max_output=5000).run({})
    assert (exact["success"], len(exact["stdout"])) == (True, 5000)


def test_output_that_is_no_text_is_shown_as_far_as_it_goes(plans: Plans) -> None:
    result = command_tool(plans, [sys.executable, "-c", "import os; os.write(1, b'a\\xff\\x00')"]).run({})
    assert (result["success"], result["stdout"]) == (True, "a\ufffd\x00")


def test_a_program_that_is_not_there_is_named(plans: Plans, monkeypatch: pytest.MonkeyPatch, scratch: Path) -> None:
    (scratch / "no_such_program").write_text("#!/bin/sh\n")
    (scratch / "no_such_program").chmod(0o755)
    result = command_tool(plans, ["no_such_program"]).run({})
    assert (result["error_kind"], "no_such_program" in result["error"]) == ("not-installed", True)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=st.text(st.characters(codec="utf-8"), max_size=30))
def test_no_input_is_more_or_less_than_one_argument(plans: Plans, echo: str, value: str) -> None:
    tool = _SHARED.setdefault("command", command_tool(plans, ["/bin/echo", "-n", "x{word}"]))
    result = tool.run({"word": value})
    if "\x00" in value:
        assert result["error_kind"] == "invalid-input"
    else:
        assert result["stdout"] == f"x{value}"


# --------------------------------------------------------------------------- query


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    path = tmp_path / "orders ? #1.db"  # characters that mean something in a URI
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.executescript(
            "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer TEXT, total REAL, note BLOB);"
            "INSERT INTO orders VALUES (1, 'O''Hara', 12.5, NULL), (2, '李雷', 8, x'00ff'), (3, 'Ann', 1e999, 'x');"
        )
    return path


def query_tool(plans: Plans, database: Path | str | None, sql: str | None = None, **spec: Any) -> Any:
    given = {"database": str(database)} if database is not None else {}
    given |= {"sql": sql} if sql is not None else {}
    tool = {"does": {"query": {**given, **spec}}}
    return work_of(plans, design("order_reader", tools=[tool]))


def test_a_query_binds_its_parameters(plans: Plans, orders: Path) -> None:
    tool = query_tool(plans, orders, "SELECT id, total FROM orders WHERE customer = :name -- not :this")
    assert tool.INPUT_PARAMS["required"] == ["name"]
    assert tool.run({"name": "O'Hara"}) == {"success": True, "columns": ["id", "total"], "rows": [[1, 12.5]], "row_count": 1, "truncated": False}  # fmt: skip
    assert tool.run({"name": "' OR 1=1 --"})["rows"] == []
    assert tool.run({"name": ["x"]})["error_kind"] == "invalid-input"


def test_values_that_json_does_not_have_are_shown(plans: Plans, orders: Path) -> None:
    result = query_tool(plans, orders, "SELECT total, note FROM orders ORDER BY id").run({})
    assert result["rows"] == [[12.5, None], [8.0, "<2 bytes>"], ["inf", "x"]]
    json.dumps(result, allow_nan=False)


WRITES = (
    "DELETE FROM orders", "UPDATE orders SET total = 0", "INSERT INTO orders VALUES (9, 'x', 1, NULL)", "DROP TABLE orders",
    "CREATE TABLE t (x)", "CREATE TEMP TABLE t (x)", "ALTER TABLE orders ADD x", "VACUUM", "VACUUM INTO 'copy.db'", "REINDEX",
    "ATTACH 'other.db' AS o", "PRAGMA query_only = OFF", "PRAGMA journal_mode = WAL", "PRAGMA user_version = 7",
    "WITH x AS (SELECT 1) DELETE FROM orders", "SELECT load_extension('x')", "BEGIN IMMEDIATE", "SELECT 1; DELETE FROM orders",
    "EXPLAIN DELETE FROM orders", "ANALYZE", "REPLACE INTO orders VALUES (1, 'x', 1, NULL)", "SELECT * FROM orders; --",
)  # fmt: skip


@pytest.mark.parametrize("sql", WRITES)
def test_whatever_a_model_writes_the_database_stays_as_it_is(
    plans: Plans, orders: Path, scratch: Path, sql: str
) -> None:
    before = orders.read_bytes()
    tool = query_tool(plans, orders)
    result = tool.run({"sql": sql})
    if sql != "SELECT * FROM orders; --":
        assert (result["success"], result["error_kind"]) == (False, "sql"), result
    assert orders.read_bytes() == before
    assert sorted(p.name for p in scratch.iterdir() if p.suffix == ".db") == [orders.name]
    assert tool.run({"sql": "SELECT count(*) FROM orders"})["rows"] == [[3]]


@pytest.mark.parametrize("sql", ["DELETE FROM orders", "CREATE TABLE t (x)", "UPDATE orders SET total = 0"])
def test_the_database_itself_is_what_refuses(
    plans: Plans, orders: Path, monkeypatch: pytest.MonkeyPatch, sql: str
) -> None:
    """Without anybody asking for leave, the file is still opened so that SQLite refuses to write."""
    tool = query_tool(plans, orders)
    addresses, connect = [], sqlite3.connect

    def watched(address: str, **options: Any) -> sqlite3.Connection:
        addresses.append(address)
        return connect(address, **options)

    monkeypatch.setattr(tool, "_allow", lambda *_: sqlite3.SQLITE_OK)
    monkeypatch.setattr(tool.sqlite3, "connect", watched)
    assert "readonly database" in tool.run({"sql": sql})["error"]
    assert tool.run({"sql": "PRAGMA query_only"})["rows"] == [[1]]
    # The address alone, without the pragma, refuses too.
    with contextlib.closing(connect(addresses[0], uri=True)) as database, pytest.raises(sqlite3.OperationalError):
        database.execute(sql)


def test_the_tables_of_a_database_can_be_listed(plans: Plans, orders: Path) -> None:
    tool = query_tool(plans, orders)
    assert tool.run({"sql": "SELECT name FROM sqlite_master"})["rows"] == [["orders"]]
    assert len(tool.run({"sql": "PRAGMA table_info(orders)"})["rows"]) == 4
    got = tool.run({"sql": "SELECT id FROM orders WHERE total < :most", "parameters": {"most": 10}})
    assert got["rows"] == [[2]]
    assert "inputs.most" in tool.run({"sql": "SELECT :most", "parameters": {"most": {"a": 1}}})["error"]


def test_rows_and_bytes_are_limited_and_it_says_so(plans: Plans, orders: Path) -> None:
    series = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x, 'text' FROM n"
    few = query_tool(plans, orders, series, limit=3).run({})
    assert ([row[0] for row in few["rows"]], few["row_count"], few["truncated"]) == ([1, 2, 3], 3, True)
    small = query_tool(plans, orders, series, limit=1000, max_bytes=100).run({})
    assert small["truncated"] is True
    assert len(json.dumps(small["rows"])) < 150


def test_a_query_without_end_is_stopped(plans: Plans, orders: Path) -> None:
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
    started = time.monotonic()
    result = query_tool(plans, orders, endless, timeout=0.3).run({})
    assert (result["error_kind"], time.monotonic() - started < 3) == ("timeout", True)
    huge = query_tool(plans, orders, "SELECT length(zeroblob(999000000))").run({})
    assert (huge["success"], "too big" in huge["error"]) == (False, True)


def test_the_database_may_come_from_the_environment(
    plans: Plans, orders: Path, monkeypatch: pytest.MonkeyPatch, scratch: Path
) -> None:
    tool = query_tool(plans, None, "SELECT count(*) FROM sqlite_master")
    assert "ORDER_READER_DATABASE" in tool.run({})["error"]
    monkeypatch.setenv("ORDER_READER_DATABASE", str(orders))
    assert tool.run({})["rows"] == [[1]]
    monkeypatch.setenv("ORDER_READER_DATABASE", "missing.db")
    assert tool.run({})["error_kind"] == "no-database"
    assert not Path("missing.db").exists()
    Path("text.db").write_text("this is no database at all, only a text that is long enough")
    monkeypatch.setenv("ORDER_READER_DATABASE", "text.db")
    assert "not a database" in tool.run({})["error"]


def test_a_database_that_somebody_is_writing_can_be_read(plans: Plans, orders: Path) -> None:
    with contextlib.closing(sqlite3.connect(orders, isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("DELETE FROM orders")
        assert query_tool(plans, orders, "SELECT count(*) FROM orders").run({})["rows"] == [[3]]


# --------------------------------------------------------------------------- what a plan may say


def problems(plans: Plans, does: dict[str, Any], params: dict[str, Any] | None = None) -> list[str]:
    tool: dict[str, Any] = {"does": does, **({"input_params": params} if params is not None else {})}
    return plans.codes(design("order_lookup", tools=[tool]))


@pytest.mark.parametrize(
    ("does", "code"),
    [
        pytest.param({"http": {"url": "https://{host}/x"}}, "plan-http-url", id="a host from the model"),
        pytest.param({"http": {"url": "ftp://a.example/x"}}, "plan-http-url", id="another scheme"),
        pytest.param({"http": {"url": "a.example/x"}}, "plan-http-url", id="no scheme"),
        pytest.param({"http": {"url": "https://me:pw@a.example/x"}}, "plan-http-url", id="a password in the URL"),
        pytest.param({"http": {"url": "https://a.example/x?y={y}"}}, "plan-http-url", id="a query in the URL"),
        pytest.param({"http": {"url": "https://a.example/é"}}, "plan-http-url", id="not ASCII"),
        pytest.param({"http": {"url": "https://a.example:99999/"}}, "plan-http-url", id="no port"),
        pytest.param({"http": {"url": "http://a.example/x"}}, "plan-http-plain", id="no encryption"),
        pytest.param({"http": {"url": "https://a.example/x", "headers": {"A\nB": "x"}}}, "plan-http-header", id="a header with a line break"),
        pytest.param({"http": {"url": "https://a.example/x", "headers": {"Host": "b.example"}}}, "plan-http-header", id="another host"),
        pytest.param({"http": {"url": "https://a.example/x", "headers": {"Authorization": "Bearer x"}}}, "plan-http-secret", id="a secret in the plan"),
        pytest.param({"http": {"url": "https://a.example/x", "secrets": {"X-Key": {"env": "A-B"}}}}, "plan-variable-invalid", id="no variable"),
        pytest.param({"http": {"url": "https://a.example/x", "body": {}}}, "plan-http-body", id="a GET with a body"),
        pytest.param({"command": {"argv": []}}, "plan-command-program", id="no program"),
        pytest.param({"command": {"argv": ["{program}"]}}, "plan-command-program", id="a program from the model"),
        pytest.param({"command": {"argv": ["./run.sh"]}}, "plan-command-program", id="a program of the working directory"),
        pytest.param({"command": {"argv": ["bash", "-c", "ls"]}}, "plan-command-shell", id="a shell"),
        pytest.param({"command": {"argv": ["/usr/bin/env", "ls"]}}, "plan-command-shell", id="a program that runs others"),
        pytest.param({"command": {"argv": ["python3", "-c", "{code}"]}}, "plan-command-shell", id="code from the model"),
        pytest.param({"command": {"argv": ["python3", "-c{code}"]}}, "plan-command-shell", id="code joined to its option"),
        pytest.param({"command": {"argv": ["node", "--eval={code}"]}}, "plan-command-shell", id="code after an equals sign"),
        pytest.param({"command": {"argv": ["ls"], "exit_codes": []}}, "plan-command-exit-codes", id="no exit code"),
        pytest.param({"query": {"database": "postgresql://db/x", "sql": "SELECT 1"}}, "plan-query-database", id="PostgreSQL"),
        pytest.param({"query": {"database": ":memory:", "sql": "SELECT 1"}}, "plan-query-database", id="no file"),
        pytest.param({"query": {"database": "{name}.db", "sql": "SELECT 1"}}, "plan-query-database", id="a database from the model"),
        pytest.param({"query": {"sql": "/* x */ DELETE FROM t"}}, "plan-query-writes", id="a query that writes"),
        pytest.param({"query": {"sql": "SELECT 1; SELECT 2"}}, "plan-query-writes", id="two statements"),
        pytest.param({"query": {"sql": "SELECT ?"}}, "plan-query-parameter", id="a parameter without a name"),
    ],
)  # fmt: skip
def test_a_plan_that_would_let_a_model_choose_where_it_goes_is_refused(
    plans: Plans, does: dict[str, Any], code: str
) -> None:
    assert problems(plans, does) == [code]


def test_a_typo_in_a_tool_is_one_finding_with_a_suggestion(plans: Plans) -> None:
    (finding,) = plans.check(design("order_lookup", tools=[{"does": {"http": {"url": "/x", "methd": "GET"}}}])).findings
    assert (finding.code, finding.fix) == ("document-unknown-key", "did you mean 'method'?")


def test_another_database_is_refused_by_its_name(plans: Plans) -> None:
    tool = {"does": {"query": {"database": "mysql+pymysql://db/x"}}}
    (finding,) = plans.check(design("order_lookup", tools=[tool])).findings
    assert "MySQL databases cannot be queried" in finding.message


def test_places_and_inputs_must_match(plans: Plans) -> None:
    does = {"http": {"url": "https://a.example/{id}", "query": {"q": "{q}"}}}
    schema = {"type": "object", "properties": {"id": {"type": "string"}, "z": {"type": "string"}}}
    codes = problems(plans, does, schema)
    assert sorted(codes) == ["plan-input-unused", "plan-place-optional", "plan-place-unknown"]
    good = {"type": "object", "properties": {"id": {"type": "string", "default": "1"}, "q": {"type": "string"}}}
    assert problems(plans, does, good) == []


def test_patterns_of_inputs_cannot_hang_a_tool(plans: Plans, echo: str) -> None:
    def schema(**text: Any) -> dict[str, Any]:
        words = {"type": "array", "items": {"type": "string", **text}}
        return {"type": "object", "properties": {"word": words}, "required": ["word"]}

    does = {"command": {"argv": ["ls", "{word}"]}}
    assert problems(plans, does, schema(pattern="(a+)+$")) == ["plan-pattern-unsafe"]
    assert problems(plans, does, schema(pattern="^a*$", maxLength=5000)) == ["plan-input-params"]
    tool = command_tool(plans, [echo, "{word}"], schema(pattern="^a*a*a*$"))
    assert tool.run({"word": ["aaa"]})["success"] is True
    started = time.monotonic()
    assert "at most 1024" in tool.run({"word": ["a" * 2000 + "b"]})["error"]
    assert "does not match" in tool.run({"word": ["a" * 1000 + "b"]})["error"]
    assert time.monotonic() - started < 30


def test_derived_inputs_are_the_places(plans: Plans) -> None:
    does = {
        "http": {"method": "POST", "url": "https://a.example/{id}", "query": {"q": "{q}"}, "body": [{"x": "{q} {y}"}]}
    }
    (tool,) = plans.check(design("order_lookup", tools=[{"does": does}])).blueprints[0].tools
    assert tool.input_params["required"] == ["id", "q", "y"]
    assert tool.mutation == "mutating_external"
    sql = "SELECT ':no', \"c:no\", [d:no] FROM t WHERE a = :one AND b > @two AND c = $one -- :no\n/* :no */"
    (tool,) = plans.check(design("order_reader", tools=[{"does": {"query": {"sql": sql}}}])).blueprints[0].tools
    assert (tool.input_params["required"], tool.mutation) == (["one", "two"], "safe_read")


def test_the_environment_is_left_alone(plans: Plans, echo: str) -> None:
    before = dict(os.environ)
    command_tool(plans, [echo]).run({})
    assert dict(os.environ) == before
