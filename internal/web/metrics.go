package web

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"toritsugi/internal/task"
)

// metrics are the figures in the text format of Prometheus.
func metrics(d Daemon) http.Handler {
	r := prometheus.NewRegistry()
	r.MustRegister(&collector{d}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{})
}

// collector reads the figures when they are asked for.
type collector struct{ d Daemon }

var (
	tasks      = prometheus.NewDesc("tori_tasks", "Runs that have not ended, by status.", []string{"status"}, nil)
	chats      = prometheus.NewDesc("tori_chat_jobs", "Of those the jobs of conversations, by channel and status.", []string{"channel", "status"}, nil)
	busy       = prometheus.NewDesc("tori_workers_busy", "Runs that are worked on by this process.", nil, nil)
	began      = prometheus.NewDesc("tori_runs_begun_total", "Runs that this process took up.", nil, nil)
	ended      = prometheus.NewDesc("tori_runs_ended_total", "Runs that this process put down, by the status they left with.", []string{"status"}, nil)
	recovered  = prometheus.NewDesc("tori_runs_recovered_total", "Runs whose owner had died.", nil, nil)
	delivered  = prometheus.NewDesc("tori_effects_delivered_total", "Effects that are in the world.", nil, nil)
	undeliv    = prometheus.NewDesc("tori_effects_failed_total", "Attempts to deliver an effect that failed.", nil, nil)
	polls      = prometheus.NewDesc("tori_polls_total", "Looks for work, by door.", []string{"source"}, nil)
	pollErrors = prometheus.NewDesc("tori_poll_errors_total", "Looks for work that failed, by door.", []string{"source"}, nil)
	pollTime   = prometheus.NewDesc("tori_poll_seconds", "How long the last look for work took, by door.", []string{"source"}, nil)
	polledAt   = prometheus.NewDesc("tori_poll_success_timestamp_seconds", "When a look for work last succeeded, by door.", []string{"source"}, nil)
	stale      = prometheus.NewDesc("tori_owners_stale", "Owners that live and show no sign of it.", nil, nil)
	waiting    = prometheus.NewDesc("tori_inbox_events", "Events of channels that wait or are worked on.", nil, nil)
	alerts     = prometheus.NewDesc("tori_alerts", "What is wrong and was told (docs/operations.md), by name and level.", []string{"name", "level"}, nil)
	used       = prometheus.NewDesc("tori_runs_bytes", "What the files of all runs take, estimated where they are many.", nil, nil)
	night      = prometheus.NewDesc("tori_maintenance_timestamp_seconds", "When a step of the nightly work was last done or tried, by step.", []string{"step"}, nil)
	nightFails = prometheus.NewDesc("tori_maintenance_failed", "1 where a step of the nightly work failed the last time, by step.", []string{"step"}, nil)
	backup     = prometheus.NewDesc("tori_backup_timestamp_seconds", "When a backup last succeeded.", nil, nil)
	verified   = prometheus.NewDesc("tori_backup_verified_timestamp_seconds", "When a backup was last verified.", nil, nil)
	free       = prometheus.NewDesc("tori_disk_free_bytes", "Free space where the contexts lie.", nil, nil)
)

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{tasks, chats, busy, began, ended, recovered, delivered, undeliv, polls, pollErrors, pollTime, polledAt, stale, waiting, alerts, free, used, night, nightFails, backup, verified} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	count := func(d *prometheus.Desc, v int64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	n := c.d.Counts()
	gauge(busy, float64(c.d.Busy()))
	count(began, n.Began)
	for _, s := range task.Statuses() {
		if v, ok := n.Ended[s]; ok {
			count(ended, v, string(s))
		}
	}
	count(recovered, n.Recovered)
	count(delivered, n.Delivered)
	count(undeliv, n.Failed)
	for source, v := range n.Polls {
		count(polls, v.All, source)
		count(pollErrors, v.Errors, source)
		gauge(pollTime, v.Took.Seconds(), source)
		if !v.At.IsZero() {
			gauge(polledAt, float64(v.At.UnixMilli())/1000, source)
		}
	}
	gauge(stale, float64(n.Stale))
	if n, ok := c.d.Waiting(); ok {
		gauge(waiting, float64(n))
	}
	for a, n := range c.d.Alerts() {
		gauge(alerts, float64(n), a.Name, a.Level)
	}
	gauge(free, float64(n.Free))
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second) // the interface of collectors has none
	defer cancel()
	if h, err := c.d.House(ctx); err != nil {
		out <- prometheus.NewInvalidMetric(used, err)
	} else {
		c.house(gauge, h)
	}
	all, err := c.d.Tasks(ctx)
	if err != nil {
		out <- prometheus.NewInvalidMetric(tasks, err)
		return
	}
	total := map[task.Status]int{}
	for g, n := range all {
		if total[g.Status] += n; g.Channel != "" {
			gauge(chats, float64(n), g.Channel, string(g.Status))
		}
	}
	for _, s := range Statuses() {
		gauge(tasks, float64(total[s]), string(s))
	}
}

func (c *collector) house(gauge func(*prometheus.Desc, float64, ...string), h House) {
	if h.Used > 0 {
		gauge(used, float64(h.Used))
	}
	for step, u := range h.Night {
		gauge(night, float64(u.At.Unix()), step)
		failed := 0.0
		if u.Failed {
			failed = 1
		}
		gauge(nightFails, failed, step)
	}
	for _, b := range []struct {
		d  *prometheus.Desc
		at time.Time
	}{{backup, h.Backup}, {verified, h.Verified}} {
		if !b.at.IsZero() {
			gauge(b.d, float64(b.at.Unix()))
		}
	}
}
