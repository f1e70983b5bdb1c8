"""The inputs that artifact tools take: one JSON Schema per format, written for the model that fills them."""

from __future__ import annotations

from typing import Any

__all__ = ["SCHEMAS", "report_schema"]

Schema = dict[str, Any]


def _text(description: str, **more: Any) -> Schema:
    return {"type": "string", "description": description, **more}


def _list(items: Schema, description: str, **more: Any) -> Schema:
    return {"type": "array", "description": description, "items": items, **more}


def _object(properties: dict[str, Schema], required: list[str], **more: Any) -> Schema:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False, **more}


_CELL: Schema = {"type": ["string", "number", "boolean", "null"]}


def _table(description: str) -> Schema:
    return _object(
        {
            "headers": _list({"type": "string"}, "column titles", minItems=1, maxItems=30),
            "rows": _list({"type": "array", "items": _CELL}, "one list of values per row", maxItems=2000),
        },
        ["headers", "rows"],
        description=description,
    )


def _chart(description: str) -> Schema:
    return _object(
        {
            "type": {"type": "string", "enum": ["bar", "line", "pie"], "description": "default: bar"},
            "title": _text("title of the chart"),
            "categories": _list({"type": "string"}, "labels along the axis, or of the slices", minItems=1, maxItems=60),
            "series": _list(
                _object(
                    {
                        "name": _text("name in the legend"),
                        "values": _list({"type": "number"}, "one value per category"),
                    },
                    ["name", "values"],
                ),
                "one entry per line or colour; a pie takes the first",
                minItems=1,
                maxItems=12,
            ),
        },
        ["categories", "series"],
        description=description,
    )


def _target(form: str, *, template: bool = False, style: bool = True) -> dict[str, Schema]:
    """Return the inputs that say where the file goes and how it looks."""
    target: dict[str, Schema] = {
        "output_path": _text(
            f"where to write the file, ending in .{form}; relative to the working directory, and below it"
        ),
        "file_name": _text(f"file name in the working directory, instead of output_path, ending in .{form}"),
        "overwrite": {"type": "boolean", "description": "replace an existing file; default false"},
    }
    if template:
        target["template"] = _text(f"path of a .{form} file to start from")
    if style:
        target["style"] = _object(
            {
                "accent": _text("accent colour as #RRGGBB", pattern="^#[0-9A-Fa-f]{6}$"),
                "font": _text("font family of Latin text"),
                "east_asian_font": _text("font family of Chinese, Japanese and Korean text"),
            },
            [],
            description="how it looks",
        )
    return target


_BULLETS = _list(
    {
        "anyOf": [
            {"type": "string"},
            _object({"text": {"type": "string"}, "level": {"type": "integer", "minimum": 0, "maximum": 4}}, ["text"]),
        ]
    },
    "points, as texts or as {text, level}",
    maxItems=60,
)

_PPTX = _object(
    {
        "title": _text("title on the first slide", minLength=1),
        "subtitle": _text("line under the title: audience, period, date"),
        "author": _text("who made it"),
        "slides": _list(
            _object(
                {
                    "title": _text("title of the slide", minLength=1),
                    "bullets": _BULLETS,
                    "table": _table("a table"),
                    "chart": _chart("a native chart"),
                    "image": _text("path of a PNG, JPEG or GIF file"),
                    "notes": _text("speaker notes"),
                },
                ["title"],
            ),
            "content slides, in order, each with bullets, a table, a chart or an image",
            minItems=1,
            maxItems=200,
        ),
        **_target("pptx", template=True),
    },
    ["title", "slides"],
)

_SECTION: dict[str, Schema] = {
    "heading": _text("heading of the section"),
    "level": {"type": "integer", "minimum": 1, "maximum": 3, "description": "depth of the heading; default 1"},
    "paragraphs": _list({"type": "string"}, "paragraphs of text", maxItems=500),
    "bullets": _list({"type": "string"}, "bulleted list", maxItems=500),
    "numbered": _list({"type": "string"}, "numbered list", maxItems=500),
    "table": _table("a table"),
    "image": _text("path of a PNG or JPEG file"),
}
_CODE = _object(
    {
        "text": _text("the code as it is"),
        "language": _text("its language, such as python", pattern="^[A-Za-z0-9+#._-]{0,30}$"),
    },
    ["text"],
    description="a block of code",
)


def _prose(form: str, *, template: bool, style: bool = True, **more: Schema) -> Schema:
    """Return the inputs of a document; `more` are further parts of a section."""
    sections = _list(_object({**_SECTION, **more}, []), "sections, in order", minItems=1, maxItems=500)
    return _object(
        {
            "title": _text("title of the document", minLength=1),
            "subtitle": _text("line under the title"),
            "author": _text("who wrote it"),
            "sections": sections,
            **_target(form, template=template, style=style),
        },
        ["title", "sections"],
    )


_XLSX = _object(
    {
        "title": _text("title in the file's properties", minLength=1),
        "sheets": _list(
            _object(
                {
                    "name": _text("name of the sheet", minLength=1, maxLength=31, pattern="^[^:\\\\/?*\\[\\]]+$"),
                    "headers": _list({"type": "string"}, "column titles", minItems=1, maxItems=500),
                    "rows": _list(
                        {
                            "type": "array",
                            "items": {
                                "anyOf": [
                                    _CELL,
                                    _object(
                                        {
                                            "formula": _text(
                                                "an Excel formula such as =SUM(B2:B5)", pattern="^=", maxLength=8192
                                            )
                                        },
                                        ["formula"],
                                    ),
                                ]
                            },
                        },
                        "values in order of the columns; a formula is given as {formula: ...}",
                        maxItems=100_000,
                    ),
                    "formats": {
                        "type": "object",
                        "description": "column title: Excel number format, such as #,##0.00 or 0.0%",
                        "additionalProperties": {"type": "string"},
                    },
                    "totals": _list({"type": "string"}, "column titles to add up in a last row"),
                    "chart": _object(
                        {
                            "type": {"type": "string", "enum": ["bar", "line", "pie"]},
                            "title": _text("title of the chart"),
                            "labels": _text("column title of the labels"),
                            "values": _list({"type": "string"}, "column titles of the values", minItems=1),
                        },
                        ["labels", "values"],
                        description="a native chart of this sheet's columns",
                    ),
                },
                ["name", "headers", "rows"],
            ),
            "sheets, in order",
            minItems=1,
            maxItems=100,
        ),
        **_target("xlsx", template=True),
    },
    ["title", "sheets"],
)

_JSON = _object(
    {
        "data": {"description": "the value to write: an object or a list", "type": ["object", "array"]},
        **_target("json", style=False),
    },
    ["data"],
)

_DIAGRAM = _object(
    {
        "boxes": _list(
            _object({"id": _text("short name"), "label": _text("text in the box")}, ["id", "label"]),
            "boxes",
            minItems=1,
            maxItems=60,
        ),
        "arrows": _list(
            _object(
                {"from": _text("id of a box"), "to": _text("id of a box"), "label": _text("text at the arrow")},
                ["from", "to"],
            ),
            "arrows between boxes",
            maxItems=200,
        ),
    },
    ["boxes"],
    description="draw boxes and arrows",
)


def _picture(form: str, sizes: tuple[str, str]) -> Schema:
    names = zip(("width", "height"), sizes, strict=True)
    pixels = {
        name: {"type": "integer", "minimum": 200, "maximum": 4000, "description": f"pixels; default {size}"}
        for name, size in names
    }
    return _object(
        {
            "title": _text("title over the picture"),
            "chart": _chart("draw a chart"),
            "diagram": _DIAGRAM,
            "table": _table("draw a table"),
            **pixels,
            **_target(form),
        },
        [],
    )


_CSV = _object(
    {
        "headers": _list({"type": "string"}, "column titles, each once", minItems=1, maxItems=500),
        "rows": _list({"type": "array", "items": _CELL}, "one list of values per row", maxItems=100_000),
        "delimiter": {"type": "string", "enum": [",", ";", "\t", "|"], "description": "default: a comma"},
        "byte_order_mark": {
            "type": "boolean",
            "description": "begin with one, as older Excel needs for Chinese; default false",
        },
        "keep_formulas": {
            "type": "boolean",
            "description": "write texts such as =A1+B1 as they are; by default an apostrophe keeps spreadsheets "
            "from running them",
        },
        **_target("csv", style=False),
    },
    ["headers", "rows"],
)

_HTML = _prose("html", template=False, code=_CODE, chart=_chart("a chart"), diagram=_DIAGRAM)
_HTML["properties"]["language"] = _text("language of the page: en, zh", pattern="^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$")

SCHEMAS: dict[str, Schema] = {
    "pptx": _PPTX,
    "docx": _prose("docx", template=True),
    "xlsx": _XLSX,
    "pdf": _prose("pdf", template=False),
    "json": _JSON,
    "png": _picture("png", ("1200", "750")),
    "svg": _picture("svg", ("what the figure needs", "what the figure needs")),
    "csv": _CSV,
    "md": _prose("md", template=False, style=False, code=_CODE),
    "html": _HTML,
}


def report_schema() -> Schema:
    """Return the inputs of a report tool."""
    return _object(
        {
            "detail": {
                "type": "string",
                "enum": ["summary", "full"],
                "description": "summary (default), or full with every recorded entry",
            }
        },
        [],
    )
