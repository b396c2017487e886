"""Fields of containers: image, command, variables, ports and directories."""

from __future__ import annotations

from webhook.policy import values
from webhook.policy.row import (
    CONTAINER,
    HOME,
    ITEMS,
    NATIVE_TYPES,
    WORKLOAD_ITEMS,
    Attribute,
    Binding,
    Field,
    Items,
)

EXCLUDE = Attribute(
    "exclude",
    "boolean",
    takes_rules=False,
    native=False,
    note="Leaves a default item out; in a manifest the annotation podgate.dev/exclude does so.",
)

ENVIRONMENT = Items(
    "name",
    (),
    (
        Attribute(
            "name",
            "string",
            ("name",),
            required=True,
            takes_rules=False,
            note="Name of the variable; the key of the item.",
        ),
        Attribute("value", "string", ("value",), takes_rules=False, note="Literal value."),
        Attribute(
            "secret",
            "object",
            ("valueFrom", "secretKeyRef"),
            takes_rules=False,
            note="Key of a Secret: {name, key}.",
        ),
        Attribute(
            "configMap",
            "object",
            ("valueFrom", "configMapKeyRef"),
            takes_rules=False,
            note="Key of a ConfigMap: {name, key}.",
        ),
        Attribute(
            "podFieldRef",
            "object",
            ("valueFrom", "fieldRef"),
            takes_rules=False,
            note="Field of the pod: {path}.",
        ),
        Attribute(
            "userCredential",
            "object",
            takes_rules=False,
            native=False,
            note="Credential of the platform: {name, key}; no native form.",
        ),
        Attribute(
            "description",
            "string",
            takes_rules=False,
            native=False,
            note="Text for people; no native form.",
        ),
        EXCLUDE,
    ),
    store="environment",
    attribute_defaults=False,
)

PORTS = Items(
    "name",
    (("container",),),
    (
        Attribute(
            "name", "string", ("name",), takes_rules=False, note="Name of the port; the key."
        ),
        Attribute(
            "container",
            "integer",
            ("containerPort",),
            required=True,
            note="Port of the container, 1 to 65535.",
        ),
        Attribute(
            "serviceType",
            "string",
            enum=("LoadBalancer", "NodePort", "ClusterIP"),
            native=False,
            note="How the port is published; belongs to a Service.",
        ),
        Attribute("external", "integer", native=False, note="Port outside; belongs to a Service."),
        Attribute("toolType", "string", native=False, note="Kind of tool behind the port."),
        Attribute("toolName", "string", native=False, note="Name of the tool behind the port."),
        Attribute(
            "customExternalPort",
            "boolean",
            native=False,
            note="Rules only: whether an item may name its port outside.",
        ),
        EXCLUDE,
    ),
    store="ports",
)

EXPOSED_URLS = Items(
    "name",
    (("container",), ("url",)),
    (
        Attribute("name", "string", ("name",), takes_rules=False, note="Name of the URL; the key."),
        Attribute(
            "container",
            "integer",
            ("container",),
            required=True,
            note="Port of the container behind the URL.",
        ),
        Attribute("url", "string", ("url",), note="The URL; made up by the platform when absent."),
        Attribute("toolType", "string", ("toolType",), note="Kind of tool."),
        Attribute("toolName", "string", ("toolName",), note="Name of the tool."),
        Attribute(
            "authorizationType",
            "string",
            ("authorizationType",),
            ("authenticatedUsers", "authorizedUsers", "authorizedGroups"),
            takes_rules=False,
            note="Who can open the URL.",
        ),
        Attribute(
            "authorizedUsers",
            "array",
            ("authorizedUsers",),
            note="Users who can open it; not together with groups.",
        ),
        Attribute(
            "authorizedGroups",
            "array",
            ("authorizedGroups",),
            note="Groups that can open it; not together with users.",
        ),
        Attribute(
            "customUrl",
            "boolean",
            native=False,
            note="Rules only: whether an item may name its URL.",
        ),
        EXCLUDE,
    ),
    store="exposed-urls",
)

RELATED_URLS = Items(
    "name",
    (("url",),),
    (
        Attribute("name", "string", ("name",), note="Name of the link; the key."),
        Attribute("url", "string", ("url",), required=True, note="The link."),
        Attribute("type", "string", ("type",), required=True, note="Kind of link."),
        EXCLUDE,
    ),
    store="related-urls",
)

CONTAINERS: tuple[Field, ...] = (
    Field(
        "image",
        "string",
        Binding.SAFETY,
        CONTAINER,
        ("image",),
        writes="absent-main",
        note="Image of the container, compared exactly; options apply to every container.",
    ),
    Field(
        "imagePullPolicy",
        "string",
        Binding.SAFETY,
        CONTAINER,
        ("imagePullPolicy",),
        writes="every",
        enum=("Always", "Never", "IfNotPresent"),
        spellings=(
            ("always", "Always"),
            ("ifNotPresent", "IfNotPresent"),
            ("never", "Never"),
        ),
        note="When the node pulls the image.",
    ),
    Field(
        "workingDir",
        "string",
        Binding.MAIN,
        CONTAINER,
        ("workingDir",),
        note="Directory that the process starts in.",
    ),
    Field(
        "command",
        "string",
        Binding.MAIN,
        CONTAINER,
        ("command",),
        codec=values.COMMAND,
        secret=True,
        note="Entry point as one command line, split as a POSIX shell would.",
    ),
    Field(
        "args",
        "string",
        Binding.MAIN,
        CONTAINER,
        ("args",),
        aliases=("arguments",),
        codec=values.COMMAND,
        secret=True,
        note="Arguments of the entry point as one line, split as a POSIX shell would.",
    ),
    Field(
        "stdin",
        "boolean",
        Binding.MAIN,
        CONTAINER,
        ("stdin",),
        absent=False,
        note="Keep standard input open.",
    ),
    Field(
        "tty",
        "boolean",
        Binding.MAIN,
        CONTAINER,
        ("tty",),
        absent=False,
        note="Give the process a terminal; needs stdin.",
    ),
    Field(
        "environmentVariables",
        "itemized",
        Binding.MAIN,
        ITEMS,
        aliases=("environment",),
        items=ENVIRONMENT,
        secret=True,
        note="Variables of the container; values are never printed.",
    ),
    Field(
        "createHomeDir",
        "boolean",
        Binding.MAIN,
        HOME,
        note="A throw-away home directory: an emptyDir with HOME pointing to it.",
    ),
    Field(
        "ports",
        "itemized",
        Binding.MAIN,
        ITEMS,
        items=PORTS,
        note="Ports of the container; how they are published is no matter of a pod.",
    ),
    Field(
        "exposedUrls",
        "itemized",
        Binding.NOTHING,
        WORKLOAD_ITEMS,
        aliases=("exposeUrls",),
        types=NATIVE_TYPES,
        items=EXPOSED_URLS,
        note="URLs that publish the container; kept in an annotation, served by others.",
    ),
    Field(
        "relatedUrls",
        "itemized",
        Binding.NOTHING,
        WORKLOAD_ITEMS,
        types=NATIVE_TYPES,
        items=RELATED_URLS,
        note="Links for people; kept in an annotation.",
    ),
)
