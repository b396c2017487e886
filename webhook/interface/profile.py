"""A workload profile: how policy fields land on a kind, parsed and compiled.

A profile stands beside the kind's resource interface and speaks of its components by name. All
places are native jq paths from the object's root; a place may match several times. An example:

    apiVersion: podgate.dev/v1alpha1
    kind: WorkloadProfile
    metadata: {name: pytorchjob.kubeflow.org}
    spec:
      group: kubeflow.org               # "" for the core group
      kind: PyTorchJob
      versions: [v1, v2]                # of one layout, but see perVersion
      resource: pytorchjobs             # plural name, by which scale reviews are recognised
      workloadType: distributed         # absent: bound by group and kind only
      builtIn: false                    # true: the API server fills in its defaults
      uncovered: deny                   # deny | warn: containers outside all known places
      components:
        replica:
          role: worker                  # or, by the instance's name without case:
          roles: {byInstance: {Master: master}, otherwise: worker}
          # or {index: 0}, {withPorts: true}; absent: no convention; namedAt: a place that names it
          mainContainer: {name: pytorch, namedAt: .spec.mainContainer}
          children: derived             # derived: made verbatim | merged: filled in elsewhere
          mergedWith: .spec.x           # merged while this place is set
          makes: [{group: batch, kind: Job}]   # what is made at once for such components alone
          leaderWith: .spec.y           # the role is leader while this place is set
          withoutTemplate: true         # its extra containers make a pod where no template is
          standsInFor: leader           # its pods are also those of `leader`, with both roles,
                                        # while `leader` has none of its own: by instance
          scale:
            absent: 1                   # replicas when the object states none
            absentOf: {Worker: 0}       # other numbers for some instances, without case
            instance: Worker            # the bounds below are of this instance only
            minimum: .spec.elasticPolicy.minReplicas
            maximum: .spec.elasticPolicy.maxReplicas
            maximumOnlyWith: .spec.x    # the maximum holds only while this place is true
            unlimited: true             # a maximum that is absent or 0 is no bound at all
            noneWhile: .spec.x | select(.y == "z")   # no pods while this finds something
            unlimitedWhile: .spec.x     # no bound while this finds something
            podsOf: replica             # these are the pods of another component, stated twice
            # groups that multiply the instances that they list, as `lists` names them; minimum and
            # maximum are bounds of the group's own replicas, which are `absent`, or 1, unstated
            groups:
              - {lists: '.spec.groups[].names[]', replicas: '.spec.groups[].replicas', absent: 1}
      fields:                           # workload-level fields of the catalogue, by name
        backoffLimit: {places: [.spec.runPolicy.backoffLimit]}
        minReplicas:
          places: [.spec.elasticPolicy.minReplicas]
          onlyWith: .spec.elasticPolicy # a default never creates this parent
          notWith: .spec.scale.enabled  # no default is written while this place is set and not false
        numWorkers: {scaleOf: {component: replica, instance: Worker}}   # sum of replicas
        distributedFramework: {derived: PyTorch}                        # follows from the kind
        # how the object writes the value where that is not the field's own form, one word or a
        # list: text (a number as text), duration (seconds as "30s"), plusOne, clusterLocal (true as
        # that word), accessMode:<Mode> (true as that mode), metricName (throughput as rps),
        # disruptionRule (true as a failure rule; disruptionRuleOfJob where the server fills in what
        # goes with it), anyTrue (one of several switches or objects),
        # enabledRoute (http or grpc by the switch that is on), unlimitedZero (0 breaks any max)
        workers: {places: [.spec.size], as: plusOne}
        # without a value there is no limit, by the operator's source, and `max` is broken; needsParent:
        # only where the object around it is set; onlyWith: only while this is set and not false;
        # evenIfSet: the operator then ignores the number
        maxReplicas:
          places: [.spec.scaling.max]
          absentIsUnlimited: {source: "x v1, defaults.go", needsParent: true, onlyWith: .spec.scaling}
        # several places: rules look at all, a default goes to `write` (a path or several);
        # firstCounts: in each element the first place that is set hides the others
        # a field of pods that those without it take from the workload: judged there too
        scheduling.schedulerName: {places: [.spec.schedulerName]}
        # which values the kind takes; a default outside is not written, and told
        restartPolicy: {places: [.spec.template.spec.restartPolicy], allows: [Always]}
        # the first port of the main container in the pods of a component
        servingPort.container: {mainPort: replica}
      priorityClass: {secondPlaces: [.spec.runPolicy.schedulingPolicy.priorityClass]}
      # main: it is the pod's main container; a place with the component's `[]` is of its instance
      extraContainers:
        - {component: head, place: .spec.sidecar, onlyIn: [v1], main: false, note: "when it runs"}
      podParts:                         # a pod that is stated piece by piece: where a place of it
        - {component: replica, pod: .spec.tolerations, place: .spec.tolerations}     # is, and how
        - {component: replica, pod: '.spec.containers[0].image', place: .spec.image, form: image}
        - {component: replica, pod: .spec.securityContext.runAsUser, place: .spec.userID, absent: 1}
        - component: replica            # parts that make a pod: without one of them there is none
          pod: '.spec.containers[0]'
          place: .spec.container
          makesPod: true
        - {component: replica, pod: '.spec.containers[]', place: '.spec.tools[]', form: item}
        - {component: replica, pod: '.spec.containers[].image', place: '.spec.tools[].image'}
      notPods: [{place: .spec.x, reason: "a request body"}]
      embedded:                         # whole objects, judged by the definitions of their kinds
        - place: '.spec.components[].template'
          podSets:                      # pods beside, as text paths from the element of the place
            path: '.spec.components[].podSets[].path'
            replicas: '.spec.components[].podSets[].replicas'
          podless: [{group: "", kind: Service}]   # kinds that need no definition in there
      forbiddenFields: [{field: tty, unless: a-feature, reason: "refused by the kind"}]
      # what the CRD (by: crd) or the operator's webhook (by: operator) fills in where nothing is set:
      # written offline before anything is evaluated, and not taken for a user's value in a cluster;
      # in this order, only into objects that exist, `{}` makes one; sameAs: the value of another place
      # of the same element; zeroToo: the operator replaces 0 too, which then counts as unset
      shadowDefaults:
        - {path: .spec.runPolicy.suspend, value: false, by: crd}
        - {path: .spec.runPolicy.retries, value: 3, by: operator, zeroToo: true}
        - {path: '.spec.groups[].scaling.min', sameAs: '.spec.groups[].replicas', by: operator}
      # the operator's webhook completes the object as the API server completes this built-in kind,
      # after shadowDefaults
      defaultsOf: {group: apps, kind: StatefulSet}
      immutable: [{place: .spec.template, except: [.spec.template.spec.tolerations]}]
      # kinds between the workload and its pods; without a definition of each, all children are merged
      intermediateKinds: [{group: batch, kind: Job}]
      controllers: ["system:serviceaccount:kubeflow:training-operator"]   # exact user names
      # objects that are named; pods come of them unless `pods` is false or they are core kinds
      # or claims, and then a warning names them. impliedBy: set without a name, a controller chooses
      references:
        - {place: .spec.ref.name, group: g, kind: K, kindPlace: .spec.ref.kind, pods: true}
      # texts that change pods unread, told by a warning; of a map these beginnings of keys only
      podTexts: [{place: .spec.conf, keys: [spark.kubernetes.]}]
      # places that a controller writes and that end in the pods; anybody else's values are refused
      reserved: [{place: '.spec.components[].podSetInfos', writer: Kueue}]
      # what the operator itself adds to the pods that it makes, by whole content, in the form of
      # the settings' list of injected content
      adds: {containers: [{name: wait, image: 'docker.io/library/alpine:3.10'}], items: []}
      clusterScoped: false              # true: in no namespace, so that no webhook is asked
      # what `scale` sets; {field: replicas} where it is a number of the workload and of no component
      scaleSubresource: {component: replica, instance: Worker}
      nameLabel: training.kubeflow.org/job-name   # by it pods carry the workload's name
      claimTemplates: [".spec.volumeClaimTemplates[]"]   # claims that are volumes of its pods, or
                                        # {mountPath, volumeClaimName or volumeClaim} for all
                                        # containers, or {claimName or size, storageClassName, …},
                                        # none where enabled is false
      # claims of devices beside the pods that share them, {name, namespace} of a template, which is
      # one of `templates`, {name, templateSpec}, or an object; only for instances that are listed
      sharedClaims: [{claims: '.spec.sharing[]', templates: '.spec.templates[]', onlyFor: []}]
      podSecurityContext: false         # defaults of it go to containers; absent: true
      steering: {labels: [], annotations: []}   # metadata that changes what the pods become
      openSubtrees: []                  # schema-open places, walked at run time;
                                        # absent: the whole object is walked
      perVersion:                       # what one of `versions` has instead: whole sections, of
        v2:                             # fields and components single entries (null: without
          fields: {minReplicas: null}   # it). Each such version has its own resource interface.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from webhook.documents import read_model as typed
from webhook.documents.problem import Problem
from webhook.documents.read_model import Report
from webhook.documents.source import SourceDocument
from webhook.interface.interface import Interface
from webhook.interface.profile_build import SPEC, Builder
from webhook.interface.profile_document import ProfileSpec
from webhook.interface.profile_rules import check_profile
from webhook.interface.profile_values import (
    Children,
    ComponentProfile,
    ExtraContainer,
    FieldPlaces,
    ForbiddenField,
    Groups,
    Immutable,
    MainConvention,
    NotPod,
    Profile,
    Reference,
    ScaleOf,
    ScaleRules,
    ShadowDefault,
    SharedClaims,
)

__all__ = [
    "Children",
    "ComponentProfile",
    "ExtraContainer",
    "FieldPlaces",
    "ForbiddenField",
    "Groups",
    "Immutable",
    "MainConvention",
    "NotPod",
    "Profile",
    "Reference",
    "ScaleOf",
    "ScaleRules",
    "ShadowDefault",
    "SharedClaims",
    "check_profile",
    "is_profile",
    "parse_profile",
    "without_profile",
]

API_VERSION = "podgate.dev/v1alpha1"
KIND = "WorkloadProfile"


def without_profile(interface: Interface) -> Profile:
    """What holds for a kind that has no profile: workers, no workload fields, all is walked."""
    return Profile(interface.group, interface.kind, (interface.version,), "")


def is_profile(document: Any) -> bool:
    """Whether a decoded document is a WorkloadProfile, by apiVersion and kind."""
    return (
        isinstance(document, dict)
        and document.get("apiVersion") == API_VERSION
        and document.get("kind") == KIND
    )


def parse_profile(document: SourceDocument) -> tuple[Profile | None, tuple[Problem, ...]]:
    """The profile, None when it cannot be used, and all problems, warnings included."""
    report = Report(document)
    if not is_profile(document.data):
        report.add((), "not a workload profile", f"write {API_VERSION} {KIND}", "wrong-kind")
        return None, tuple(report.problems)
    body = document.data.get("spec")
    spec = typed.read(ProfileSpec, body, SPEC, report)
    if spec is None:
        return None, tuple(report.problems)
    metadata = document.data.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    profile = Builder(report).profile(spec, str(name or ""))
    profile = replace(profile, others=other_versions(spec, body, profile.name, report))
    return (None if report.failed else profile), tuple(report.problems)


BY_ENTRY = ("components", "fields")


def other_versions(
    spec: ProfileSpec, body: dict[str, Any], name: str, report: Report
) -> dict[str, Profile]:
    """The profiles of the versions that differ; problems are told where the whole is written."""
    found = {}
    for version in spec.per_version:
        at = (*SPEC, "perVersion", version)
        if version not in spec.versions:
            fix = "add it to `versions`, or remove it here"
            report.add(at, "not among `versions`", fix, "version-unknown")
        # Nulls take entries away, so the changes are taken as written.
        changes = body["perVersion"][version]
        changed = {**body, **changes}
        changed.pop("perVersion")
        for key in BY_ENTRY:
            if isinstance(changes.get(key), dict):
                changed[key] = {**(body.get(key) or {}), **changes[key]}
        own = typed.read(ProfileSpec, {**changed, "versions": [version]}, SPEC, report)
        if own is not None:
            found[version] = Builder(report).profile(own, name)
    return found
