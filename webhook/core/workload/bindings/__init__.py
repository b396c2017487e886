"""Bindings: one module per shape of place, each reads, judges and fills its fields."""
