{{- define "berth.labels" -}}
app.kubernetes.io/name: berth
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "berth.selector" -}}
app.kubernetes.io/name: berth
app.kubernetes.io/component: scheduler
{{- end }}

{{- define "berth.queueSelector" -}}
app.kubernetes.io/name: berth
app.kubernetes.io/component: queue
{{- end }}

{{- define "berth.loginSelector" -}}
app.kubernetes.io/name: berth
app.kubernetes.io/component: login
{{- end }}

{{- /* image of a part: dict "root" $ "name" "berth-agent" "image" .Values.agent.image */ -}}
{{- define "berth.image" -}}
{{- if .image }}{{ .image }}{{ else -}}
{{ .root.Values.image.registry }}/{{ .name }}:{{ .root.Values.image.tag | default .root.Chart.AppVersion }}
{{- end }}
{{- end }}

{{- define "berth.agentImage" -}}
{{- include "berth.image" (dict "root" . "name" "berth-agent" "image" .Values.agent.image) -}}
{{- end }}

{{- /* live: "yes" where the cluster can be asked (not in helm template) */ -}}
{{- define "berth.live" -}}
{{- if lookup "v1" "Namespace" "" "kube-system" }}yes{{ end -}}
{{- end }}

{{- /* ours: "yes" when the object given belongs to this release */ -}}
{{- define "berth.ours" -}}
{{- $notes := (.object.metadata).annotations | default dict -}}
{{- if and (eq (index $notes "meta.helm.sh/release-name" | default "") .root.Release.Name) (eq (index $notes "meta.helm.sh/release-namespace" | default "") .root.Release.Namespace) }}yes{{ end -}}
{{- end }}

{{- /* jobset: "yes" when Berth's scheduler runs JobSet's controllers. Once it
does it goes on, because the CRD is then this release's. */ -}}
{{- define "berth.jobset" -}}
{{- $embedded := .Values.jobset.embedded | toString -}}
{{- if eq $embedded "true" }}yes
{{- else if eq $embedded "auto" -}}
{{- $crd := lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" "jobsets.jobset.x-k8s.io" -}}
{{- if or (not $crd) (include "berth.ours" (dict "root" . "object" $crd)) }}yes{{ end -}}
{{- end -}}
{{- end }}

{{- /* podgroup: "yes" when the PodGroup CRD is this release's to make */ -}}
{{- define "berth.podgroup" -}}
{{- $crd := lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" "podgroups.scheduling.x-k8s.io" -}}
{{- if or (not $crd) (include "berth.ours" (dict "root" . "object" $crd)) }}yes{{ end -}}
{{- end }}

{{- /* auto: "yes" for true, or for auto where an API is served:
dict "root" $ "value" .Values.x "api" "group/version" */ -}}
{{- define "berth.auto" -}}
{{- $v := .value | toString -}}
{{- if or (eq $v "true") (and (eq $v "auto") (.root.Capabilities.APIVersions.Has .api)) }}yes{{ end -}}
{{- end }}

{{- /* homeVolume: the volume source of homes, as JSON */ -}}
{{- define "berth.homeVolume" -}}
{{- if .Values.home.volume }}{{ .Values.home.volume | toJson }}
{{- else if .Values.home.nfs }}{{ dict "nfs" .Values.home.nfs | toJson }}
{{- else }}{{ dict "hostPath" (dict "path" .Values.home.hostPath "type" "DirectoryOrCreate") | toJson }}
{{- end -}}
{{- end }}

{{- /* loginPodSpec: the spec of users' login pods, as JSON; what has to do with
the user is the login node's to add. */ -}}
{{- define "berth.loginPodSpec" -}}
{{- $l := .Values.login -}}
{{- $mount := dict "name" "home" "mountPath" .Values.home.mountPath -}}
{{- $image := include "berth.image" (dict "root" . "name" "berth-login" "image" (default $l.image $l.pods.image)) -}}
{{- $c := dict "name" "login" "image" $image "imagePullPolicy" .Values.image.pullPolicy "resources" $l.pods.resources "volumeMounts" (list $mount) -}}
{{- $spec := dict "containers" (list $c) "volumes" (list (merge (dict "name" "home") (include "berth.homeVolume" . | fromJson))) -}}
{{- with .Values.image.pullSecrets }}{{ $_ := set $spec "imagePullSecrets" . }}{{ end -}}
{{- $spec | toJson -}}
{{- end }}

{{- /* template: the pod template of partitions, as JSON */ -}}
{{- define "berth.template" -}}
{{- $mount := dict "name" "home" "mountPath" .Values.home.mountPath -}}
{{- $job := dict "name" "job" "image" .Values.jobs.image "imagePullPolicy" .Values.image.pullPolicy "volumeMounts" (list $mount) -}}
{{- $volume := merge (dict "name" "home") (include "berth.homeVolume" . | fromJson) -}}
{{- $spec := dict "containers" (list $job) "volumes" (list $volume) -}}
{{- with .Values.image.pullSecrets }}{{ $_ := set $spec "imagePullSecrets" . }}{{ end -}}
{{- mustMergeOverwrite (dict "spec" $spec) (deepCopy .Values.jobs.template) | toJson -}}
{{- end }}

{{- /* objects: what the scheduler makes of the values (--objects). The agent is
the scheduler's --agent-image, which chooses how each node can take it. */ -}}
{{- define "berth.objects" -}}
{{- $first := true }}
{{- range .Values.users }}
---
apiVersion: berth.hpc/v1alpha1
kind: User
metadata:
  name: {{ .name }}
spec:
  uid: {{ int64 .uid }}
  gid: {{ int64 (default .uid .gid) }}
  namespace: {{ .namespace | default (printf "user-%s" .name) }}
  home: {{ .home | default (printf "%s/%s" $.Values.home.mountPath .name) }}
  shell: {{ .shell | default "/bin/bash" }}
  adminLevel: {{ .adminLevel | default (ternary "Administrator" "None" $first) }}
  {{- with .groups }}
  groups: {{ toJson . }}
  {{- end }}
  {{- with .identities }}
  identities: {{ toJson . }}
  {{- end }}
  {{- with .keys }}
  sshKeys: {{ toJson . }}
  {{- end }}
{{- $first = false }}
{{- end }}
{{- $partitions := .Values.partitions | default (dict "main" (dict "default" true "nodes" "ALL")) }}
{{- range $name, $spec := $partitions }}
{{- $default := dict "sharedPaths" (list $.Values.home.mountPath) "template" (include "berth.template" $ | fromJson) }}
{{- with $.Values.jobs.allowImages }}{{ $_ := set $default "allowImages" . }}{{ end }}
---
apiVersion: berth.hpc/v1alpha1
kind: Partition
metadata:
{{- if regexMatch "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$" $name }}
  name: {{ $name }}
{{- else }}
  name: {{ include "berth.partitionObject" $name }}
  annotations:
    berth.hpc/name: {{ $name | quote }}
{{- end }}
spec: {{ merge (deepCopy $spec) $default | toJson }}
{{- end }}
{{- with .Values.cluster }}
---
apiVersion: berth.hpc/v1alpha1
kind: Cluster
metadata:
  name: berth
spec: {{ toJson . }}
{{- end }}
{{- end }}

{{- /* partitionObject: the name of the object of a partition whose own Kubernetes does not accept, as v1alpha1.PartitionObject has it */ -}}
{{- define "berth.partitionObject" -}}
{{- $readable := regexReplaceAll "[^a-z0-9]+" (lower .) "-" | trimAll "-" | trunc 54 | trimSuffix "-" -}}
{{- printf "%s-%s" $readable (sha256sum . | trunc 8) | trimPrefix "-" -}}
{{- end }}

{{- /* serverPod: what the pods of scheduler and readers have alike */ -}}
{{- define "berth.serverPod" -}}
serviceAccountName: berth-scheduler
enableServiceLinks: false
{{- with .Values.image.pullSecrets }}
imagePullSecrets: {{ toJson . }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- /* serverContainer: and their containers */ -}}
{{- define "berth.serverContainer" -}}
livenessProbe: {httpGet: {path: /livez, port: health}, periodSeconds: 10, failureThreshold: 6}
readinessProbe: {httpGet: {path: /readyz, port: health}, periodSeconds: 2}
startupProbe: {httpGet: {path: /livez, port: health}, periodSeconds: 2, failureThreshold: 60}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{- /* apart: replicas of a component rather on different nodes */ -}}
{{- define "berth.apart" -}}
podAntiAffinity:
  preferredDuringSchedulingIgnoredDuringExecution:
  - weight: 100
    podAffinityTerm:
      topologyKey: kubernetes.io/hostname
      labelSelector: {matchLabels: {app.kubernetes.io/component: {{ . }}, app.kubernetes.io/name: berth}}
{{- end }}

{{- /* accountingURL: the variable with PostgreSQL's URL, for env */ -}}
{{- define "berth.accountingURL" -}}
{{- $p := .Values.accounting.postgresql -}}
{{- if eq .Values.accounting.storage "postgresql" -}}
- name: ACCOUNTING_URL
  valueFrom:
    secretKeyRef:
      name: {{ if $p.url }}berth-accounting{{ else }}{{ $p.existingSecret }}{{ end }}
      key: {{ if $p.url }}url{{ else }}{{ $p.secretKey }}{{ end }}
{{- end }}
{{- end }}

{{- /* metricsRule: who may reach the port of metrics and probes, whose name comes second */ -}}
{{- define "berth.metricsRule" -}}
{{- $from := (index . 0).Values.networkPolicy.metricsFrom -}}
- ports: [{port: {{ index . 1 }}}]
{{- with $from }}
  from: {{ toJson . }}
{{- end }}
{{- end }}

{{- /* directoryConfig: the file of --directory, with the paths of the Secret and the
authorities where they are not set */ -}}
{{- define "berth.directoryConfig" -}}
{{- $d := .Values.directory -}}
{{- $config := deepCopy $d.config -}}
{{- range $config.sources }}
{{- with .ldap }}
{{- if and .bindDN $d.bindPasswordSecret.name (not .bindPasswordFile) }}
{{- $_ := set . "bindPasswordFile" (printf "/etc/berth/directory-secret/%s" $d.bindPasswordSecret.key) }}
{{- end }}
{{- if and $d.ca (not .caFile) }}{{ $_ := set . "caFile" "/etc/berth/directory/ca.crt" }}{{ end }}
{{- end }}
{{- end }}
{{- toYaml $config }}
{{- end }}

{{- /* egress: "yes" where the destinations of users' pods are limited */ -}}
{{- define "berth.egress" -}}
{{- if and .Values.networkPolicy.enabled .Values.networkPolicy.egress.enabled }}yes{{ end -}}
{{- end }}

{{- /* egressRules: the destinations of users' pods, for --egress-policy. The
scheduler adds the API server, whose addresses no selector covers. */ -}}
{{- define "berth.egressRules" -}}
users:
- to: [{podSelector: {}}]
{{ include "berth.egressCommon" . }}
{{- if .Values.login.enabled }}
namespaces:
  berth-login:
  # ssh -L and ssh to the nodes of a job, and the pods in which sessions run.
  - to:
    - namespaceSelector: {matchExpressions: [{key: berth.hpc/user-namespace, operator: Exists}]}
    - namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: berth-login-pods}}
  {{- include "berth.egressCommon" . | nindent 2 }}
  berth-login-pods:
  {{- include "berth.egressCommon" . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "berth.egressCommon" -}}
{{- with .Values.networkPolicy.egress.dns -}}
- to: {{ toJson . }}
  # Ports of the pods, which are 5353 where the servers run without privileges.
  ports: [{port: 53, protocol: UDP}, {port: 53}, {port: 5353, protocol: UDP}, {port: 5353}]
{{ end -}}
- to:
  - namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: {{ .Release.Namespace }}}}
    podSelector: {matchExpressions: [{key: app.kubernetes.io/component, operator: In, values: [scheduler, queue]}]}
  ports: [{port: 6820}]
{{- with .Values.networkPolicy.egress.to }}
{{ toYaml . }}
{{- end }}
{{- end }}
