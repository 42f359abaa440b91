package config

import (
	"net/url"
	"strings"
)

// Logging is the section logging (store-v2 §9.3).
type Logging struct {
	Level  string `yaml:"level" default:"info" check:"enum=debug|info|warn|error" doc:"The least level of what is logged. --quiet leaves out what is below warn."`
	Format string `yaml:"format" default:"text" check:"enum=text|json" doc:"text is a line for people, json an object a line for programs, with the whole uuid of the run."`
	File   string `yaml:"file" check:"absfile" doc:"File that gets the log instead of standard error; an absolute path. Processes may share one. None: standard error."`
	MaxMB  int    `yaml:"max_mb" default:"50" check:"min=1,max=10240" doc:"Size of that file, in MiB, from which it becomes FILE.1 and a new one begins."`
	Keep   int    `yaml:"keep" default:"5" check:"min=1,max=1000" doc:"How many of FILE.1, FILE.2 … are kept."`
}

// Telemetry is the section telemetry.
type Telemetry struct {
	Traces Traces `yaml:"traces" doc:"Traces of runs by OpenTelemetry (docs/operations.md); OTEL_* variables count, too."`
}

// Traces is the section telemetry.traces.
type Traces struct {
	Enabled  bool   `yaml:"enabled" default:"false" doc:"Send them."`
	Endpoint string `yaml:"endpoint" check:"url,optional" doc:"Base address of the collector (OTLP over HTTP), such as http://127.0.0.1:4318. None: OTEL_EXPORTER_OTLP_ENDPOINT, else http://localhost:4318."`
	Headers  string `yaml:"headers" default:"${OTEL_EXPORTER_OTLP_HEADERS}" secret:"true" doc:"Headers that it is sent, such as authorization=Bearer%20KEY, with commas between."`
	Content  bool   `yaml:"content" default:"false" doc:"Show in them what models were told and said and what tools were given and answered, masked; without it only names, times and numbers are."`
}

// headerVariables hold headers for collectors of traces.
var headerVariables = []string{"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"}

// headerSecrets are the values of headers, written as Traces.Headers.
func headerSecrets(headers string) (all []string) {
	for pair := range strings.SplitSeq(headers, ",") {
		_, value, _ := strings.Cut(pair, "=")
		plain, err := url.PathUnescape(strings.TrimSpace(value))
		if err != nil {
			continue
		}
		if _, key, ok := strings.Cut(plain, " "); ok && len(key) >= minSecret { // Bearer KEY
			all = append(all, key)
		}
		if secretValue(plain) {
			all = append(all, plain, strings.TrimSpace(value))
		}
	}
	return all
}
