"""The answer to "why": what holds for a kind or an object, who says it, and what lost."""
