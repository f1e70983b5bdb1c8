"""Python source of an extension, read as a syntax tree: never imported, never run.

Everything here was measured on openJiuwen 0.1.14 to 0.1.19: what refuses to load, what loads and then fails at the
first call, and what loads and never does anything.
"""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from extforge_verifiers.findings import Finding, Severity, Where
from extforge_verifiers.hostnames import FAILURES, HOOKS

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "Source",
    "SourceError",
    "check_init",
    "check_rail",
    "check_source",
    "check_tool",
    "parse_source",
    "read_card",
]

SIZE_LIMIT = 2 << 20
HOST_PACKAGE = "openjiuwen"
TOOL_BASES = frozenset(("Tool", "LocalFunction"))
RAIL_BASES = frozenset(("DeepAgentRail", "AgentRail"))
_HOOK_PREFIXES = ("before_", "after_", "on_")
# Names that openJiuwen's own implement_ext skill recommends, and that never fire.
_MISTAKEN = {"on_before_call": "before_tool_call", "on_after_call": "after_tool_call"}


class SourceError(Exception):
    """The source cannot be parsed."""

    def __init__(self, message: str, line: int | None) -> None:
        super().__init__(message, line)
        self.message, self.line = message, line


@dataclass(slots=True)
class Source:
    """One module of an extension."""

    path: str
    module: (
        str  # dotted, below the extension: "tools.deck_tool"; "" is its root package
    )
    tree: ast.Module
    classes: dict[str, ast.ClassDef]
    constants: dict[str, ast.expr]
    imports: dict[str, str]  # local name -> dotted origin
    statements: list[
        tuple[ast.Import | ast.ImportFrom, bool]
    ]  # and whether it runs on import
    late_calls: list[ast.Call]  # that do not run on import

    def where(self, node: ast.AST | None = None) -> Where:
        """Return the place of a node."""
        line = getattr(node, "lineno", None)
        column = getattr(node, "col_offset", None)
        return Where(
            self.path, line=line, column=column + 1 if column is not None else None
        )


def parse_source(data: bytes, path: str, module: str) -> Source:
    """Return a module's syntax tree and its names; raise SourceError when it does not compile."""
    if len(data) > SIZE_LIMIT:
        raise SourceError(f"larger than {SIZE_LIMIT:,} bytes", None)
    return Source(path, module, *_parse(data))


@lru_cache(maxsize=64)  # the extensions of a plan share most of their modules
def _parse(
    data: bytes,
) -> tuple[
    ast.Module,
    dict[str, ast.ClassDef],
    dict[str, ast.expr],
    dict[str, str],
    list[tuple[ast.Import | ast.ImportFrom, bool]],
    list[ast.Call],
]:
    try:
        tree = ast.parse(data)
    except (SyntaxError, ValueError) as exc:
        raise SourceError(
            f"does not compile: {exc.args[0]}", getattr(exc, "lineno", None)
        ) from exc
    except (RecursionError, MemoryError) as exc:
        raise SourceError("is nested too deeply to be read", None) from exc
    classes: dict[str, ast.ClassDef] = {}
    constants: dict[str, ast.expr] = {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            classes[node.name] = node
        elif (
            isinstance(node, ast.Assign)
            and len(node.targets) == 1
            and isinstance(node.targets[0], ast.Name)
        ):
            constants[node.targets[0].id] = node.value
        elif (
            isinstance(node, ast.AnnAssign)
            and isinstance(node.target, ast.Name)
            and node.value is not None
        ):
            constants[node.target.id] = node.value
    top_level = {id(node) for node in _top_level(tree.body)}
    imports: list[tuple[ast.Import | ast.ImportFrom, bool]] = []
    late_calls: list[ast.Call] = []
    for found in ast.walk(tree):
        if isinstance(found, (ast.Import, ast.ImportFrom)):
            imports.append((found, id(found) in top_level))
        elif isinstance(found, ast.Call) and id(found) not in top_level:
            late_calls.append(found)
    names = dict(name for node, _ in imports for name in _imported(node))
    return tree, classes, constants, names, imports, late_calls


def _imported(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
    """Yield (local name, where it comes from) for every name that is imported."""
    if isinstance(node, ast.ImportFrom):
        origin = "." * node.level + (node.module or "")
        for alias in node.names:
            yield alias.asname or alias.name, f"{origin}:{alias.name}"
    else:
        for alias in node.names:
            yield alias.asname or alias.name.split(".", maxsplit=1)[0], alias.name


def _error(
    source: Source, code: str, message: str, node: ast.AST, fix: str | None = None
) -> Finding:
    where = source.where(node)
    return Finding(code, message, where=where, fix=fix, failure_id=FAILURES[code])


def check_init(source: Source) -> Iterator[Finding]:
    """`__init__.py` must not import: a re-export passes the host's own check and breaks its loader."""
    for node in source.tree.body:
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            continue
        words = "__init__.py has statements; a re-export here breaks the loader when the module imports its siblings"
        yield _error(source, "extension-init-code", words, node, "leave the file empty")
        return


def check_source(source: Source, prefix: str, declared: set[str]) -> Iterator[Finding]:
    """Yield what is wrong with any module: own modules imported too late, packages that nobody declares.

    Args:
        source: the module.
        prefix: the extension's package, such as `openjiuwen.extensions.harness.deck`.
        declared: import names of the packages in requirements.txt.
    """
    undeclared: dict[str, ast.AST] = {}
    for statement, at_top in source.statements:
        own = _is_own(statement, prefix)
        if own and not at_top:
            words = "imports a module of its own inside a function; the host drops them from sys.modules after loading, so the call fails"
            yield _error(
                source,
                "extension-lazy-import",
                words,
                statement,
                "import it at the top of the file",
            )
        elif not own:
            roots = _roots(statement) - declared
            undeclared.update(dict.fromkeys(roots, statement))
    for call in source.late_calls:
        yield from _check_dynamic(source, call, prefix)
    for root, node in sorted(undeclared.items()):
        words = f"imports {root!r}, which requirements.txt does not name"
        yield Finding(
            "extension-requirement-missing",
            words,
            Severity.WARNING,
            source.where(node),
            "add it to requirements.txt",
        )


def _top_level(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """Yield the nodes that run when the module is imported."""
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        if isinstance(node, ast.ClassDef):
            yield from _top_level(
                [
                    s
                    for s in node.body
                    if not isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef))
                ]
            )
            continue
        yield from ast.walk(node)


def _is_own(node: ast.Import | ast.ImportFrom, prefix: str) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.level > 0 or f"{node.module}.".startswith(f"{prefix}.")
    return any(f"{alias.name}.".startswith(f"{prefix}.") for alias in node.names)


def _roots(node: ast.Import | ast.ImportFrom) -> set[str]:
    names = (
        [alias.name for alias in node.names]
        if isinstance(node, ast.Import)
        else [node.module or ""]
    )
    roots = {name.split(".")[0] for name in names}
    return {
        root
        for root in roots
        if root and root not in sys.stdlib_module_names and root != HOST_PACKAGE
    }


def _check_dynamic(source: Source, node: ast.Call, prefix: str) -> Iterator[Finding]:
    """`importlib.resources.files(__package__)` and the like fail once the modules are gone."""
    func = node.func
    name = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
    if name not in (
        "files",
        "import_module",
        "open_text",
        "read_text",
        "open_binary",
        "read_binary",
    ):
        return
    if not node.args:
        return
    argument = ast.unparse(node.args[0])
    if argument in ("__package__", "__name__") or argument.strip("'\"").startswith(
        prefix
    ):
        words = f"{name}({argument}) inside a function fails in the host: the extension's modules are gone by then"
        fix = "use Path(__file__) for files, and imports at the top for modules"
        yield _error(source, "extension-lazy-import", words, node, fix)


# --------------------------------------------------------------------------- classes


def _methods(
    source: Source, cls: ast.ClassDef
) -> dict[str, ast.FunctionDef | ast.AsyncFunctionDef]:
    """Return the methods of a class and of its bases in the same module."""
    found: dict[str, ast.FunctionDef | ast.AsyncFunctionDef] = {}
    for base in cls.bases:
        if (
            isinstance(base, ast.Name)
            and base.id in source.classes
            and source.classes[base.id] is not cls
        ):
            found.update(_methods(source, source.classes[base.id]))
    for node in cls.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found[node.name] = node
    return found


def _check_base(
    source: Source, cls: ast.ClassDef, bases: frozenset[str], what: str
) -> Iterator[Finding]:
    """Yield an error when no base can be the host's; a base from elsewhere in the tree is left to the host."""
    names = [ast.unparse(base).rpartition(".")[2] for base in cls.bases]
    known = any(
        name in bases or name in source.classes or name in source.imports
        for name in names
    )
    dotted = any("." in ast.unparse(base) for base in cls.bases)
    imported = [source.imports.get(name, "") for name in names]
    foreign = names and all(
        origin and not origin.startswith((".", HOST_PACKAGE)) for origin in imported
    )
    if (not known and not dotted) or foreign:
        words = (
            f"{cls.name} is not a {what}: its bases are {', '.join(names) or 'none'}"
        )
        fix = f"derive it from {'openjiuwen.core.foundation.tool.Tool' if what == 'tool' else 'openjiuwen.harness.rails.base.DeepAgentRail'}"
        yield _error(source, f"extension-not-a-{what}", words, cls, fix)


def _check_constructor(source: Source, cls: ast.ClassDef) -> Iterator[Finding]:
    method = _methods(source, cls).get("__init__")
    if method is None:
        return
    arguments = method.args
    positional = arguments.posonlyargs + arguments.args
    required = positional[1 : len(positional) - len(arguments.defaults)]
    required += [
        a
        for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if d is None
    ]
    if required:
        names = ", ".join(a.arg for a in required)
        words = f"{cls.name}() needs arguments ({names}); the host gives none"
        yield _error(
            source, "extension-constructor", words, method, "give them defaults"
        )


def check_tool(source: Source, cls: ast.ClassDef) -> Iterator[Finding]:
    """Yield what is wrong with a tool class."""
    yield from _check_base(source, cls, TOOL_BASES, "tool")
    yield from _check_constructor(source, cls)
    methods = _methods(source, cls)
    inherits = any(
        ast.unparse(b).rpartition(".")[2] not in (*TOOL_BASES, *source.classes)
        for b in cls.bases
    )
    for name in ("invoke", "stream"):
        if name in methods:
            if not isinstance(methods[name], ast.AsyncFunctionDef):
                words = f"{cls.name}.{name} must be async"
                yield _error(source, "extension-tool-method", words, methods[name])
        elif not inherits:
            words = f"{cls.name} has no {name}; both invoke and stream are abstract in the host"
            fix = f"define async def {name}"
            error = _error(source, "extension-tool-method", words, cls, fix)
            yield replace(error, failure_id="class_init_failed")
    yield from _check_card(source, cls)


def _card_calls(source: Source, cls: ast.ClassDef) -> list[ast.Call]:
    """Return the calls that make the ToolCard: in the class, else anywhere in its module."""
    for place in (cls, source.tree):
        calls = [
            n
            for n in ast.walk(place)
            if isinstance(n, ast.Call)
            and ast.unparse(n.func).rpartition(".")[2] == "ToolCard"
        ]
        if calls:
            return calls
    return []


def read_card(source: Source, cls: ast.ClassDef) -> dict[str, Any]:
    """Return what a tool's ToolCard says, as far as it is written down.

    A literal is its value; a name that the module imports is the `(module, name)` it comes from; what is computed
    is left out.
    """
    found: dict[str, Any] = {}
    for call in _card_calls(source, cls)[:1]:
        for keyword in call.keywords:
            node = keyword.value
            value = _literal(source, node)
            if value is not _UNKNOWN and keyword.arg:
                found[keyword.arg] = value
            elif isinstance(node, ast.Name) and keyword.arg:
                origin, _, name = source.imports.get(node.id, "").partition(":")
                if name:
                    found[keyword.arg] = (origin, name)
    return found


def _check_card(source: Source, cls: ast.ClassDef) -> Iterator[Finding]:
    calls = _card_calls(source, cls)
    if not calls:
        return  # the card comes from elsewhere; the host run will show it
    keywords = {k.arg: k.value for k in calls[0].keywords if k.arg}
    if any(k.arg is None for k in calls[0].keywords):
        return
    for name in ("id", "name"):
        value = _literal(source, keywords.get(name))
        if name not in keywords or value == "":
            words = f"the ToolCard of {cls.name} has no explicit {name}"
            yield _error(
                source, "extension-tool-card", words, calls[0], f"pass {name}="
            )
    value = _literal(source, keywords.get("input_params"))
    if "input_params" not in keywords or value == {}:
        words = f"the ToolCard of {cls.name} has no input_params; model APIs refuse a tool without a schema"
        yield _error(
            source,
            "extension-tool-schema",
            words,
            calls[0],
            'pass {"type": "object", "properties": {...}}',
        )
    elif value is not _UNKNOWN and not _is_object_schema(value):
        words = f"the input_params of {cls.name} are not a JSON Schema with type: object and properties"
        yield _error(source, "extension-tool-schema", words, calls[0])


_UNKNOWN = object()


def _literal(source: Source, node: ast.expr | None) -> Any:
    """Return the value of a literal, following one name of the module; _UNKNOWN when it is computed."""
    if isinstance(node, ast.Name):
        node = source.constants.get(node.id)
    if node is None:
        return _UNKNOWN
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return _UNKNOWN


def _is_object_schema(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and value.get("type") == "object"
        and isinstance(value.get("properties", {}), dict)
    )


def check_rail(source: Source, cls: ast.ClassDef) -> Iterator[Finding]:
    """Yield what is wrong with a rail class."""
    yield from _check_base(source, cls, RAIL_BASES, "rail")
    yield from _check_constructor(source, cls)
    methods = _methods(source, cls)
    hooks = {
        name: node for name, node in methods.items() if name.startswith(_HOOK_PREFIXES)
    }
    for name, node in hooks.items():
        if name not in HOOKS:
            mistaken = _MISTAKEN.get(name)
            words = (
                f"{cls.name}.{name} is not a hook of the host; it loads and never fires"
            )
            fix = (
                f"name it {mistaken}"
                if mistaken
                else f"hooks: {', '.join(sorted(HOOKS))}"
            )
            yield _error(source, "extension-hook-unknown", words, node, fix)
        elif not isinstance(node, ast.AsyncFunctionDef):
            words = f"{cls.name}.{name} must be async; the host awaits it"
            yield _error(source, "extension-hook-sync", words, node)
    inherits = any(
        ast.unparse(b).rpartition(".")[2] not in (*RAIL_BASES, *source.classes)
        for b in cls.bases
    )
    if not hooks and not inherits:
        words = f"{cls.name} has no hook, so it never does anything"
        yield _error(source, "extension-rail-idle", words, cls)
    guard = hooks.get("before_tool_call")
    if guard is not None:
        yield from _check_raises(source, cls, guard)


def _check_raises(
    source: Source, cls: ast.ClassDef, guard: ast.AST
) -> Iterator[Finding]:
    """The host swallows an ordinary exception of a hook, and the tool runs: a guard that fails open."""
    for node in _unguarded_raises(guard.body):  # type: ignore[attr-defined]
        if node.exc is None:
            continue
        name = ast.unparse(
            node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        ).rpartition(".")[2]
        if name != "AbortError":
            words = f"{cls.name}.before_tool_call raises {name}; the host swallows it and the tool runs"
            fix = "raise AbortError (openjiuwen.core.runner.callback.errors)"
            yield _error(source, "extension-guard-open", words, node, fix)


def _unguarded_raises(body: list[ast.stmt]) -> Iterator[ast.Raise]:
    """Yield the raise statements that no handler of Exception in the same function catches."""
    for node in body:
        if isinstance(node, ast.Raise):
            yield node
        elif isinstance(node, ast.Try):
            broad = any(
                handler.type is None
                or ast.unparse(handler.type) in ("Exception", "BaseException")
                for handler in node.handlers
            )
            if not broad:
                yield from _unguarded_raises(node.body)
            for handler in node.handlers:
                yield from _unguarded_raises(handler.body)
            yield from _unguarded_raises(node.orelse + node.finalbody)
        elif isinstance(node, (ast.If, ast.For, ast.AsyncFor, ast.While)):
            yield from _unguarded_raises(node.body + node.orelse)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            yield from _unguarded_raises(node.body)
