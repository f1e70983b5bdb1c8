"""JSON Schemas of the documents that people write and read, made from the models."""

from __future__ import annotations

from typing import Any

__all__ = ["schema_of"]


def schema_of(kind: str) -> dict[str, Any]:
    """Return the JSON Schema of `agent`, `gaps`, `plan`, `workflow`, `runtime`, `provider`, `acceptance` or `report`."""
    if kind == "report":
        from extforge_verifiers.reports.json import report_schema  # noqa: PLC0415

        return report_schema()
    if kind == "agent":
        from extforge_harness.agents.definition import agent_schema  # noqa: PLC0415

        return _named("extforge agent definition", agent_schema())
    if kind == "acceptance":
        from extforge_harness.acceptance import Acceptance  # noqa: PLC0415

        return _named("extforge acceptance file", Acceptance.model_json_schema())
    if kind == "gaps":
        from extforge.design.gaps import GapAnalysis  # noqa: PLC0415

        return _named("extforge gap analysis", GapAnalysis.model_json_schema())
    if kind == "workflow":
        from extforge_harness.workflows.skill import Workflow  # noqa: PLC0415

        return _named("extforge skill workflow (skill.yaml)", Workflow.model_json_schema(by_alias=True))
    if kind in ("runtime", "provider"):
        from extforge_harness.runtimes.descriptors import Provider, Runtime  # noqa: PLC0415

        model = Runtime if kind == "runtime" else Provider
        return _named(f"extforge {kind}", model.model_json_schema())
    return _plan_schema()


def _named(title: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": title}


def _plan_schema() -> dict[str, Any]:
    """The three shapes of a plan: a package, a list of designs, one design."""
    from extforge.plan import Plan  # noqa: PLC0415

    schema = Plan.model_json_schema(by_alias=True)
    definitions = schema.pop("$defs")
    schema["properties"]["$schema"] = {"type": "string"}
    design = {"$ref": "#/$defs/ExtensionDesign"}
    for name, field in (("kind", ["capability", "constraint"]), ("components", ["rail", "tool", "skill"])):
        target = definitions["ExtensionDesign"]["properties"][name]
        (target["items"] if name == "components" else target)["enum"] = field
    body = {"anyOf": [schema, {"type": "array", "items": design}, design], "$defs": definitions}
    return _named("extforge plan", body)
