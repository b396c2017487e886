"""Fields of storage: volumes of each source, with their mounts."""

from __future__ import annotations

from webhook.policy import values
from webhook.policy.catalogue.containers import EXCLUDE
from webhook.policy.row import ITEMS, Attribute, Binding, Field, Items

KEY_NOTE = "Name of the volume; the key of the item."
MOUNT_NOTE = "Directory in the container."
AMOUNT_RULES = frozenset({"min", "max"})
MODE_NOTE = "Mode of the files as octal text, such as 0644."


def name(*, takes_rules: bool = False) -> Attribute:
    """The name of the volume, which is the item's key."""
    return Attribute("name", "string", ("name",), takes_rules=takes_rules, note=KEY_NOTE)


def mount(attribute: str, aliases: tuple[str, ...] = ()) -> Attribute:
    """Where the volume is mounted."""
    return Attribute(
        attribute,
        "string",
        ("mount", "mountPath"),
        aliases=aliases,
        required=True,
        note=MOUNT_NOTE,
    )


def source(
    attribute: str,
    native: str,
    note: str,
    aliases: tuple[str, ...] = (),
    *,
    required: bool = False,
) -> Attribute:
    """A string in the volume's source."""
    return Attribute(
        attribute, "string", ("source", native), aliases=aliases, required=required, note=note
    )


HOST_PATH = Items(
    "name",
    (("path", "mountPath"), ("path",)),
    (
        name(takes_rules=True),
        source("path", "path", "Directory on the node.", required=True),
        Attribute(
            "readOnly",
            "boolean",
            ("mount", "readOnly"),
            absent=False,
            note="Every mount is read-only.",
        ),
        mount("mountPath", ("mount",)),
        Attribute(
            "mountPropagation",
            "string",
            ("mount", "mountPropagation"),
            ("None", "HostToContainer"),
            absent="None",
            note="Whether mounts of the node appear in the container.",
        ),
        EXCLUDE,
    ),
    store="hostPath",
)

NFS = Items(
    "name",
    (("server", "path", "mountPath"), ("server", "path")),
    (
        name(),
        source("path", "path", "Path that the server exports.", required=True),
        source("server", "server", "NFS server.", ("nfsServer", "nfsserver"), required=True),
        mount("mountPath"),
        Attribute(
            "readOnly",
            "boolean",
            ("both", "readOnly"),
            absent=False,
            note="The volume or its mounts are read-only.",
        ),
        EXCLUDE,
    ),
    store="nfs",
)

CONFIG_MAP = Items(
    "name",
    (("configMap", "mountPath"), ("configMap",)),
    (
        name(),
        source("configMap", "name", "Name of the ConfigMap.", required=True),
        mount("mountPath"),
        Attribute("subPath", "string", ("mount", "subPath"), note="Path inside the volume."),
        Attribute(
            "defaultMode",
            "string",
            ("source", "defaultMode"),
            absent="0644",
            codec=values.FILE_MODE,
            note=MODE_NOTE,
        ),
        EXCLUDE,
    ),
    store="configMap",
)

SECRET = Items(
    "name",
    (("secret", "mountPath"), ("secret",)),
    (
        name(),
        source("secret", "secretName", "Name of the Secret.", ("secretName",), required=True),
        mount("mountPath"),
        Attribute(
            "subPath",
            "string",
            ("mount", "subPath"),
            takes_rules=False,
            note="Path inside the volume.",
        ),
        Attribute(
            "defaultMode",
            "string",
            ("source", "defaultMode"),
            absent="0644",
            codec=values.FILE_MODE,
            note=MODE_NOTE,
        ),
        EXCLUDE,
    ),
    store="secret",
)

EMPTY_DIR = Items(
    "name",
    (("path",),),
    (
        name(takes_rules=True),
        mount("path", ("mountPath",)),
        Attribute(
            "medium",
            "string",
            ("source", "medium"),
            absent="",
            note="Empty for disk, Memory for a file system in memory.",
        ),
        Attribute(
            "sizeLimit",
            "string",
            ("source", "sizeLimit"),
            codec=values.AMOUNT_TEXT,
            extra_rules=AMOUNT_RULES,
            note="Largest size, as a quantity.",
        ),
        Attribute("exclude", "boolean", native=False, note=EXCLUDE.note),
    ),
    store="emptyDir",
)


def access_mode(mode: str) -> Attribute:
    """One of the access modes of a claim that is created."""
    native = f"{mode[0].upper()}{mode[1:]}"
    flat = ("ReadwriteOnce", "readWriteOnce") if mode == "readWriteOnce" else (mode,)
    return Attribute(
        f"claimInfo.accessModes.{mode}",
        "boolean",
        ("claim", "accessModes", native),
        aliases=flat,
        absent=False,
        note=f"The claim's access modes include {native}.",
    )


PVC = Items(
    "name",
    (("claimName",),),
    (
        name(),
        Attribute(
            "claimName",
            "string",
            ("source", "claimName"),
            note="Name of the claim; second identity.",
        ),
        Attribute(
            "existingPvc",
            "boolean",
            ("claim", "existing"),
            absent=False,
            takes_rules=False,
            note="The claim is there already.",
        ),
        Attribute(
            "ephemeral",
            "boolean",
            ("claim", "ephemeral"),
            absent=False,
            note="The claim comes and goes with the pod.",
        ),
        mount("path"),
        Attribute(
            "readOnly",
            "boolean",
            ("both", "readOnly"),
            aliases=("readonly",),
            absent=False,
            note="The volume or its mounts are read-only.",
        ),
        Attribute(
            "dataSharing",
            "boolean",
            takes_rules=False,
            native=False,
            note="For assets only; no native form.",
        ),
        Attribute(
            "claimInfo.size",
            "string",
            ("claim", "size"),
            aliases=("size",),
            codec=values.AMOUNT_TEXT,
            extra_rules=AMOUNT_RULES,
            note="Size of a claim that is created, as a quantity.",
        ),
        Attribute(
            "claimInfo.storageClass",
            "string",
            ("claim", "storageClassName"),
            aliases=("storageClass",),
            note="Storage class of a claim that is created.",
        ),
        Attribute(
            "claimInfo.volumeMode",
            "string",
            ("claim", "volumeMode"),
            ("Filesystem", "Block"),
            absent="Filesystem",
            takes_rules=False,
            note="File system or raw device.",
        ),
        Attribute(
            "claimInfo.addedAttrValues",
            "array",
            takes_rules=False,
            native=False,
            note="Attributes of the platform's storage classes; no native form.",
        ),
        access_mode("readWriteOnce"),
        access_mode("readOnlyMany"),
        access_mode("readWriteMany"),
        EXCLUDE,
    ),
    store="pvc",
)

GIT = Items(
    "name",
    (("repository", "path"), ("repository",)),
    (
        Attribute(
            "name",
            "string",
            takes_rules=False,
            native=False,
            note="Name of the item; lives in the policy only.",
        ),
        Attribute(
            "repository",
            "string",
            ("repository",),
            aliases=("Repository",),
            note="URL of the repository.",
        ),
        Attribute("branch", "string", ("branch",), note="Branch that is checked out."),
        Attribute("revision", "string", ("revision",), note="Revision that is checked out."),
        Attribute("path", "string", ("path",), required=True, note=MOUNT_NOTE),
        Attribute(
            "secretRef.name",
            "string",
            ("secret",),
            aliases=("secretName", "passwordSecret"),
            note="Secret with the credentials.",
        ),
        Attribute(
            "secretRef.authenticationMethod",
            "string",
            ("method",),
            ("password", "ssh-key"),
            takes_rules=False,
            note="Kind of credential.",
        ),
        Attribute(
            "secretRef.secretKeyOfUser",
            "string",
            ("userKey",),
            aliases=("username", "secretKeyOfUser"),
            note="Key of the user name in the Secret; without a Secret the name itself.",
        ),
        Attribute(
            "secretRef.secretKeyOfPassword",
            "string",
            ("passwordKey",),
            aliases=("secretKeyOfPassword",),
            takes_rules=False,
            note="Key of the password in the Secret.",
        ),
        EXCLUDE,
    ),
    store="git",
)

S3 = Items(
    "name",
    (("bucket", "path"), ("bucket",)),
    (
        name(),
        Attribute("bucket", "string", ("bucket",), aliases=("Bucket",), note="Bucket."),
        mount("path"),
        Attribute("url", "string", ("url",), note="Endpoint; AWS when absent."),
        Attribute(
            "accessKeySecret",
            "string",
            ("secret",),
            takes_rules=False,
            note="Secret with the access key.",
        ),
        Attribute(
            "secretKeyOfAccessKeyId",
            "string",
            takes_rules=False,
            native=False,
            note="Key of the access key's id in the Secret.",
        ),
        Attribute(
            "secretKeyOfSecretKey",
            "string",
            takes_rules=False,
            native=False,
            note="Key of the secret key in the Secret.",
        ),
        EXCLUDE,
    ),
    store="s3",
)

DATA_VOLUME = Items(
    "id",
    (),
    (
        Attribute(
            "id",
            "string",
            ("id",),
            required=True,
            note="Id of the platform's data volume; the key.",
        ),
        mount("mountPath"),
        EXCLUDE,
    ),
    store="data-volume",
)


def storage_field(path: str, items: Items, note: str, aliases: tuple[str, ...] = ()) -> Field:
    """A storage field."""
    return Field(
        f"storage.{path}",
        "itemized",
        Binding.POD,
        ITEMS,
        aliases=tuple(f"storage.{alias}" for alias in aliases),
        items=items,
        note=note,
    )


STORAGE: tuple[Field, ...] = (
    storage_field("hostPath", HOST_PATH, "Directories of the node."),
    storage_field("nfs", NFS, "Exports of an NFS server."),
    storage_field(
        "pvc",
        PVC,
        "Persistent volume claims, those that are there and those that pods bring along.",
    ),
    storage_field(
        "configMapVolume",
        CONFIG_MAP,
        "ConfigMaps as files.",
        ("configMapVolumes", "configMap"),
    ),
    storage_field("secretVolume", SECRET, "Secrets as files.", ("secretVolumes", "secret")),
    storage_field(
        "emptyDirVolume",
        EMPTY_DIR,
        "Scratch volumes that live as long as the pod.",
        ("emptyDir", "emptydir", "emptyDirVolumes"),
    ),
    storage_field("git", GIT, "Git repositories, checked out by an init container."),
    storage_field("s3", S3, "S3 buckets, through a CSI driver of the settings."),
    storage_field(
        "dataVolume",
        DATA_VOLUME,
        "Data volumes of the platform, known by the settings.",
        ("dataVolumes",),
    ),
)
