"""Agent definitions: who an agent is, checked, resolved against a request, and made into a package that runs."""

from __future__ import annotations

from extforge_harness.agents.definition import AgentDefinition, agent_schema, check_agent, load_agent, parse_agent
from extforge_harness.agents.package import Built, build_agent, build_package
from extforge_harness.agents.resolution import (
    PreparedTask,
    Resolved,
    check_resolved,
    origins,
    prepare,
    resolve,
    with_header,
)
from extforge_harness.agents.settings import Settings, provider_settings
from extforge_harness.skills import skills_in_extension, skills_in_pack

__all__ = [
    "AgentDefinition",
    "Built",
    "PreparedTask",
    "Resolved",
    "Settings",
    "agent_schema",
    "build_agent",
    "build_package",
    "check_agent",
    "check_resolved",
    "load_agent",
    "origins",
    "parse_agent",
    "prepare",
    "provider_settings",
    "resolve",
    "skills_in_extension",
    "skills_in_pack",
    "with_header",
]
