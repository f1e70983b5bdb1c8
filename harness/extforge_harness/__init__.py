"""Drive what was generated: work modules on their own, and whole extensions in the real host."""
