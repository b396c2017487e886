"""Fields of the readiness probe: one object of the main container, with rules on its scalars."""

from __future__ import annotations

from webhook.policy.row import PROBE, Binding, Field

READINESS = "readinessProbe"


def of_probe(name: str, note: str, aliases: tuple[str, ...] = ()) -> Field:
    """A number of the probe itself."""
    return Field(
        f"probes.readiness.{name}",
        "integer",
        Binding.MAIN,
        PROBE,
        (READINESS, name),
        aliases=aliases,
        note=note,
    )


def of_handler(name: str, value: str, note: str, enum: tuple[str, ...] = ()) -> Field:
    """A member of the HTTP handler."""
    return Field(
        f"probes.readiness.handler.httpGet.{name}",
        value,
        Binding.MAIN,
        PROBE,
        (READINESS, "httpGet", name),
        enum=enum,
        note=note,
    )


# The port comes first: with its default, podgate can add a probe to a container without one.
PROBES: tuple[Field, ...] = (
    of_handler("port", "integer", "Port that is asked."),
    of_handler("path", "string", "Path that is asked for."),
    of_handler("host", "string", "Host name that is asked for; the pod's address when absent."),
    of_handler("scheme", "string", "Protocol of the probe.", ("HTTP", "HTTPS")),
    of_probe("initialDelaySeconds", "Seconds before the first probe."),
    of_probe("periodSeconds", "Seconds between two probes."),
    of_probe("timeoutSeconds", "Seconds after which a probe has failed."),
    of_probe("successThreshold", "Successes in a row that make a pod ready."),
    of_probe(
        "failureThreshold",
        "Failures in a row that make a pod not ready.",
        ("probes.readiness.failureThreshod",),
    ),
)
