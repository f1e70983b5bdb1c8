"""Names that openJiuwen itself uses (read from 0.1.19.post2; a host test reports drift).

A tool or rail of the same name loads, until the agent it meets already has the host's own: the second is refused.
"""

from __future__ import annotations

__all__ = [
    "FAILURES",
    "HIDDEN_SKILL_FOLDERS",
    "HOOKS",
    "HOST_RAILS",
    "HOST_TOOLS",
    "RESERVED_FILES",
    "SIDECAR_FILES",
]

HOST_TOOLS = frozenset(
    """
    ask_user audio_metadata audio_question_answering audio_transcription bash code
    coding_memory_edit coding_memory_read coding_memory_write cron cron_create_job
    cron_delete_job cron_get_job cron_list_jobs cron_preview_job cron_toggle_job
    cron_update_job edit_file edit_memory enter_plan_mode enter_worktree exit_plan_mode
    exit_worktree fetch_webpage free_search get_current_goal glob grep image_ocr
    list_files list_mcp_resources list_skill lsp memory_get memory_search paid_search
    powershell read_file read_mcp_resource read_memory recall_compressed_context
    sessions_cancel sessions_list sessions_spawn skill_tool subagent_close subagent_list
    subagent_resume subagent_send_input subagent_spawn subagent_wait submit_goal_report
    switch_mode task_tool todo_create todo_get todo_list todo_modify tool_call
    tool_search video_understanding visual_question_answering write_file write_memory
    """.split()
)

HOST_RAILS = frozenset(
    """
    AgentModeRail AgentRail AskUserRail BaseInterruptRail BaseSecurityRail BudgetRail
    CancellationRail CodingMemoryRail ConfirmInterruptRail ContextAssembleRail
    ContextEvolutionRail ContextEvolveRail ContextProcessorRail DeepAgentRail
    EditSafetyRail EvolutionInterruptRail EvolutionRail ExternalMemoryRail
    GuardedSysOperationRail HeartbeatRail InvokeResultAdapterRail LspRail McpRail
    MemberSkillEvolutionRail MemoryRail MetisContextEvolveRail ModelAnomalyDetectionRail
    ModelBackupRail ObservabilityRail PermissionInterruptRail PersonalContextRail
    ProgressiveToolRail ReliabilityRail SafetyPromptRail SecurityRail SessionRail
    SkillCreateRail SkillEvolutionRail SkillUseRail SubagentRail
    SymphonyGraphEvolutionRail SysOperationRail TTSERail TaskCompletionRail
    TaskPlanningRail TeamContextEvolutionRail TeamSkillCreateRail TeamSkillEvolutionRail
    TeamSymphonyGraphEvolutionRail ToolCallResilienceRail TrajectoryRail
    VerificationContractRail VerificationRail
    """.split()
)

HOOKS = frozenset(
    """
    before_invoke after_invoke before_task_iteration after_task_iteration
    on_user_message before_steering_drain before_model_call after_model_call
    on_model_exception before_tool_call after_tool_call on_tool_exception
    after_react_iteration
    """.split()
)

# Folders that the host's skill scan passes over (skill_use_rail.py).
HIDDEN_SKILL_FOLDERS = frozenset(("output", "temp", "assets", "node_modules"))

# Files that the host's loader merges into harness_config.yaml (extension_loader.py).
SIDECAR_FILES = frozenset(
    """
    identity.md soul.md prompt_sections/sections.yaml tools/tools.yaml rails/rails.yaml
    skills/skills.yaml mcps/mcps.yaml mcps/mcps.yml mcps/mcps.json
    """.split()
)
# ... and those that it prefers to it, or takes instead.
RESERVED_FILES = SIDECAR_FILES | {
    "manifest.json",
    "expert_harness.yaml",
    "harness.yaml",
}

# Finding code -> openJiuwen's attribution id for it (its verify_ext skill), where a code has one.
FAILURES = {
    "extension-class-missing": "module_import_failed",
    "extension-constraint-missing": "harness_load_failed",
    "extension-constructor": "class_init_failed",
    "extension-entry-point": "entry_point_not_allowed",
    "extension-file-missing": "harness_load_failed",
    "extension-guard-open": "rail_hook_not_observed",
    "extension-hook-sync": "rail_hook_not_observed",
    "extension-hook-unknown": "rail_hook_not_observed",
    "extension-import-missing": "module_import_failed",
    "extension-init-code": "module_import_failed",
    "extension-lazy-import": "tool_result_failed",
    "extension-module-missing": "module_import_failed",
    "extension-module-prefix": "module_import_failed",
    "extension-not-a-rail": "harness_load_failed",
    "extension-not-a-tool": "harness_load_failed",
    "extension-rail-idle": "rail_hook_not_observed",
    "extension-skill-hidden": "skill_not_loaded",
    "extension-syntax": "module_import_failed",
    "extension-tool-card": "manifest_invalid",
    "extension-tool-method": "tool_result_failed",
    "extension-tool-schema": "manifest_invalid",
    "result-count": "artifact_format_invalid",
    "result-error-missing": "tool_result_failed",
    "result-field-missing": "tool_result_schema_missing",
    "result-field-type": "tool_result_schema_missing",
    "result-file-missing": "artifact_not_created",
    "result-file-stale": "artifact_not_created",
    "result-format": "artifact_format_invalid",
    "result-path-missing": "tool_result_schema_missing",
    "result-path-outside": "artifact_not_created",
    "result-shape": "tool_result_schema_missing",
    "result-size": "artifact_format_invalid",
    "result-suffix": "artifact_format_invalid",
}
