{{/* Values that contradict one another, which no schema can compare. */}}
{{- define "podgate.check" -}}
{{- $own := .Values.admission }}
{{- if and (gt (int $own.replicas) 1) (ge (int $own.maxUnavailable) (int $own.replicas)) }}
{{- fail (printf "admission.maxUnavailable is %d of %d admission.replicas: a drain could stop all of them; write %d or less" (int $own.maxUnavailable) (int $own.replicas) (sub $own.replicas 1)) }}
{{- end }}
{{- if and (eq (int $own.replicas) 1) (gt (int $own.maxUnavailable) 1) }}
{{- fail "admission.maxUnavailable is more than the one of admission.replicas; write 1" }}
{{- end }}
{{- if eq (int $own.port) (int $own.metricsPort) }}
{{- fail (printf "admission.port and admission.metricsPort are both %d; write two ports" (int $own.port)) }}
{{- end }}
{{- if and $own.clientCA.configMap (not $own.clientCA.clientNames) }}
{{- fail "admission.clientCA.configMap needs admission.clientCA.clientNames: without names every certificate of the CA is let in, and the cluster's CA signs one for every kubelet; write the API server's" }}
{{- end }}
{{- if and $own.clientCA.clientNames (not $own.clientCA.configMap) }}
{{- fail "admission.clientCA.clientNames needs admission.clientCA.configMap: without a CA nobody is asked for a certificate" }}
{{- end }}
{{- $deadline := .Values.settings.deadline | default 1.0 }}
{{- if ge (float64 $deadline) (subf (float64 .Values.hooks.timeoutSeconds) 0.3) }}
{{- fail (printf "settings.deadline is %v of %d hooks.timeoutSeconds: a review that waited for so long could not be answered; leave 0.3 s at least" $deadline (int .Values.hooks.timeoutSeconds)) }}
{{- end }}
{{- if and .Values.priorityClass.create (not (has .Values.priorityClass.name (list "" "system-cluster-critical"))) }}
{{- fail (printf "priorityClass.create makes the class podgate, and priorityClass.name is %s; write one of both" .Values.priorityClass.name) }}
{{- end }}
{{- $never := concat (list "kube-system" "kube-public" "kube-node-lease" .Release.Namespace) .Values.exempt }}
{{- if and .Values.probe.enabled (has .Values.probe.namespace $never) }}
{{- fail (printf "probe.namespace %s is never governed: hooks would never be proven, and so never fail closed; write another, or leave it out of exempt" .Values.probe.namespace) }}
{{- end }}
{{- if and .Values.probe.enabled (eq .Values.probe.namespace .Values.exceptions.namespace) }}
{{- fail (printf "probe.namespace and exceptions.namespace are both %s; write two namespaces" .Values.probe.namespace) }}
{{- end }}
{{- range .Values.breakGlass }}
{{- if has . (list "system:authenticated" "system:unauthenticated" "system:serviceaccounts") }}
{{- fail (printf "breakGlass has %s, of which everybody is a member: nothing would be evaluated; write a group of your own" .) }}
{{- end }}
{{- end }}
{{- $certificates := .Values.certificates }}
{{- if and .Values.hooks.static (eq $certificates.mode "managed") }}
{{- fail "hooks.static is set and certificates.mode is managed: the controller would exchange the CA, which API servers read from files; write secret or certManager" }}
{{- end }}
{{- if ge (int $certificates.overlapSeconds) (mul (int $certificates.leafDays) 86400 | int) }}
{{- fail (printf "certificates.overlapSeconds is not less than the %d days of certificates.leafDays" (int $certificates.leafDays)) }}
{{- end }}
{{- $hours := "^[0-9]+h$" }}
{{- if and (regexMatch $hours $certificates.certManager.duration) (regexMatch $hours $certificates.certManager.renewBefore) }}
{{- if ge (trimSuffix "h" $certificates.certManager.renewBefore | int) (trimSuffix "h" $certificates.certManager.duration | int) }}
{{- fail "certificates.certManager.renewBefore is not less than certificates.certManager.duration" }}
{{- end }}
{{- end }}
{{- if and .Values.scan.extraRules (not .Values.scan.everySeconds) }}
{{- fail "scan.extraRules are for a scan, and scan.everySeconds is 0" }}
{{- end }}
{{- range $who := list "admission" "controller" }}
{{- range $label := list "app.kubernetes.io/name" "app.kubernetes.io/component" }}
{{- if hasKey (index $.Values $who).podLabels $label }}
{{- fail (printf "%s.podLabels has %s, by which the Deployment finds its Pods; leave it out" $who $label) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
