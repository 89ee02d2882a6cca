{{- define "temper.labels" -}}
app.kubernetes.io/name: temper
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "temper.selector" -}}
app.kubernetes.io/name: temper
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* The settings of all processes, but for those that a part has of its own. Arguments: root, part, own. */}}
{{- define "temper.env" -}}
{{- $values := .root.Values -}}
{{- $policy := printf "https://%s-trainer:8600" .root.Release.Name -}}
{{- if eq .part "trainer" }}{{ $policy = "https://127.0.0.1:8600" }}{{ end -}}
- name: TEMPORAL_ADDRESS
  value: {{ required "temporal.address: expected host:port of Temporal's frontend" $values.temporal.address | quote }}
- name: TEMPORAL_NAMESPACE
  value: {{ $values.temporal.namespace | quote }}
{{- with $values.temporal.tlsSecret }}
- name: TEMPORAL_TLS_CLIENT_CERT_PATH
  value: /etc/temper/temporal/tls.crt
- name: TEMPORAL_TLS_CLIENT_KEY_PATH
  value: /etc/temper/temporal/tls.key
- name: TEMPORAL_TLS_SERVER_CA_CERT_PATH
  value: /etc/temper/temporal/ca.crt
{{- end }}
{{- with $values.temporal.serverName }}
- name: TEMPORAL_TLS_SERVER_NAME
  value: {{ . | quote }}
{{- end }}
- name: TEMPER_STORE
  value: {{ required "store.address: expected s3://bucket/prefix" $values.store.address | quote }}
{{- with $values.store.endpoint }}
- name: TEMPER_STORE_ENDPOINT
  value: {{ . | quote }}
{{- end }}
{{- with $values.store.region }}
- name: TEMPER_STORE_REGION
  value: {{ . | quote }}
{{- end }}
- name: TEMPER_STACK_KEY_FILE
  value: /etc/temper/stack/{{ $values.stackKey.key }}
- name: TEMPER_ENGINE_URLS
  value: {{ $values.engine.embedded | ternary $policy (join "," $values.engine.urls) | quote }}
- name: TEMPER_TRAINER_URL
  value: {{ $values.engine.embedded | ternary $policy $values.engine.trainerUrl | quote }}
{{- if $values.metrics.port }}
- name: TEMPER_METRICS_PORT
  value: {{ $values.metrics.port | quote }}
{{- end }}
{{- if $values.metrics.port }}
- name: TEMPER_METRICS_LISTEN
  value: 0.0.0.0
{{- end }}
{{- if and $values.engine.embedded (eq .part "trainer") }}
- name: TEMPER_LISTEN
  value: 0.0.0.0
{{- end }}
{{- if eq (include "temper.listens" .) "yes" }}
- name: TEMPER_LISTEN_CERT
  value: /etc/temper/tls/tls.crt
- name: TEMPER_LISTEN_KEY
  value: /etc/temper/tls/tls.key
{{- end }}
{{- if $values.engine.embedded }}
- name: NODE_EXTRA_CA_CERTS
  value: /etc/temper/tls/ca.crt
{{- end }}
{{- range $name, $value := $values.settings }}
{{- if not (hasKey ($.own | default dict) $name) }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/* "yes" if a Pod listens on the network, so that it needs the key of the certificate. Arguments: root, part. */}}
{{- define "temper.listens" -}}
{{- $values := .root.Values -}}
{{- if or $values.metrics.port (and $values.engine.embedded (eq .part "trainer")) }}yes{{ end }}
{{- end }}

{{/* The spec of a Pod that runs parts of the stack. Arguments: root, part, parts, resources, account, env, own, secret, volumes, mounts. */}}
{{- define "temper.pod" -}}
{{- $values := .root.Values -}}
serviceAccountName: {{ .account }}
automountServiceAccountToken: {{ eq .part "host" }}
# Variables of services could be taken for settings.
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: { type: RuntimeDefault }
{{- with $values.image.pullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with $values.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with $values.hostAliases }}
hostAliases: {{ toYaml . | nindent 2 }}
{{- end }}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "temper.selector" .root | nindent 8 }}
        app.kubernetes.io/component: {{ .part }}
# The workers drain for up to 20 seconds, and then a gateway for up to 10. What they do not end, their successors continue.
terminationGracePeriodSeconds: 60
containers:
  - name: temper
    image: "{{ $values.image.repository }}:{{ $values.image.tag | default .root.Chart.AppVersion }}"
    imagePullPolicy: {{ $values.image.pullPolicy }}
    args: [up, --parts, {{ .parts | quote }}]
    env:
      {{- include "temper.env" . | nindent 6 }}
      {{- with .env }}
      {{- . | nindent 6 }}
      {{- end }}
    {{- $secrets := compact (list $values.temporal.secret $values.store.secret $values.engine.secret $values.metrics.secret .secret) }}
    {{- if $secrets }}
    envFrom:
      {{- range $secrets }}
      - secretRef: { name: {{ . }} }
      {{- end }}
    {{- end }}
    resources: {{ toYaml .resources | nindent 6 }}
    securityContext:
      allowPrivilegeEscalation: false
      readOnlyRootFilesystem: true
      capabilities: { drop: [ALL] }
    # A host may have to wait until the machine before it of the same name counts as lost.
    startupProbe:
      exec: { command: [temper-healthy] }
      periodSeconds: 5
      timeoutSeconds: 5
      failureThreshold: 120
    # There is no liveness probe: the supervisor starts again what ends, and its own end is that of the container.
    readinessProbe:
      exec: { command: [temper-healthy] }
      periodSeconds: 10
      timeoutSeconds: 5
    volumeMounts:
      - { name: home, mountPath: /var/lib/temper }
      - { name: tmp, mountPath: /tmp }
      - { name: stack-key, mountPath: /etc/temper/stack, readOnly: true }
      {{- if $values.temporal.tlsSecret }}
      - { name: temporal-tls, mountPath: /etc/temper/temporal, readOnly: true }
      {{- end }}
      {{- if $values.tlsSecret }}
      - { name: tls, mountPath: /etc/temper/tls, readOnly: true }
      {{- end }}
      {{- with .mounts }}
      {{- . | nindent 6 }}
      {{- end }}
      {{- with $values.volumeMounts }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
volumes:
  - name: tmp
    emptyDir: {}
  - name: stack-key
    secret: { secretName: {{ $values.stackKey.secret }}, defaultMode: 0440 }
  {{- with $values.temporal.tlsSecret }}
  - name: temporal-tls
    secret: { secretName: {{ . }}, defaultMode: 0440 }
  {{- end }}
  {{- with $values.tlsSecret }}
  - name: tls
    secret:
      secretName: {{ . }}
      defaultMode: 0440
      {{- if ne (include "temper.listens" $) "yes" }}
      items: [{ key: ca.crt, path: ca.crt }]
      {{- end }}
  {{- end }}
  {{- with .volumes }}
  {{- . | nindent 2 }}
  {{- end }}
  {{- with $values.volumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{/* The metadata of a Pod template. Arguments: root, part. */}}
{{- define "temper.podMetadata" -}}
labels:
  {{- include "temper.labels" .root | nindent 2 }}
  app.kubernetes.io/component: {{ .part }}
{{- with .root.Values.podAnnotations }}
annotations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* The claim of a home. Arguments: storage, labels. */}}
{{- define "temper.homeClaim" -}}
- metadata: { name: home }
  spec:
    accessModes: [ReadWriteOnce]
    {{- if .hostPath }}
    storageClassName: ''
    {{- else if .className }}
    storageClassName: {{ .className }}
    {{- end }}
    resources:
      requests: { storage: {{ .size }} }
{{- end }}

{{/* A volume on a directory of the node, for the claim of one Pod, which `helm uninstall` keeps, too. Arguments: root, pod, storage. */}}
{{- define "temper.nodeVolume" -}}
apiVersion: v1
kind: PersistentVolume
metadata:
  name: {{ .root.Release.Namespace }}-{{ .pod }}
  labels:
    {{- include "temper.labels" .root | nindent 4 }}
    # A volume is in no namespace, and releases of the same name may be in several.
    temper.namespace: {{ .root.Release.Namespace }}
  annotations: { helm.sh/resource-policy: keep }
spec:
  capacity: { storage: {{ .storage.size }} }
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  storageClassName: ''
  hostPath: { path: {{ .storage.hostPath }}/{{ .pod }}, type: Directory }
  claimRef: { namespace: {{ .root.Release.Namespace }}, name: home-{{ .pod }} }
{{- end }}
