{{/* Labels of everything. */}}
{{- define "podgate.labels" -}}
app.kubernetes.io/name: podgate
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{/* The image, by digest where one is given. */}}
{{- define "podgate.image" -}}
{{- $name := .Values.image.repository -}}
{{- if .Values.image.registry -}}{{- $name = printf "%s/%s" (trimSuffix "/" .Values.image.registry) $name -}}{{- end -}}
{{- if .Values.image.digest -}}
{{ printf "%s@%s" $name .Values.image.digest }}
{{- else -}}
{{ printf "%s:%s" $name (.Values.image.tag | default .Chart.AppVersion) }}
{{- end -}}
{{- end }}

{{/* The port of a URL. */}}
{{- define "podgate.portOf" -}}
{{- $url := urlParse . -}}
{{- $port := regexFind ":[0-9]+$" $url.host | trimPrefix ":" -}}
{{- $port | default (ternary "443" "80" (eq $url.scheme "https")) -}}
{{- end }}

{{/* What a Pod may be: nobody in particular, without rights on its node. */}}
{{- define "podgate.podSecurity" -}}
runAsNonRoot: true
{{- if not .Values.randomUserID }}
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
{{- end }}
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "podgate.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* The lines that all Pods share. */}}
{{- define "podgate.pod" -}}
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
{{- range . }}
- name: {{ . }}
{{- end }}
{{- end }}
{{- if .Values.priorityClass.create }}
priorityClassName: podgate
{{- else if .Values.priorityClass.name }}
priorityClassName: {{ .Values.priorityClass.name }}
{{- end }}
securityContext:
  {{- include "podgate.podSecurity" . | nindent 2 }}
{{- end }}

{{/* Whether documents or lists come with the release. */}}
{{- define "podgate.hasFiles" -}}
{{- if or .Values.policies .Values.interfaces .Values.assets .Values.trustedMutators .Values.trustedControllers .Values.injected }}true{{ end -}}
{{- end }}

{{/* Settings that webhook and controller must agree on, as variables. */}}
{{- define "podgate.settings" -}}
- name: PODGATE_EXCEPTIONS_NAMESPACE
  value: {{ .Values.exceptions.namespace | quote }}
{{- range $kind := list "policies" "interfaces" "assets" }}
{{- if index $.Values $kind }}
- name: PODGATE_{{ upper $kind }}
  value: /etc/podgate/{{ $kind }}
{{- end }}
{{- end }}
{{- if .Values.trustedMutators }}
- name: PODGATE_TRUSTED_MUTATORS
  value: /etc/podgate/lists/trusted-mutators.yaml
{{- end }}
{{- if .Values.trustedControllers }}
- name: PODGATE_TRUSTED_CONTROLLERS
  value: /etc/podgate/lists/trusted-controllers.yaml
{{- end }}
{{- with .Values.exempt }}
- name: PODGATE_EXEMPT
  value: {{ join "," . | quote }}
{{- end }}
{{- if .Values.injected }}
- name: PODGATE_INJECTED
  value: /etc/podgate/lists/injected.yaml
{{- end }}
{{- range $name, $value := .Values.settings }}
- name: PODGATE_{{ snakecase $name | upper }}
  {{- if kindIs "slice" $value }}
  value: {{ join "," $value | quote }}
  {{- else if kindIs "string" $value }}
  value: {{ $value | quote }}
  {{- else }}
  value: {{ $value | toJson | quote }}
  {{- end }}
{{- end }}
{{- end }}

{{- define "podgate.fileMounts" -}}
{{- range $kind := list "policies" "interfaces" "assets" }}
{{- if index $.Values $kind }}
- name: {{ $kind }}
  mountPath: /etc/podgate/{{ $kind }}
  readOnly: true
{{- end }}
{{- end }}
{{- if or .Values.trustedMutators .Values.trustedControllers .Values.injected }}
- name: lists
  mountPath: /etc/podgate/lists
  readOnly: true
{{- end }}
{{- end }}

{{- define "podgate.fileVolumes" -}}
{{- range $kind := list "policies" "interfaces" "assets" }}
{{- if index $.Values $kind }}
- name: {{ $kind }}
  configMap:
    name: podgate-{{ $kind }}
{{- end }}
{{- end }}
{{- if or .Values.trustedMutators .Values.trustedControllers .Values.injected }}
- name: lists
  configMap:
    name: podgate-lists
{{- end }}
{{- end }}

{{/* Lists are read when a process starts: a change of them starts Pods anew. Documents are watched. */}}
{{- define "podgate.listsChecksum" -}}
{{- printf "%s%s%s" .Values.trustedMutators (toJson .Values.trustedControllers) .Values.injected | sha256sum -}}
{{- end }}

{{/* How to spread Pods of one component over nodes and zones; takes a component. */}}
{{- define "podgate.spread" -}}
{{- range $key := list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
- maxSkew: 1
  topologyKey: {{ $key }}
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels:
      app.kubernetes.io/name: podgate
      app.kubernetes.io/component: {{ $ }}
  matchLabelKeys: [pod-template-hash]
{{- end }}
{{- end }}
