{{- define "meetpoint.name" -}}
{{- printf "%s-meetpoint" .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "meetpoint.labels" -}}
app.kubernetes.io/name: meetpoint
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "meetpoint.agentSelector" -}}
app.kubernetes.io/name: meetpoint
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: agent
{{- end -}}

{{- define "meetpoint.image" -}}
{{- $repository := required "image.repository: the registry with the image" .Values.image.repository -}}
{{- printf "%s:%s" $repository .Values.image.tag -}}
{{- end -}}

{{- define "meetpoint.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
capabilities: {drop: [ALL]}
seccompProfile: {type: RuntimeDefault}
{{- end -}}
