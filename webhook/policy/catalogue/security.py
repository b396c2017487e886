"""Fields of security: what processes can do on the node. Rules apply to every container."""

from __future__ import annotations

from webhook.policy import values
from webhook.policy.row import CONTAINER, HOST_PORTS, IDENTITY, POD, POD_SET, Binding, Field

CONTEXT = "securityContext"


def of_host(path: str, name: str, note: str) -> Field:
    """A namespace of the host that a pod can share."""
    return Field(
        path,
        "boolean",
        Binding.POD,
        POD,
        (name,),
        writes="pod",
        absent=False,
        safety=True,
        windows=False,
        note=note,
    )


def of_both(path: str, value: str, name: str, note: str) -> Field:
    """A value of the pod that a container can override."""
    return Field(
        path,
        value,
        Binding.SAFETY,
        CONTAINER,
        (CONTEXT, name),
        pod_at=(CONTEXT, name),
        writes="pod",
        aliases=("security.runasGid", "security.runAsGpu") if name == "runAsGroup" else (),
        safety=True,
        windows=False,
        note=note,
    )


def of_apparmor(name: str, note: str, enum: tuple[str, ...] = ()) -> Field:
    """A member of the AppArmor profile of a container, or of the pod for all containers."""
    at = (CONTEXT, "appArmorProfile", name)
    return Field(
        f"security.appArmorProfile.{name}",
        "string",
        Binding.SAFETY,
        CONTAINER,
        at,
        pod_at=at,
        writes="pod",
        enum=enum,
        rules=None if enum else frozenset({"blocked", "canEdit", "options"}),
        safety=True,
        windows=False,
        note=note,
    )


SECURITY: tuple[Field, ...] = (
    Field(
        "security.privileged",
        "boolean",
        Binding.SAFETY,
        CONTAINER,
        (CONTEXT, "privileged"),
        writes="every",
        absent=False,
        explicit=True,
        aliases=("privileged",),
        safety=True,
        windows=False,
        note="Full access to the node.",
    ),
    Field(
        "security.uidGidSource",
        "string",
        Binding.POD,
        IDENTITY,
        writes="pod",
        enum=("fromTheImage", "fromIdpToken", "custom"),
        spellings=(("idpToken", "fromIdpToken"),),
        note="Where user and group ids come from; fromTheImage while nothing sets them.",
    ),
    of_both("security.runAsUid", "integer", "runAsUser", "User id; absent, the image decides."),
    of_both("security.runAsGid", "integer", "runAsGroup", "Group id; absent, the image decides."),
    Field(
        "security.runAsNonRoot",
        "boolean",
        Binding.SAFETY,
        CONTAINER,
        (CONTEXT, "runAsNonRoot"),
        pod_at=(CONTEXT, "runAsNonRoot"),
        writes="pod",
        absent=False,
        explicit=True,
        safety=True,
        note="Refuse to start as root.",
    ),
    Field(
        "security.supplementalGroups",
        "string",
        Binding.POD,
        POD,
        (CONTEXT, "supplementalGroups"),
        writes="pod",
        codec=values.GROUP_IDS,
        windows=False,
        note="Further group ids as one text, such as 100,200.",
    ),
    Field(
        "security.capabilities",
        "array",
        Binding.SAFETY,
        CONTAINER,
        (CONTEXT, "capabilities", "add"),
        writes="main",
        codec=values.CAPABILITIES,
        safety=True,
        windows=False,
        note="Linux capabilities that are added; a set.",
    ),
    Field(
        "security.seccompProfileType",
        "string",
        Binding.SAFETY,
        CONTAINER,
        (CONTEXT, "seccompProfile", "type"),
        pod_at=(CONTEXT, "seccompProfile", "type"),
        writes="pod",
        enum=("RuntimeDefault", "Unconfined", "Localhost"),
        safety=True,
        windows=False,
        note="Filter of system calls; Localhost needs a profile of the node.",
    ),
    of_apparmor(
        "type",
        "AppArmor profile of processes, by field or annotation; Localhost needs a profile of the node.",
        ("RuntimeDefault", "Unconfined", "Localhost"),
    ),
    of_apparmor("localhostProfile", "AppArmor profile of the node; a default beside Localhost."),
    Field(
        "security.readOnlyRootFilesystem",
        "boolean",
        Binding.SAFETY,
        CONTAINER,
        (CONTEXT, "readOnlyRootFilesystem"),
        writes="every",
        absent=False,
        explicit=True,
        safety=True,
        windows=False,
        note="The container's own file system cannot be written.",
    ),
    Field(
        "security.allowPrivilegeEscalation",
        "boolean",
        Binding.SAFETY,
        CONTAINER,
        (CONTEXT, "allowPrivilegeEscalation"),
        writes="every",
        absent=True,
        explicit=True,
        safety=True,
        windows=False,
        note="Whether processes may gain privileges; absent means yes.",
    ),
    Field(
        "security.procMount",
        "string",
        Binding.SAFETY,
        CONTAINER,
        (CONTEXT, "procMount"),
        writes="every",
        absent="Default",
        safety=True,
        windows=False,
        note="How /proc is mounted: Default or Unmasked.",
    ),
    Field(
        "security.hostPorts",
        "boolean",
        Binding.SAFETY,
        HOST_PORTS,
        writes="never",
        absent=False,
        safety=True,
        note="Whether ports of the node may be used.",
    ),
    of_host("security.hostIpc", "hostIPC", "Share the node's IPC namespace."),
    of_host("security.hostNetwork", "hostNetwork", "Share the node's network."),
    of_host("security.hostPid", "hostPID", "Share the node's process namespace."),
    Field(
        "security.sysctls",
        "array",
        Binding.POD,
        POD_SET,
        (CONTEXT, "sysctls"),
        writes="never",
        codec=values.NAMES,
        safety=True,
        windows=False,
        note="Kernel parameters that a pod sets, by name.",
    ),
    Field(
        "security.serviceAccountName",
        "string",
        Binding.POD,
        POD,
        ("serviceAccountName",),
        writes="pod",
        safety=True,
        note="Service account of the pods; absent means default.",
    ),
    Field(
        "security.volumeTypes",
        "array",
        Binding.POD,
        POD_SET,
        ("volumes",),
        writes="never",
        codec=values.NAMES,
        safety=True,
        note="Kinds of volumes that a pod uses: emptyDir, hostPath, csi, projected, …",
    ),
)
