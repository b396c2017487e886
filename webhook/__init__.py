"""podgate: applies workload policies to every pod of any kind of workload.

The packages and what each may import are in docs/architecture.md; `make imports` checks them. Start
reading at decision/decide.py. Where to add a field, a rule, a kind or a command: CONTRIBUTING.md.
"""
