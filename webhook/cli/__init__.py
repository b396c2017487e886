"""The commands: each parses its arguments, builds a catalog, runs the decision, prints."""
