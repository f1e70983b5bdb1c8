"""From capability gaps to a plan: read the gaps, decide by openJiuwen's own design rules, say why."""
