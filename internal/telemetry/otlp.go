package telemetry

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
)

// exporter sends spans by OTLP/HTTP in its binary form. OpenTelemetry's own one links gRPC,
// which each process would pay for (decision 084).
type exporter struct {
	url     string
	headers map[string]string
	gzip    bool
	timeout time.Duration // of one batch, with its repetitions
	client  *http.Client
	redact  func(string) string
	log     *slog.Logger

	over, end        context.CancelFunc // no more repetitions; no more calls
	waiting, sending context.Context    // which these end: they live as long as the exporter
	ended, sent      atomic.Int64       // spans
	down             bool               // the last batch was not taken; of the sending goroutine
}

// maxCA is how long a file of certificates may be.
const maxCA = 4 << 20

func newExporter(o *TraceOptions) (*exporter, error) {
	env := func(name string) string { // what is set for traces goes before what is set for all
		return cmp.Or(o.Getenv("OTEL_EXPORTER_OTLP_TRACES_"+name), o.Getenv("OTEL_EXPORTER_OTLP_"+name))
	}
	if p := env("PROTOCOL"); p != "" && p != "http/protobuf" {
		return nil, i18n.E("telemetry.protocol", p)
	}
	e := &exporter{url: o.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), gzip: env("COMPRESSION") == "gzip", timeout: 10 * time.Second, client: o.HTTP, redact: o.Redact, log: o.Log}
	if o.Endpoint != "" || e.url == "" {
		e.url = strings.TrimSuffix(cmp.Or(o.Endpoint, o.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"), "http://localhost:4318"), "/") + "/v1/traces"
	}
	if u, err := url.Parse(e.url); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, i18n.E("telemetry.endpoint", o.Redact(e.url))
	}
	if ms, err := strconv.Atoi(env("TIMEOUT")); err == nil && ms > 0 {
		e.timeout = time.Duration(ms) * time.Millisecond
	}
	headers := o.Headers
	if headers == "" || headers == o.Getenv("OTEL_EXPORTER_OTLP_HEADERS") { // as the default of the setting is
		headers = env("HEADERS")
	}
	var err error
	if e.headers, err = parseHeaders(headers); err != nil {
		return nil, err
	}
	if e.client == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		if file := env("CERTIFICATE"); file != "" {
			pem, err := disk.Read(file, maxCA)
			pool := x509.NewCertPool()
			if err == nil && !pool.AppendCertsFromPEM(pem) {
				err = errors.New("no certificate in PEM")
			}
			if err != nil {
				return nil, i18n.E("telemetry.certificate", file, err)
			}
			t.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
		}
		e.client = &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	e.waiting, e.over = context.WithCancel(context.Background())
	e.sending, e.end = context.WithCancel(context.Background())
	return e, nil
}

// parseHeaders reads k=v,k2=v2 with percent-encoded values, as OTEL_EXPORTER_OTLP_HEADERS has
// them. The error is an i18n error, which quotes no value.
func parseHeaders(text string) (map[string]string, error) {
	all := map[string]string{}
	for pair := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		name = strings.TrimSpace(name)
		plain, err := url.PathUnescape(strings.TrimSpace(value))
		if !ok || err != nil || name == "" {
			return nil, i18n.E("telemetry.headers")
		}
		all[name] = plain
	}
	return all, nil
}

// ended counts the spans that a processor is given.
type ended struct {
	sdk.SpanProcessor
	out *exporter
}

// OnEnd implements sdk.SpanProcessor.
func (p ended) OnEnd(s sdk.ReadOnlySpan) {
	p.out.ended.Add(1)
	p.SpanProcessor.OnEnd(s)
}

// ExportSpans implements sdk.SpanExporter. What is not taken is counted and logged, and no
// error of anybody else's.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	body, err := proto.Marshal(e.request(spans))
	if err == nil && e.gzip {
		body, err = zipped(body)
	}
	if err == nil {
		err = e.send(ctx, body)
	}
	if err == nil {
		e.sent.Add(int64(len(spans)))
	}
	switch {
	case err == nil && e.down:
		e.log.Info("Traces are taken again by " + e.url)
	case err != nil && !e.down:
		e.log.Warn("Traces are not taken, and dropped: " + err.Error())
	}
	e.down = err != nil
	return nil
}

// Shutdown implements sdk.SpanExporter.
func (e *exporter) Shutdown(context.Context) error { return nil }

// closing ends the waits for a collector that is away.
func (e *exporter) closing() { e.over() }

// close ends what is going on, and says what was dropped.
func (e *exporter) close() {
	e.end()
	if all, sent := e.ended.Load(), e.sent.Load(); sent < all {
		e.log.Warn("Not all of the traces was taken", "spans", all, "dropped", all-sent)
	}
	e.client.CloseIdleConnections()
}

// send sends a batch, again while the collector asks for that or is away (OTLP, "OTLP/HTTP
// Response"), within the time of one batch.
func (e *exporter) send(ctx context.Context, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	defer context.AfterFunc(e.sending, cancel)()
	waits, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(e.waiting, stop)()
	var last error
	_, err := backoff.Retry(waits, func() (struct{}, error) { last = e.post(ctx, body); return struct{}{}, last }, backoff.WithBackOff(backoff.NewExponentialBackOff()), backoff.WithMaxElapsedTime(e.timeout))
	if err != nil && last != nil {
		return last // says more than that there was no time left
	}
	return err
}

func (e *exporter) post(ctx context.Context, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return backoff.Permanent(err)
	}
	for name, value := range e.headers {
		req.Header.Set(name, value)
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	if e.gzip {
		req.Header.Set("Content-Encoding", "gzip")
	}
	res, err := e.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	answer, _ := io.ReadAll(io.LimitReader(res.Body, 64<<10)) // also that the connection is used again
	switch res.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		if after, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && after > 0 {
			return backoff.RetryAfter(after)
		}
	default:
		if res.StatusCode/100 == 2 {
			if n := refused(answer); n > 0 {
				e.sent.Add(-n)
				e.log.Warn("Spans are refused by "+e.url, "spans", n)
			}
			return nil
		}
		return backoff.Permanent(fmt.Errorf("%s answers %s", e.url, res.Status))
	}
	return fmt.Errorf("%s answers %s", e.url, res.Status)
}

// refused is how many spans of a batch were not taken: rejected_spans (1) of partial_success (1)
// of an ExportTraceServiceResponse, whose Go package links gRPC.
func refused(answer []byte) (n int64) {
	fields(answer, func(value []byte, _ uint64) {
		fields(value, func(_ []byte, spans uint64) { n = int64(spans) })
	})
	return max(n, 0)
}

// fields calls f with each field 1 of a message: its bytes, or its number.
func fields(message []byte, f func(value []byte, number uint64)) {
	for len(message) > 0 {
		field, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return
		}
		size := protowire.ConsumeFieldValue(field, kind, message[n:])
		if size < 0 {
			return
		}
		if value := message[n : n+size]; field == 1 {
			b, _ := protowire.ConsumeBytes(value)
			number, _ := protowire.ConsumeVarint(value)
			f(b, number)
		}
		message = message[n+size:]
	}
}

func zipped(body []byte) ([]byte, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write(body)
	err = errors.Join(err, z.Close())
	return b.Bytes(), err
}

// request is the body of a request: an ExportTraceServiceRequest, which has the same form as
// TracesData. All spans are of one process and one scope.
func (e *exporter) request(spans []sdk.ReadOnlySpan) *tracepb.TracesData {
	scope := &tracepb.ScopeSpans{}
	all := &tracepb.ResourceSpans{ScopeSpans: []*tracepb.ScopeSpans{scope}}
	for _, s := range spans {
		if scope.Scope == nil {
			is := s.InstrumentationScope()
			scope.Scope = &commonpb.InstrumentationScope{Name: is.Name, Version: is.Version}
			all.Resource, all.SchemaUrl = &resourcepb.Resource{Attributes: e.attributes(s.Resource().Attributes())}, s.Resource().SchemaURL()
		}
		scope.Spans = append(scope.Spans, e.span(s))
	}
	return &tracepb.TracesData{ResourceSpans: []*tracepb.ResourceSpans{all}}
}

func (e *exporter) span(s sdk.ReadOnlySpan) *tracepb.Span {
	id, span, parent := s.SpanContext().TraceID(), s.SpanContext().SpanID(), s.Parent().SpanID()
	p := &tracepb.Span{TraceId: id[:], SpanId: span[:], Name: e.redact(s.Name()), Kind: tracepb.Span_SpanKind(s.SpanKind()), Flags: uint32(s.SpanContext().TraceFlags()),
		StartTimeUnixNano: uint64(s.StartTime().UnixNano()), EndTimeUnixNano: uint64(s.EndTime().UnixNano()),
		Attributes: e.attributes(s.Attributes()), DroppedAttributesCount: uint32(s.DroppedAttributes())}
	if s.Parent().HasSpanID() {
		p.ParentSpanId = parent[:]
	}
	if s.Status().Code == codes.Error {
		p.Status = &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR, Message: e.redact(s.Status().Description)}
	}
	return p
}

// attributes are those of the kinds that Span and resources have, each text masked.
func (e *exporter) attributes(all []attribute.KeyValue) (out []*commonpb.KeyValue) {
	for _, a := range all {
		v := &commonpb.AnyValue{}
		switch a.Value.Type() {
		case attribute.BOOL:
			v.Value = &commonpb.AnyValue_BoolValue{BoolValue: a.Value.AsBool()}
		case attribute.INT64:
			v.Value = &commonpb.AnyValue_IntValue{IntValue: a.Value.AsInt64()}
		case attribute.FLOAT64:
			v.Value = &commonpb.AnyValue_DoubleValue{DoubleValue: a.Value.AsFloat64()}
		case attribute.STRINGSLICE:
			list := &commonpb.ArrayValue{}
			for _, s := range a.Value.AsStringSlice() {
				list.Values = append(list.Values, e.text(s))
			}
			v.Value = &commonpb.AnyValue_ArrayValue{ArrayValue: list}
		default:
			v = e.text(a.Value.String())
		}
		out = append(out, &commonpb.KeyValue{Key: string(a.Key), Value: v})
	}
	return out
}

func (e *exporter) text(s string) *commonpb.AnyValue {
	return &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: strings.ToValidUTF8(e.redact(s), "\uFFFD")}}
}
