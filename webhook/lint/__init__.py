"""Advice on policies and definitions that load: each finding is a warning with a stable reason."""
