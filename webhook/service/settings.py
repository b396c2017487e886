"""The settings of an installation, read once from flags and the environment; flags win."""

from __future__ import annotations

import difflib
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, cast, get_args

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from pydantic_core import ErrorDetails

from webhook.devices.gates import check_gates, check_mode
from webhook.documents import texts
from webhook.documents.problem import Problem
from webhook.evaluation.device_settings import (
    DRIVER_CONTROLLER,
    MOST_NODES,
    DeviceChecks,
    DeviceSettings,
    DeviceType,
    DriverVersion,
)
from webhook.evaluation.installation import InstallationConfig
from webhook.evaluation.trusted_controllers import TrustedControllers
from webhook.evaluation.trusted_mutators import TrustedMutators
from webhook.interface.injected_items import Injected

PREFIX = "PODGATE_"
ADDRESS = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^:\s\[\]]+):(\d{1,5})")
# Kubernetes sets environment variables for Services in each pod: a Service named podgate results in
# PODGATE_PORT=tcp://…, one named podgate-metrics in PODGATE_METRICS_PORT. No setting has such a name.
SERVICE_LINK = re.compile(r"PODGATE_(.*_)?(SERVICE_HOST|SERVICE_PORT(_.*)?|PORT(_\d+_.*)?)")
# Variables of other commands and of the tests.
OTHERS = frozenset(
    {
        "PODGATE_CACHE_DIR",
        "PODGATE_CERTS_DIR",
        "PODGATE_DOWN_SECONDS",
        "PODGATE_FUZZ_PAIRS",
        "PODGATE_KEEP_REVIEWS",
        "PODGATE_KUBERNETES",
        "PODGATE_OPERATORS",
        "PODGATE_TRACEBACK",
        "PODGATE_UPDATE_GOLDEN",
    }
)

Address = Annotated[str, StringConstraints(pattern=f"^(?:{ADDRESS.pattern})$")]
Name = Annotated[str, StringConstraints(min_length=1, pattern=r"^[^\s,]+$")]
Pair = Annotated[str, StringConstraints(pattern=r"^[^\s,=]+=[^\s,=]+$")]
Gate = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9]+=(true|false)$")]
CLASS_TYPES = get_args(DeviceType)
ClassType = Annotated[
    str, StringConstraints(pattern=rf"^[a-z0-9][-.a-z0-9]*=({'|'.join(CLASS_TYPES)})$")
]
Url = Annotated[str, StringConstraints(pattern=r"^https?://[^\s/]+(/\S*)?$")]
PATHS, NAMES = "paths", "names"


def setting(default: Any, wanted: str, *, listed: str = "") -> Any:
    """One setting: its default, the description of valid values, and how a list is separated."""
    return Field(default, description=wanted, json_schema_extra={"listed": listed})


class Settings(BaseModel):
    """All settings of the server. The option of `x_y` is `--x-y`, its variable is PODGATE_X_Y."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    listen: Address = setting("0.0.0.0:9443", "an address and a port, such as 0.0.0.0:9443")
    metrics_listen: Literal["", "same"] | Address = setting(
        "0.0.0.0:8080",
        "an address and a port for metrics and probes, `same` for the port of reviews, or nothing",
    )
    tls_cert: Path | None = setting(None, "the path of a PEM certificate chain")
    tls_key: Path | None = setting(None, "the path of the certificate's PEM key")
    client_ca: Path | None = setting(None, "the path of the CA that signs the API server's client")
    client_ca_name: tuple[str, ...] = setting(
        (),
        "names of the client certificates to accept, separated by commas: exact common names, or"
        " alternative names (DNS, URI, e-mail); empty accepts every certificate of the client CA",
        listed=NAMES,
    )
    tls_min_version: Literal["1.2", "1.3"] = setting("1.2", "1.2 or 1.3")
    plain_http: bool = setting(False, "true or false; true only to try things out without TLS")
    policies: tuple[Path, ...] = setting((), "paths of policies", listed=PATHS)
    interfaces: tuple[Path, ...] = setting((), "paths of resource interfaces", listed=PATHS)
    assets: tuple[Path, ...] = setting((), "paths of assets", listed=PATHS)
    crds: tuple[Path, ...] = setting(
        (),
        "paths of CRDs; podgate checks definitions against their schemas, and omits defaults that"
        " API servers would prune",
        listed=PATHS,
    )
    rule_combination: Literal["guarded", "documented", "strictest"] = setting(
        "guarded", "guarded, documented or strictest"
    )
    cluster: bool = setting(
        False, "true or false; true also reads documents from the cluster and watches them"
    )
    own_namespace: str = setting(
        "",
        "the namespace that podgate runs in: podgate reads documents from its ConfigMaps with the"
        " label podgate.dev/documents, and the controller stores the last good versions there",
    )
    kubeconfig: Path | None = setting(
        None,
        "the path of a kubeconfig, used to read the labels of namespaces if policies select by"
        " them; without it podgate uses the Pod's service account",
    )
    owner_events: bool = setting(
        True,
        "true or false; true posts an event on a workload if podgate rejects an object that its"
        " controller creates, and if the kubeconfig or service account may create events",
    )
    workers: Annotated[int, Field(ge=0, le=256)] = setting(
        0, "a number of processes up to 256; 0 is one per CPU"
    )
    keep_alive: Annotated[int, Field(ge=1, le=3600)] = setting(
        120, "whole seconds from 1 to 3600; API servers keep idle connections for 90"
    )
    connection_age: Annotated[float, Field(ge=1)] = setting(600.0, "seconds, 1 or more")
    body_limit: Annotated[int, Field(ge=1024, le=64 * 1024 * 1024)] = setting(
        7 * 1024 * 1024, "a number of bytes from 1024 to 67108864"
    )
    deadline: Annotated[float, Field(gt=0, le=30)] = setting(
        1.0, "seconds up to 30 that a review may wait before it is evaluated"
    )
    drain: Annotated[float, Field(ge=0, le=300)] = setting(
        5.0, "seconds up to 300 that podgate continues to answer after SIGTERM"
    )
    concurrency: Annotated[int, Field(ge=8, le=65536)] = setting(
        1024,
        "a number of connections per worker from 8 to 65536; beyond it podgate closes the oldest"
        " connection without a request",
    )
    connections_per_address: Annotated[int, Field(ge=1, le=65536)] = setting(
        512,
        "a number of connections per worker from 1 to 65536 that one address may open before"
        " their first request is complete",
    )
    bytes_in_flight: Annotated[int, Field(ge=1024, le=16 * 1024 * 1024 * 1024)] = setting(
        64 * 1024 * 1024,
        "the maximum total size, in bytes, of all review bodies that a worker holds at a time",
    )
    log_level: Literal["debug", "info", "warning", "error"] = setting(
        "info", "debug, info, warning or error"
    )
    log_format: Literal["json", "text"] = setting("json", "json or text")
    traces: Literal[""] | Url = setting(
        "",
        "the URL of an OpenTelemetry collector, such as http://collector:4318, or nothing; podgate"
        " sends it a span for each review by OTLP over HTTP",
    )
    gpu_devices: tuple[Name, ...] = setting(
        ("nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-*", "amd.com/gpu"),
        "resource names separated by commas; a * at the end matches any rest",
        listed=NAMES,
    )
    gpu_device_classes: tuple[Name, ...] = setting(
        ("gpu.nvidia.com", "mig.nvidia.com", "vfio.gpu.nvidia.com"),
        "device class names separated by commas",
        listed=NAMES,
    )
    device_classes: tuple[ClassType, ...] = setting(
        (),
        "device classes as NAME=TYPE, separated by commas, where TYPE is one of"
        f" {', '.join(CLASS_TYPES)}",
        listed=NAMES,
    )
    dra_driver_version: DriverVersion = setting(
        "0.5", f"one of {', '.join(get_args(DriverVersion))}: the version of NVIDIA's DRA driver"
    )
    dra_feature_gates: tuple[Gate, ...] = setting(
        (),
        "feature gates of NVIDIA's DRA driver as NAME=true or NAME=false, separated by commas;"
        " podgate rejects nothing because of a feature gate that is not set",
        listed=NAMES,
    )
    dra_checks: DeviceChecks = setting(
        "deny",
        "deny, warn or off: what podgate does with an NVIDIA configuration in a claim that would"
        " fail on the node",
    )
    dra_unknown_version: Literal["deny", "warn"] = setting(
        "deny",
        "deny or warn: what podgate does with an NVIDIA configuration of another apiVersion",
    )
    dra_imex_mode: Literal["", "driverManaged", "hostManaged"] = setting(
        "", "driverManaged or hostManaged, as in the driver, or nothing if it is not known"
    )
    dra_max_nodes_per_domain: Annotated[int, Field(ge=1, le=10_000)] = setting(
        MOST_NODES,
        "a number of nodes from 1 to 10000; podgate warns of a ComputeDomain with more",
    )
    dra_controllers: tuple[Name, ...] = setting(
        (DRIVER_CONTROLLER,),
        "exact user names of the controllers of NVIDIA's DRA driver, separated by commas",
        listed=NAMES,
    )
    node_type_label: Name = setting("run.ai/type", "a label key")
    node_pools_annotation: Name = setting(
        "kai.scheduler/node-pools", "an annotation key, for several node pools"
    )
    node_pool_labels: tuple[Name, ...] = setting(
        ("kai.scheduler/node-pool", "runai/node-pool"),
        "label keys of node pools separated by commas; podgate writes the first one",
        listed=NAMES,
    )
    gpu_memory_unit: Literal["MiB", "MB"] = setting(
        "MiB", "MiB or MB, the unit of the annotation gpu-memory"
    )
    gpu_limit: Literal["env", "annotation"] = setting(
        "env", "env or annotation: where podgate writes the default limit of a GPU fraction"
    )
    several_devices: bool = setting(
        False, "true or false; true if the scheduler supports fractions of several GPUs"
    )
    git_image: str = setting("", "the git-sync image that podgate uses for defaults of storage.git")
    git_images: tuple[Name, ...] = setting(
        (), "further images to recognise as git-sync, separated by commas", listed=NAMES
    )
    s3_drivers: tuple[Pair, ...] = setting(
        (),
        "CSI drivers of S3 as driver=attribute, where the volume attribute names the bucket",
        listed=NAMES,
    )
    data_volumes: tuple[Pair, ...] = setting(
        (), "data volumes of the platform as id=claim, separated by commas", listed=NAMES
    )
    identity_claims: tuple[Pair, ...] = setting(
        (), "keys of the user's extra fields as uid=key,gid=key,groups=key", listed=NAMES
    )
    create_claims: bool = setting(
        False,
        "true or false; with true the controller creates the claims that policies mount, except"
        " existingPvc and ephemeral ones",
    )
    injected: Path | None = setting(
        None, "the path of a list of containers and items that other webhooks add to pods"
    )
    unreadable_owner: Literal["deny", "warn"] = setting(
        "deny",
        "deny or warn: what podgate does with an object that a controller created and other"
        " webhooks changed, if podgate may not read the owner",
    )
    trusted_mutators: Path | None = setting(
        None,
        "the path of a list of controllers that may change named fields of workloads; it replaces"
        " the shipped list",
    )
    trusted_controllers: Path | None = setting(
        None,
        "the path of a list of controllers, by exact user and kind of owner, in addition to those"
        " that profiles name",
    )
    exempt: tuple[Name, ...] = setting(
        (),
        "namespaces that podgate never governs, besides the cluster's own, separated by commas; the"
        " same list as in the registration",
        listed=NAMES,
    )
    exceptions_namespace: str = setting(
        "podgate-exceptions", "the only namespace whose PolicyExceptions take effect"
    )
    features: tuple[Name, ...] = setting(
        (),
        "features of the cluster that allow fields which a kind otherwise rejects, such as"
        " kubernetes.podspec-nodeselector",
        listed=NAMES,
    )
    prefer_given: tuple[Name, ...] = setting(
        (),
        "kinds as KIND.GROUP, separated by commas; for these, your definitions take precedence over"
        " the shipped ones",
        listed=NAMES,
    )
    kubernetes_minor: Annotated[str, StringConstraints(pattern=r"^1\.[1-9]\d$")] = setting(
        "1.37", "a Kubernetes version such as 1.37"
    )

    @classmethod
    def from_sources(
        cls, flags: Mapping[str, Any], environ: Mapping[str, str]
    ) -> Settings | tuple[Problem, ...]:
        """Settings from `flags` by field name (None: not given) and PODGATE_* variables, or all problems.

        Flags win. Lists in variables are separated by `os.pathsep`, lists of names by commas; an
        empty variable counts as not given.
        """
        given = {
            name: split_names(name, value) for name, value in flags.items() if not missing(value)
        }
        found = {name: value for name, value in from_environment(environ) if name not in given}
        strangers = unknown_variables(environ)
        try:
            settings = cls.model_validate({**found, **given})
        except ValidationError as error:
            faults = [problem_of(each, given) for each in error.errors()]
            return (*strangers, *dict.fromkeys(faults))
        problems = (*strangers, *bad_ports(settings, found), *device_problems(settings, found))
        return problems or settings

    def installation_config(
        self,
        injected: Injected | None = None,
        trusted: TrustedMutators | None = None,
        controllers: TrustedControllers | None = None,
    ) -> InstallationConfig:
        """Returns the settings that decisions read, with the lists that they name."""
        return InstallationConfig(
            gpu_resources=self.gpu_devices,
            gpu_classes=self.gpu_device_classes,
            gpu_memory_unit=self.gpu_memory_unit,
            gpu_limit=self.gpu_limit,
            several_devices=self.several_devices,
            node_type_label=self.node_type_label,
            node_pools_annotation=self.node_pools_annotation,
            node_pool_labels=self.node_pool_labels,
            git_image=self.git_image,
            git_images=self.git_images,
            s3_drivers=pairs(self.s3_drivers),
            data_volumes=pairs(self.data_volumes),
            identity_claims=pairs(self.identity_claims),
            features=frozenset(self.features),
            prefer_given=self.prefer_given,
            unreadable_owner=self.unreadable_owner,
            create_claims=self.create_claims,
            injected=injected or Injected(),
            trusted=trusted or TrustedMutators(),
            controllers=controllers or TrustedControllers(),
            devices=self.device_settings(),
        )

    def device_settings(self) -> DeviceSettings:
        """The settings about devices."""
        return DeviceSettings(
            driver_version=self.dra_driver_version,
            gates={name: each == "true" for name, each in pairs(self.dra_feature_gates).items()},
            checks=self.dra_checks,
            unknown_version=self.dra_unknown_version,
            imex_mode=self.dra_imex_mode,
            most_nodes=self.dra_max_nodes_per_domain,
            class_types=cast(dict[str, DeviceType], pairs(self.device_classes)),
            controllers=self.dra_controllers,
            kubernetes_minor=minor_number(self.kubernetes_minor),
        )

    def warnings(self) -> tuple[Problem, ...]:
        """The problems of settings that podgate starts with."""
        return tuple(
            Problem(
                "settings",
                flag("dra_feature_gates"),
                each.found,
                each.fix,
                "setting",
                severity="warning",
            )
            for each in check_gates(self.device_settings())
            if each.warning
        )

    def unfit_to_serve(self) -> tuple[Problem, ...]:
        """The settings that a server lacks: a certificate and its key, or `--plain-http`."""
        if self.plain_http:
            fix = "write it without --plain-http"
            found = "a client CA without TLS"
            return (Problem("flags", "--client-ca", found, fix, "setting"),) * bool(self.client_ca)
        if self.client_ca_name and not self.client_ca:
            fix = f"write {describe_setting('client_ca')} too"
            found = "names of client certificates, and no CA of theirs"
            return (Problem("flags", "--client-ca-name", found, fix, "setting"),)
        rows = ((flag(name), name) for name in ("tls_cert", "tls_key") if not getattr(self, name))
        return tuple(
            Problem(
                "flags",
                shown,
                "nothing",
                f"write {describe_setting(name)} (or --plain-http)",
                "setting",
            )
            for shown, name in rows
        )


def pairs(texts: tuple[str, ...]) -> dict[str, str]:
    """Texts of the form a=b as a map."""
    return dict(each.split("=", 1) for each in texts)


def device_problems(settings: Settings, found: Mapping[str, Any]) -> Iterator[Problem]:
    """The problems of settings about devices with each other. `found` are those of variables."""
    for name in ("device_classes", "dra_feature_gates"):
        for key in repeated(getattr(settings, name)):
            place = place_of_setting(name, found)
            yield Problem(*place, f"{key} with two values", "write it once", "setting")
    devices = settings.device_settings()
    faults = [("dra_feature_gates", each) for each in check_gates(devices) if not each.warning]
    faults += [("dra_imex_mode", each) for each in check_mode(devices)]
    for name, fault in faults:
        yield Problem(*place_of_setting(name, found), fault.found, fault.fix, "setting")


def repeated(texts: tuple[str, ...]) -> list[str]:
    """Keys of texts of the form a=b that have two values."""
    keys = Counter(each.split("=", 1)[0] for each in set(texts))
    return [key for key, count in keys.items() if count > 1]


def minor_number(version: str) -> int:
    """The minor number of a Kubernetes version such as 1.37, 0 if it has none."""
    number = version.partition(".")[2]
    return int(number) if number.isdecimal() else 0


def describe_setting(name: str) -> str:
    """The description of valid values."""
    return Settings.model_fields[name].description or ""


def missing(value: Any) -> bool:
    """Whether a flag was not given: None, or an empty list from the option parser."""
    return value is None or value in ([], ())


def from_environment(environ: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    """Each setting in the environment, with lists split."""
    for name in Settings.model_fields:
        text = environ.get(variable(name), "").strip()
        if not text:
            continue
        separator = {PATHS: os.pathsep, NAMES: ","}.get(listed_as(name))
        yield name, text if separator is None else split_text(text, separator)


def listed_as(name: str) -> str:
    """How a list of a setting is separated: PATHS, NAMES, or "" for other settings."""
    row = Settings.model_fields.get(name)
    extra = row.json_schema_extra if row else None
    return str(extra.get("listed")) if isinstance(extra, dict) else ""


def split_text(text: str, separator: str) -> tuple[str, ...]:
    """The parts of a text that are not blank."""
    return tuple(part.strip() for part in text.split(separator) if part.strip())


def split_names(name: str, value: Any) -> Any:
    """The value of a flag: of a list of names, the names in all of its texts."""
    if listed_as(name) != NAMES or not isinstance(value, list | tuple):
        return value
    return tuple(part for each in value for part in split_text(str(each), ","))


def variable(name: str) -> str:
    """The variable of a setting."""
    return PREFIX + name.upper()


def flag(name: str) -> str:
    """The flag of a setting."""
    return "--" + name.replace("_", "-")


def unknown_variables(environ: Mapping[str, str]) -> tuple[Problem, ...]:
    """PODGATE_* variables that are no setting of podgate and not set by Kubernetes itself."""
    known = [variable(name) for name in Settings.model_fields]
    strangers = sorted(
        name
        for name in environ
        if name.startswith(PREFIX)
        and name not in OTHERS.union(known)
        and not SERVICE_LINK.fullmatch(name)
    )
    return tuple(
        Problem("environment", name, "no setting of this name", nearest(name, known), "unknown")
        for name in strangers
    )


def nearest(name: str, known: list[str]) -> str:
    """Suggest a similar name."""
    names = [each.removeprefix(PREFIX) for each in known]
    close = difflib.get_close_matches(name.removeprefix(PREFIX), names, 1)
    return f"write {PREFIX}{close[0]}, if that is meant" if close else "leave it out"


def problem_of(error: ErrorDetails, given: Mapping[str, Any]) -> Problem:
    """A validation error as a problem: the name as written, the value found, and what to write."""
    name = str(error["loc"][0]) if error["loc"] else ""
    row = Settings.model_fields.get(name)
    if row is None:
        fix = nearest(flag(name), [flag(each) for each in Settings.model_fields])
        return Problem("flags", flag(name), "no setting of this name", fix, "unknown")
    source = ("flags", flag(name)) if name in given else ("environment", variable(name))
    found = texts.show_value(error["input"])
    return Problem(*source, found, f"write {describe_setting(name)}", "setting")


def bad_ports(settings: Settings, found: Mapping[str, Any]) -> Iterator[Problem]:
    """Addresses whose port is out of range, which the pattern accepts."""
    for name in ("listen", "metrics_listen"):
        text = getattr(settings, name)
        if text not in ("", "same") and address(text)[1] > 65535:
            place = place_of_setting(name, found)
            yield Problem(*place, f"port {address(text)[1]}", "write a port up to 65535", "setting")


def place_of_setting(name: str, found: Mapping[str, Any]) -> tuple[str, str]:
    """Where a setting is written. `found` are the settings of variables."""
    return ("environment", variable(name)) if name in found else ("flags", flag(name))


def is_address(text: str) -> bool:
    """Whether a text is a host and a port."""
    match = ADDRESS.fullmatch(text)
    return match is not None and int(match[2]) <= 65535


def address(text: str) -> tuple[str, int]:
    """Host and port of an address; an IPv6 host without its brackets."""
    match = ADDRESS.fullmatch(text)
    if match is None:
        raise ValueError(f"{text} is no address with a port")
    return match[1].strip("[]"), int(match[2])
