"""The plan that `extforge init` writes."""

from __future__ import annotations

__all__ = ["STARTER_PLAN"]

STARTER_PLAN = """\
# yaml-language-server: $schema=./plan.schema.json
# (make that file with: extforge schema plan > plan.schema.json, and editors complete and check as you type)
#
# A plan lists extensions. The first nine fields of a design are openJiuwen's own; the rest is optional, and
# `extforge check THIS_FILE --explain` prints what it stands for when it is left out.
package_name: my_extensions
designs:
  # A rule for every file that the deck tool below writes. A constraint acts through a rail.
  - gap_id: g1
    extension_name: versioned_filename_guard
    kind: constraint
    components: [rail]
    applies_to: [quarterly_sales_deck]        # leave it out to watch every tool, the host's own included
    description: File names must end in _v1
    rails:
      - does:
          guard:
            require: {stem_suffix: _v1}       # or extension, pattern, folder, argument
            message: Add _v1 to the end of the file name.

  # A tool that writes real PPTX files, and a skill that says how to use it.
  - gap_id: g2
    extension_name: quarterly_sales_deck
    components: [tool, skill]
    depends_on: [versioned_filename_guard]
    description: Quarterly sales deck with figures by region
    tools:
      - description: Write the quarterly sales deck. Use when the user asks for the quarterly slides.
        does:
          artifact: {format: pptx, minimum: {slides: 3}}   # docx, xlsx, pdf, json, csv, md, html, png, svg
    skills:
      - description: How our quarterly sales decks are built. Use before calling quarterly_sales_deck.
        steps:
          - Collect title, quarter and revenue by region; ask for what is missing.
          - Call `quarterly_sales_deck` once, with an `output_path` that ends in `_v1.pptx`.
        rules:
          - One message per slide, and the message is the title.

  # Nothing but names: a budget rail that counts tool calls, and a tool that reports them.
  - gap_id: g3
    extension_name: session_budget
    components: [rail, tool]
"""
