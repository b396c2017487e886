"""Generates objects that break a known rule, and reports every one that podgate lets in."""
