"""Tools that reach outside: a JSON API, a program, a database.  What their specs must be, and what follows from them.

Everything that decides where a call goes (host, program, database file) is fixed by the plan or the environment; the
inputs of the tool, which a model writes, only ever fill places.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from extforge.rules import problem
from extforge_harness.documents import suggest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from extforge.plan import CommandSpec, HttpSpec, QuerySpec, ToolSpec
    from extforge.reading import Entry
    from extforge_verifiers.findings import Finding

__all__ = ["SHELLS", "check_external", "derived_params", "external_options"]

_PLACE = re.compile(r"\{\{|\}\}|\{([a-z_][a-z0-9_]*)\}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}")  # RFC 9110 §5.6.2 token
SHELLS = frozenset(("sh bash dash zsh ksh csh tcsh fish cmd command powershell pwsh env xargs sudo su busybox").split())
_CODE_OPTIONS = frozenset(("-c", "-e", "-E", "-r", "--eval", "--execute", "--command", "-Command", "-exec"))
# What a SQL text has besides parameters: strings, quoted names, comments.
_SQL_TOKEN = re.compile(
    r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`]*`|\[[^\]]*\]|--[^\n]*|/\*.*?\*/|[:@$]\w+|\?\d*|;", re.DOTALL
)
_READS = re.compile(r"(select|with|values|explain)\b", re.IGNORECASE)
_OTHER_DATABASES = {
    "postgres": "PostgreSQL", "postgresql": "PostgreSQL", "mysql": "MySQL", "mariadb": "MariaDB", "mssql": "SQL Server",
    "sqlserver": "SQL Server", "oracle": "Oracle", "mongodb": "MongoDB", "redis": "Redis", "duckdb": "DuckDB",
    "snowflake": "Snowflake", "clickhouse": "ClickHouse", "jdbc": "JDBC", "odbc": "ODBC",
}  # fmt: skip
_At = tuple[str | int, ...]


def places(value: Any) -> list[str]:
    """Return the names of the places in a template: a text, or JSON with texts in it; each once, in order."""
    if isinstance(value, str):
        return list(dict.fromkeys(match[1] for match in _PLACE.finditer(value) if match[1]))
    items = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return list(dict.fromkeys(name for item in items for name in places(item)))


def derived_params(does: str, spec: Any) -> dict[str, Any]:
    """Return the inputs of a tool whose plan does not spell them out: a text for each place."""
    if does == "query" and spec.sql is None:
        return {
            "type": "object",
            "properties": {
                "sql": {
                    "type": "string",
                    "description": "one SELECT statement for SQLite, with :name for values; "
                    "sqlite_master lists the tables",
                },
                "parameters": {"type": "object", "description": "the values, name: text, number, boolean or null"},
            },
            "required": ["sql"],
            "additionalProperties": False,
        }
    kind: dict[str, Any] = {"type": "string", "maxLength": 2000}
    if does == "query":
        kind = {"type": ["string", "number", "boolean", "null"]}
    names = _needed(does, spec)
    properties = {name: {**kind, "description": name.replace("_", " ")} for name in names}
    return {"type": "object", "properties": properties, "required": names, "additionalProperties": False}


def _needed(does: str, spec: Any) -> list[str]:
    match does:
        case "http":
            return places([spec.url, spec.query, spec.body])
        case "command":
            return places([*spec.argv, spec.stdin])
        case _:
            return _parameters(spec.sql or "")


def _parameters(sql: str) -> list[str]:
    return list(dict.fromkeys(token[1:] for token in _SQL_TOKEN.findall(sql) if token[0] in ":@$"))


def external_options(does: str, name: str, plain: dict[str, Any]) -> dict[str, Any]:
    """Return the options that stand beside the generated code, with the names of its environment variables."""
    options = dict(plain)
    if does == "http":
        url = urlsplit(options.pop("url"))
        options["base_url"] = f"{url.scheme}://{url.netloc}" if url.scheme else ""
        options["path"] = url.path
        options.setdefault("base_url_env", f"{name.upper()}_BASE_URL")
    elif does == "query":
        options.setdefault("database_env", f"{name.upper()}_DATABASE")
    return options


def check_external(entry: Entry, tool: ToolSpec, does: str, spec: Any, at: _At) -> Iterator[Finding]:
    """Yield what is wrong with an http, command or query tool; `at` is the tool's place in the design."""
    here = (*at, "does", does)
    if does == "http":
        yield from _check_http(entry, spec, here)
    elif does == "command":
        yield from _check_command(entry, spec, here)
    else:
        yield from _check_query(entry, spec, here)
    yield from _check_inputs(entry, tool, does, spec, at)


def _check_inputs(entry: Entry, tool: ToolSpec, does: str, spec: Any, at: _At) -> Iterator[Finding]:
    """Every place needs an input, and every input that the plan spells out a place."""
    if tool.input_params is None:
        return
    properties = tool.input_params.get("properties", {})
    if not isinstance(properties, dict):
        return  # reported with the schema
    free = does == "query" and spec.sql is None
    needed = ["sql"] if free else _needed(does, spec)
    must = _needed("http", spec.model_copy(update={"query": {}, "body": None})) if does == "http" else needed
    for name in needed:
        if name not in properties:
            fix = suggest(name, sorted(properties)) or f"add it to the properties of {tool.name or 'the tool'}"
            words = f"{does} needs the input {name!r}, and input_params does not have it"
            yield problem(entry, "plan-place-unknown", words, *at, "input_params", fix=fix)
        elif name in must and name not in tool.input_params.get("required", []):
            known = isinstance(properties[name], dict) and "default" in properties[name]
            if not known:
                words = f"{does} cannot do without the input {name!r}, which is neither required nor has a default"
                yield problem(entry, "plan-place-optional", words, *at, "input_params", "properties", name, key=True)
    for name in properties:
        if name not in needed and not (free and name == "parameters"):
            words = f"{does} does nothing with the input {name!r}"
            yield problem(
                entry, "plan-input-unused", words, *at, "input_params", "properties", name, warn=True, key=True
            )


def _check_variable(entry: Entry, name: str | None, at: _At) -> Iterator[Finding]:
    if name is not None and not _VARIABLE.fullmatch(name):
        words = f"{name!r} is not the name of an environment variable"
        yield problem(entry, "plan-variable-invalid", words, *at)


def _check_http(entry: Entry, spec: HttpSpec, here: _At) -> Iterator[Finding]:
    yield from _check_url(entry, spec, here)
    yield from _check_variable(entry, spec.base_url_env, (*here, "base_url_env"))
    for header, value in spec.headers.items():
        if not _HEADER.fullmatch(header) or not (value.isascii() and value.isprintable()):
            words = f"{header!r}: {value!r:.60} cannot be sent as a header"
            yield problem(entry, "plan-http-header", words, *here, "headers", header, key=True)
        elif header.lower() in ("host", "content-length", "transfer-encoding", "connection", "accept-encoding"):
            words = f"the header {header!r} is the connection's own"
            yield problem(entry, "plan-http-header", words, *here, "headers", header, fix="leave it out", key=True)
        elif header.lower() in ("authorization", "cookie", "x-api-key", "proxy-authorization"):
            words = f"the header {header!r} would carry a secret in plain text"
            fix = f"secrets: {{{header}: {{env: NAME_OF_A_VARIABLE}}}}"
            yield problem(entry, "plan-http-secret", words, *here, "headers", header, fix=fix, key=True)
    for header, secret in spec.secrets.items():
        if not _HEADER.fullmatch(header) or not (secret.prefix.isascii() and secret.prefix.isprintable()):
            words = f"{header!r} with the prefix {secret.prefix!r:.40} cannot be sent as a header"
            yield problem(entry, "plan-http-header", words, *here, "secrets", header, key=True)
        yield from _check_variable(entry, secret.env, (*here, "secrets", header, "env"))
    if spec.body is not None and spec.method == "GET":
        yield problem(entry, "plan-http-body", "a GET has no body", *here, "body", fix="use query", key=True)


def _check_url(entry: Entry, spec: HttpSpec, here: _At) -> Iterator[Finding]:
    at = (*here, "url")
    try:
        url = urlsplit(spec.url)
        port = url.port
    except ValueError as exc:
        yield problem(entry, "plan-http-url", f"{spec.url!r:.80} is not a URL: {exc}", *at)
        return
    del port
    reason = ""
    if url.scheme and (url.scheme not in ("http", "https") or not url.hostname):
        reason = "must begin with https:// or http:// and a host"
    elif not url.scheme and not spec.url.startswith("/"):
        reason = "must begin with https://, or with / when the host comes from the environment"
    elif places(url.netloc):
        reason = "has a place in its host; a model must not choose where a call goes"
    elif url.username or url.password:
        reason = "carries a user name; put secrets into `secrets`"
    elif url.query or url.fragment:
        reason = "has a query or a fragment; write the query under `query`"
    elif not spec.url.isascii() or re.search(r"\s|\\", spec.url):
        reason = "has characters that a URL does not; write them as %XX"
    if reason:
        yield problem(entry, "plan-http-url", f"{spec.url!r:.80} {reason}", *at)
    elif url.scheme == "http" and not spec.allow_private:
        words = f"{url.hostname} is called without encryption"
        yield problem(entry, "plan-http-plain", words, *at, fix="use https", warn=True)


def _check_command(entry: Entry, spec: CommandSpec, here: _At) -> Iterator[Finding]:
    at = (*here, "argv")
    if not spec.argv or not spec.argv[0].strip():
        yield problem(entry, "plan-command-program", "argv names no program", *at)
        return
    program = spec.argv[0]
    name = re.split(r"[/\\]", program)[-1].lower().removesuffix(".exe")
    if places(program):
        words = f"the program {program!r} depends on an input; a model must not choose what runs"
        yield problem(entry, "plan-command-program", words, *at, 0, fix="name one program")
    elif ("/" in program or "\\" in program) and not re.match(r"/|[A-Za-z]:[\\/]", program):
        words = f"{program!r} is found from the working directory, which anybody may write to"
        yield problem(entry, "plan-command-program", words, *at, 0, fix="write its bare name, or its absolute path")
    elif name in SHELLS:
        words = f"{name} runs what it is given as a program; that is a shell"
        yield problem(entry, "plan-command-shell", words, *at, 0, fix="name the program itself")
    for index, item in enumerate(spec.argv[1:], 1):
        options = _CODE_OPTIONS & {spec.argv[index - 1], item.partition("{")[0].removesuffix("=")}  # and --eval={code}
        if places(item) and options:
            words = f"the input would be run as code after {min(options)}"
            yield problem(entry, "plan-command-shell", words, *at, index, fix="pass it as an argument of a script")
    for index, variable in enumerate(spec.environment):
        yield from _check_variable(entry, variable, (*here, "environment", index))
    if not spec.exit_codes:
        yield problem(entry, "plan-command-exit-codes", "no exit code would be a success", *here, "exit_codes")


def _check_query(entry: Entry, spec: QuerySpec, here: _At) -> Iterator[Finding]:
    database = spec.database or ""
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]+):", database)
    kind = scheme[1].lower().partition("+")[0] if scheme else ""
    if kind and kind not in ("sqlite", "file"):
        name = _OTHER_DATABASES.get(kind, kind)
        words = f"{name} databases cannot be queried; only SQLite files can"
        fix = "write the tool by hand: does: custom"
        yield problem(entry, "plan-query-database", words, *here, "database", fix=fix)
    elif kind or database == ":memory:" or places(database):
        words = f"{database!r:.60} is not the path of a file"
        fix = "write a path such as data/orders.db"
        yield problem(entry, "plan-query-database", words, *here, "database", fix=fix)
    yield from _check_variable(entry, spec.database_env, (*here, "database_env"))
    if spec.sql is None:
        return
    tokens = _SQL_TOKEN.findall(spec.sql)
    bare = re.sub(r"--[^\n]*|/\*.*?\*/", " ", spec.sql, flags=re.DOTALL).strip()
    if not _READS.match(bare):
        words = f"{bare[:40]!r} does not read; a query begins with SELECT or WITH"
        yield problem(entry, "plan-query-writes", words, *here, "sql")
    if (";" in tokens and not bare.endswith(";")) or tokens.count(";") > 1:
        yield problem(entry, "plan-query-writes", "it has more than one statement", *here, "sql")
    if any(token.startswith("?") for token in tokens):
        words = "it has a parameter without a name"
        yield problem(entry, "plan-query-parameter", words, *here, "sql", fix="write :name instead of ?")
