"""podgate: workload policies made true for every pod spec location of any workload kind.

The layers, top to bottom (import-linter holds them, see pyproject.toml):

    cli, server    composition: may import anything below
    settings       read once, by server and cli only
    jq             the worker process for paths that are not native, started when first needed
    adapters       one foreign thing each: HTTP, files, TLS, telemetry; they do not know each other
    admission      the AdmissionReview protocol around the decision
    core           decide(request, catalog, references, facts) -> Allowed | Denied; pure

Start reading at decision/decide.py. Where to add a field, a rule, a kind or a command: CONTRIBUTING.md.
"""
