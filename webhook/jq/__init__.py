"""jq paths that yield locations in a document: parsed, compiled and evaluated natively, without I/O."""
