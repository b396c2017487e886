"""The rows of the conformance list without a test, each with what it waits for."""

MISSING: dict[str, str] = {}
