package i18n

// telemetryTexts say which setting keeps traces from their collector.
func telemetryTexts() map[string]text {
	return map[string]text{
		"telemetry.endpoint": {
			en: "telemetry.traces.endpoint: %s is no address of a collector, such as http://127.0.0.1:4318 (see also OTEL_EXPORTER_OTLP_ENDPOINT)",
			ja: "telemetry.traces.endpoint: %s はコレクタのアドレスではありません（例: http://127.0.0.1:4318。OTEL_EXPORTER_OTLP_ENDPOINT も確認してください）",
		},
		"telemetry.protocol": {
			en: "OTEL_EXPORTER_OTLP_PROTOCOL is %s, but traces are sent by http/protobuf alone: set it to that, or unset it, and name the collector's HTTP port, most often 4318",
			ja: "OTEL_EXPORTER_OTLP_PROTOCOL が %s ですが、トレースは http/protobuf でのみ送ります。この値にするか削除し、コレクタの HTTP ポート（通常は 4318）を指定してください",
		},
		"telemetry.headers": {
			en: "telemetry.traces.headers (or OTEL_EXPORTER_OTLP_HEADERS) is not of the form name=value,name2=value2 with percent-encoded values",
			ja: "telemetry.traces.headers（または OTEL_EXPORTER_OTLP_HEADERS）が name=value,name2=value2 の形式ではありません（値はパーセントエンコードします）",
		},
		"telemetry.certificate": {
			en: "OTEL_EXPORTER_OTLP_CERTIFICATE: %s cannot be used: %v",
			ja: "OTEL_EXPORTER_OTLP_CERTIFICATE: %s を使えません: %v",
		},
	}
}
