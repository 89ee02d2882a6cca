{{/* Refuses values with which the release could not work. */}}
{{- define "temper.check" -}}
{{- $values := .Values -}}
{{- if not (or $values.engine.embedded (and $values.engine.urls $values.engine.trainerUrl)) }}
{{- fail "engine: expected urls and trainerUrl, or embedded: true" }}
{{- end -}}
{{- if and $values.engine.embedded (not $values.engine.secret) }}
{{- fail "engine.secret: expected a secret with TEMPER_ENGINE_API_KEY and TEMPER_TRAINER_API_KEY, which the embedded server asks for" }}
{{- end -}}
{{- if and (or $values.engine.embedded $values.metrics.port) (not $values.tlsSecret) }}
{{- fail "tlsSecret: expected a secret with tls.crt, tls.key and ca.crt, by which the embedded server and the metrics serve TLS" }}
{{- end -}}
{{- if and $values.metrics.port (not $values.metrics.secret) }}
{{- fail "metrics.secret: expected a secret with TEMPER_METRICS_TOKEN, which the metrics ask for" }}
{{- end -}}
{{- if eq $values.sandboxes.namespace .Release.Namespace }}
{{- fail (printf "sandboxes.namespace: expected another namespace than %s, that of the release: what is in it may connect to nothing" .Release.Namespace) }}
{{- end -}}
{{- include "temper.checkSettings" (dict "root" . "of" "settings" "settings" $values.settings) }}
{{- include "temper.checkSettings" (dict "root" . "of" "hosts.settings" "settings" $values.hosts.settings) }}
{{- include "temper.checkCluster" . }}
{{- end }}

{{/* Refuses settings that hold a secret, or that the chart has from another value. Arguments: root, of, settings. */}}
{{- define "temper.checkSettings" -}}
{{- $owned := dict
  "TEMPORAL_ADDRESS" "temporal.address" "TEMPORAL_NAMESPACE" "temporal.namespace"
  "TEMPORAL_TLS_CLIENT_CERT_PATH" "temporal.tlsSecret" "TEMPORAL_TLS_CLIENT_KEY_PATH" "temporal.tlsSecret"
  "TEMPORAL_TLS_SERVER_NAME" "temporal.serverName"
  "TEMPER_STORE" "store.address" "TEMPER_STORE_ENDPOINT" "store.endpoint" "TEMPER_STORE_REGION" "store.region"
  "TEMPER_STACK_KEY_FILE" "stackKey" "TEMPER_ENGINE_URLS" "engine.urls" "TEMPER_TRAINER_URL" "engine.trainerUrl"
  "TEMPER_METRICS_PORT" "metrics.port" "TEMPER_METRICS_LISTEN" "metrics.port" "TEMPER_LISTEN" "engine.embedded"
  "TEMPER_LISTEN_CERT" "tlsSecret" "TEMPER_LISTEN_KEY" "tlsSecret"
  "TEMPER_HOST" "the name of the Pod" "TEMPER_CAPACITY" "hosts.capacity"
  "TEMPER_HOME" "the image" "XDG_STATE_HOME" "the image" "XDG_CACHE_HOME" "the image"
  "TEMPER_JOURNALS" "hosts.journalsClaim" "TEMPER_KUBERNETES_NAMESPACE" "sandboxes.namespace"
  "TEMPER_KUBERNETES_PROGRAMS" "sandboxes.programs" -}}
{{- if .root.Values.engine.embedded }}{{ $_ := set $owned "NODE_EXTRA_CA_CERTS" "ca.crt in tlsSecret" }}{{ end }}
{{- if .root.Values.temporal.tlsSecret }}{{ $_ := set $owned "TEMPORAL_TLS_SERVER_CA_CERT_PATH" "ca.crt in temporal.tlsSecret" }}{{ end }}
{{- range $name, $value := .settings }}
{{- with get $owned $name }}
{{- fail (printf "%s: the chart sets %s from %s; leave it out here" $.of $name .) }}
{{- end }}
{{- if and (regexMatch "(SECRET|TOKEN$|PASSWORD|API_KEY|STACK_KEY|ACCESS_KEY|KEY_DATA$)" $name) (not (hasSuffix "_FILE" $name)) }}
{{- fail (printf "%s: %s is a secret, and Helm keeps values as they are; put it into a Kubernetes secret that `temporal.secret`, `store.secret`, `engine.secret`, `metrics.secret` or `hosts.secret` names" $.of $name) }}
{{- end }}
{{- end }}
{{- end }}

{{/* Refuses to install where a secret or claim is missing, for which Pods would wait, or where Helm would refuse a namespace. `helm template` and lint see no cluster. */}}
{{- define "temper.checkCluster" -}}
{{- $values := .Values -}}
{{- $namespace := .Release.Namespace -}}
{{- if lookup "v1" "ServiceAccount" $namespace "default" }}
{{- $certificate := list "tls.crt" "tls.key" "ca.crt" }}
{{- $apiKeys := $values.engine.embedded | ternary (list "TEMPER_ENGINE_API_KEY" "TEMPER_TRAINER_API_KEY") list }}
{{- range list
  (list "stackKey.secret" $values.stackKey.secret (list $values.stackKey.key))
  (list "temporal.secret" $values.temporal.secret list)
  (list "temporal.tlsSecret" $values.temporal.tlsSecret $certificate)
  (list "store.secret" $values.store.secret (list "AWS_ACCESS_KEY_ID" "AWS_SECRET_ACCESS_KEY"))
  (list "engine.secret" $values.engine.secret $apiKeys)
  (list "tlsSecret" $values.tlsSecret $certificate)
  (list "hosts.secret" $values.hosts.secret list)
  (list "metrics.secret" $values.metrics.secret (list "TEMPER_METRICS_TOKEN")) }}
{{- if index . 1 }}
{{- include "temper.checkSecret" (dict "namespace" $namespace "of" (index . 0) "name" (index . 1) "keys" (index . 2)) }}
{{- end }}
{{- end }}
{{- range $values.image.pullSecrets }}
{{- include "temper.checkSecret" (dict "namespace" $namespace "of" "image.pullSecrets" "name" .name "keys" list) }}
{{- end }}
{{- with $values.hosts.journalsClaim }}
{{- if not (lookup "v1" "PersistentVolumeClaim" $namespace .) }}
{{- fail (printf "hosts.journalsClaim: namespace %s has no claim %s; create it before the release" $namespace .) }}
{{- end }}
{{- end }}
{{- range $values.volumes }}
{{- with .persistentVolumeClaim }}
{{- if not (lookup "v1" "PersistentVolumeClaim" $namespace .claimName) }}
{{- fail (printf "volumes: namespace %s has no claim %s; create it before the release" $namespace .claimName) }}
{{- end }}
{{- end }}
{{- end }}
{{- if $values.sandboxes.create }}
{{- with lookup "v1" "Namespace" "" $values.sandboxes.namespace }}
{{- $owner := .metadata.annotations | default dict }}
{{- if ne (printf "%s/%s" $namespace $.Release.Name) (printf "%s/%s" (index $owner "meta.helm.sh/release-namespace") (index $owner "meta.helm.sh/release-name")) }}
{{- fail (printf "sandboxes.namespace: the namespace %s exists, and this release did not make it; name another one, or set sandboxes.create to false" .metadata.name) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* Arguments: namespace, of, name, keys. */}}
{{- define "temper.checkSecret" -}}
{{- $secret := lookup "v1" "Secret" .namespace .name }}
{{- if not $secret }}
{{- fail (printf "%s: namespace %s has no secret %s; create it before the release" .of .namespace .name) }}
{{- end }}
{{- range .keys }}
{{- if not (hasKey ($secret.data | default dict) .) }}
{{- fail (printf "%s: the secret %s of namespace %s lacks the key %s" $.of $.name $.namespace .) }}
{{- end }}
{{- end }}
{{- end }}
