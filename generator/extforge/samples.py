"""Inputs to try a tool with: small, real content that uses every part of a format's schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from extforge.patterns import example

if TYPE_CHECKING:
    from extforge.derive import Tool

__all__ = ["sample_inputs", "sample_values"]

_TABLE: dict[str, Any] = {
    "headers": ["Region", "Q2", "Q3", "Growth"],
    "rows": [
        ["华东 East", 1280, 1416, "10.6%"],
        ["华北 North", 960, 1008, "5.0%"],
        ["华南 South", 1120, 1299, "16.0%"],
        ["海外 Abroad", 430, 551, "28.1%"],
    ],
}
_CHART = {
    "type": "bar",
    "title": "Revenue by region (CNY 10,000)",
    "categories": ["华东", "华北", "华南", "海外"],
    "series": [{"name": "Q2", "values": [1280, 960, 1120, 430]}, {"name": "Q3", "values": [1416, 1008, 1299, 551]}],
}
_DIAGRAM = {
    "boxes": [
        {"id": "ask", "label": "Order 下单"},
        {"id": "check", "label": "Check stock 查库存"},
        {"id": "ship", "label": "Ship 发货"},
        {"id": "wait", "label": "Back order 补货"},
    ],
    "arrows": [
        {"from": "ask", "to": "check"},
        {"from": "check", "to": "ship", "label": "in stock"},
        {"from": "check", "to": "wait", "label": "none left"},
        {"from": "wait", "to": "check", "label": "arrived"},
    ],
}


def sample_inputs(tool: Tool, file_name: str, goal: str) -> dict[str, Any]:
    """Return inputs that the tool must accept, and turn into a file called `file_name`.

    A tool whose schema the plan narrowed gets only the inputs it takes.
    """
    title = " ".join(goal.split())[:80] or "Sample"
    inputs = {**_CONTENT[tool.format](title, tool.options), "output_path": file_name}
    known = tool.input_params.get("properties", {})
    return {key: value for key, value in inputs.items() if key in known}


def _pptx(title: str, options: dict[str, Any]) -> dict[str, Any]:
    slides: list[dict[str, Any]] = [
        {
            "title": "Highlights 要点",
            "bullets": [
                "Revenue grew 12.8% over the quarter 收入环比增长",
                {"text": "South and Abroad lead 华南与海外领先", "level": 1},
                "Costs stayed flat while headcount grew by three",
                "Two large renewals close in October 十月续约",
            ],
            "notes": "Start with the growth figure, then the renewals.",
        },
        {"title": "Revenue by region 区域收入", "chart": _CHART},
        {"title": "Figures 数据明细", "bullets": ["All regions grew", "Abroad from a small base"], "table": _TABLE},
    ]
    wanted = int(options.get("minimum", {}).get("slides", 0))
    slides += [{"title": f"Appendix {n}", "bullets": ["Further detail"]} for n in range(1, wanted - len(slides))]
    return {"title": title, "subtitle": "Third quarter 第三季度", "slides": slides}


def _prose(title: str, options: dict[str, Any]) -> dict[str, Any]:
    del options
    return {
        "title": title,
        "subtitle": "Third quarter 第三季度",
        "sections": [
            {
                "heading": "Summary 摘要",
                "paragraphs": [
                    "Revenue grew by 12.8% over the previous quarter, led by the South and by customers abroad.",
                    "本季度收入环比增长百分之十二点八，华南与海外客户贡献最大。",
                ],
                "bullets": ["All regions grew", "Costs stayed flat 成本持平"],
            },
            {"heading": "Figures 数据", "level": 2, "table": _TABLE},
            {"heading": "Next steps 下一步", "numbered": ["Close the October renewals", "Review pricing abroad"]},
        ],
    }


def _xlsx(title: str, options: dict[str, Any]) -> dict[str, Any]:
    sheets: list[dict[str, Any]] = [
        {
            "name": "Revenue 收入",
            "headers": ["Region", "Q2", "Q3", "Growth"],
            "rows": [[row[0], row[1], row[2], {"formula": f"=C{n}/B{n}-1"}] for n, row in enumerate(_TABLE["rows"], 2)],
            "formats": {"Q2": "#,##0", "Q3": "#,##0", "Growth": "0.0%"},
            "totals": ["Q2", "Q3"],
            "chart": {"type": "bar", "title": "Revenue", "labels": "Region", "values": ["Q2", "Q3"]},
        },
        {"name": "Notes", "headers": ["Topic", "Note"], "rows": [["Source", "Finance system"], ["状态", "已核对"]]},
    ]
    wanted = int(options.get("minimum", {}).get("sheets", 0))
    sheets += [{"name": f"Sheet {n}", "headers": ["A"], "rows": [[1]]} for n in range(len(sheets), wanted)]
    return {"title": title, "sheets": sheets}


def _json(title: str, options: dict[str, Any]) -> dict[str, Any]:
    data: dict[str, Any] = {"title": title, "status": "ok", "状态": "正常", "total": 3}
    for pointer in options.get("required_keys", []):
        steps = [step.replace("~1", "/").replace("~0", "~") for step in pointer.lstrip("/").split("/")]
        place = data
        for step in steps[:-1]:
            place = place.setdefault(step, {})
        place.setdefault(steps[-1], "value")
    wanted = int(options.get("minimum", {}).get("records", 0))
    data.update({f"record_{n}": n for n in range(len(data), wanted)})
    return {"data": data}


def _png(title: str, options: dict[str, Any]) -> dict[str, Any]:
    minimum = options.get("minimum", {})
    size = {key: minimum[key] for key in ("width", "height") if minimum.get(key, 0) >= 200}
    return {"title": title, "chart": _CHART, **size}


def _md(title: str, options: dict[str, Any]) -> dict[str, Any]:
    inputs = _prose(title, options)
    inputs["sections"][2]["code"] = {"language": "sql", "text": "SELECT region, q3 - q2 AS growth FROM revenue;"}
    wanted = int(options.get("minimum", {}).get("headings", 0))
    inputs["sections"] += [{"heading": f"Appendix {n}"} for n in range(1, wanted - len(inputs["sections"]))]
    return inputs


def _html(title: str, options: dict[str, Any]) -> dict[str, Any]:
    inputs = _md(title, options)
    inputs["sections"][1]["chart"] = _CHART
    inputs["sections"][2]["diagram"] = _DIAGRAM
    return inputs


def _svg(title: str, options: dict[str, Any]) -> dict[str, Any]:
    del options
    return {"title": title, "diagram": _DIAGRAM}


def _csv(title: str, options: dict[str, Any]) -> dict[str, Any]:
    del title
    more = [name for name in options.get("required_columns", []) if name not in _TABLE["headers"]]
    rows = [[*row, *("value" for _ in more)] for row in _TABLE["rows"]]
    headers = [*_TABLE["headers"], *more]
    minimum = options.get("minimum", {})
    wide = [f"Column {n}" for n in range(len(headers) + 1, minimum.get("columns", 0) + 1)]
    rows = [[*row, *(0 for _ in wide)] for row in rows]
    rows += [
        [f"Region {n}", *([0] * (len(headers) + len(wide) - 1))] for n in range(len(rows), minimum.get("records", 0))
    ]
    return {"headers": [*headers, *wide], "rows": rows}


_CONTENT = {
    "pptx": _pptx,
    "docx": _prose,
    "pdf": _prose,
    "xlsx": _xlsx,
    "json": _json,
    "png": _png,
    "csv": _csv,
    "md": _md,
    "html": _html,
    "svg": _svg,
}


def sample_values(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a plausible value for every required input of a schema."""
    properties = schema.get("properties", {})
    return {name: _value(properties.get(name, {})) for name in schema.get("required", [])}


def _value(schema: dict[str, Any]) -> Any:
    for key in ("default", "const"):
        if key in schema:
            return schema[key]
    for key in ("examples", "enum"):
        if schema.get(key):
            return schema[key][0]
    kinds = schema.get("type", "string")
    match kinds if isinstance(kinds, str) else kinds[0]:
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return True
        case "array":
            items = schema.get("items")
            return [_value(items if isinstance(items, dict) else {})]
        case "object":
            return sample_values(schema)
        case "null":
            return None
        case _:
            text = example(schema["pattern"]) if isinstance(schema.get("pattern"), str) else None
            return text or "sample"[: schema.get("maxLength", 6)].ljust(schema.get("minLength", 0), "x")
