package config

import "time"

// Monitor is the section monitor (store-v2 §5.4, §8).
type Monitor struct {
	IntervalMinutes int         `yaml:"interval_minutes" default:"5" check:"min=1,max=1440" doc:"How often runs without a live owner are looked for, and what alerts are judged by is measured, in minutes."`
	Alerts          Alerts      `yaml:"alerts" doc:"From where on something is an alert (docs/operations.md)."`
	Notify          AlertNotify `yaml:"notify" doc:"Who is told of alerts besides channels.*.notify."`
}

// Alerts is the section monitor.alerts (store-v2 §8.1, §8.3).
type Alerts struct {
	DiskWarnGB         float64 `yaml:"disk_warn_gb" default:"10" check:"min=0,max=1000000" doc:"Size of all runs, in GB of 1,000,000,000 bytes, above which it is a warning; 0: never."`
	DiskCriticalGB     float64 `yaml:"disk_critical_gb" default:"50" check:"min=0,max=1000000" doc:"Size of all runs, in GB, above which it is critical; 0: never."`
	DiskFreeGB         float64 `yaml:"disk_free_gb" default:"2" check:"min=0,max=1000000" doc:"Room on the file system of the base directory, in GB, below which it is a warning; 0: never."`
	RunningTasks       int     `yaml:"running_tasks" default:"100" check:"min=0" doc:"How many runs may wait for their turn; 0: any number."`
	LongRunningHours   float64 `yaml:"long_running_hours" default:"6" check:"min=0,max=8760" doc:"For how long one process may work on a run, in hours; 0: for ever."`
	FailureRate        float64 `yaml:"failure_rate" default:"0.10" check:"min=0,max=1" doc:"Share of the runs that ended in the last days that may have failed; 0: any share."`
	FailureDays        int     `yaml:"failure_days" default:"7" check:"min=1,max=60" doc:"The last days, of the universal time, that failure_rate and duration_factor look at."`
	FailureRuns        int     `yaml:"failure_runs" default:"20" check:"min=1" doc:"How many runs must have ended in them for failure_rate and duration_factor to count."`
	DurationFactor     float64 `yaml:"duration_factor" default:"2" check:"min=0,max=1000" doc:"How many times as long as in the 28 days before the runs of the last days may take on average; 0: any time."`
	UndeliveredMinutes int     `yaml:"undelivered_minutes" default:"60" check:"min=1,max=10080" doc:"How long branches, comments and labels may be on their way to a forge, in minutes."`
	BackupHours        float64 `yaml:"backup_hours" default:"36" check:"min=0,max=8760" doc:"Age of the last backup, and of the last one that was verified, from which on it is an alert, in hours, where backups are made; 0: any age."`
	BudgetShare        float64 `yaml:"budget_share" default:"0.9" check:"min=0,max=1" doc:"Share of a limit of budget.day or budget.user_day that may be taken; 0: all of it."`
}

// Undelivered is monitor.alerts.undelivered_minutes.
func (a Alerts) Undelivered() time.Duration { return time.Duration(a.UndeliveredMinutes) * time.Minute }

// AlertNotify is the section monitor.notify.
type AlertNotify struct {
	WebhookURL string `yaml:"webhook_url" check:"url,optional" secret:"true" doc:"Address that each begin and end of an alert is posted to, as JSON that an incoming webhook of Slack takes (docs/operations.md)."`
	Mail       Mail   `yaml:"mail" doc:"Mail of each begin and end of an alert: by a program or by SMTP."`
}

// Mail is the section monitor.notify.mail.
type Mail struct {
	To           []string `yaml:"to" check:"mail" doc:"Addresses that mail goes to; none: there is none."`
	From         string   `yaml:"from" check:"mail,optional" doc:"Address that it comes from; empty: the first of to."`
	Sendmail     string   `yaml:"sendmail" check:"absfile" doc:"Program that takes a mail as sendmail does, such as /usr/sbin/sendmail; either this"`
	SMTPHost     string   `yaml:"smtp_host" check:"host,optional" doc:"or the mail server."`
	SMTPPort     int      `yaml:"smtp_port" default:"587" check:"min=1,max=65535" doc:"Its port."`
	SMTPTLS      string   `yaml:"smtp_tls" default:"starttls" check:"enum=starttls|tls|none" doc:"How the connection is encrypted: starttls after it is made, tls from the start, none not at all, which is for this machine's own server."`
	SMTPUser     string   `yaml:"smtp_user" doc:"User to log in as; empty: no login."`
	SMTPPassword string   `yaml:"smtp_password" secret:"true" doc:"Password of that user."`
}

// Maintenance is the section maintenance (store-v2 §8.1).
type Maintenance struct {
	At       string `yaml:"at" default:"03:00" check:"clock,optional" doc:"When tori serve does the nightly work, once a day, as HH:MM of this machine's time zone; a missed time is caught up. Empty: never, which leaves it to tori maintain."`
	ReportTo string `yaml:"report_to" check:"report" doc:"Who is sent what tori stats tells after the nightly work: mail or webhook, as monitor.notify sets them up, or a conversation by its id, such as slack:T1:C1. Empty: nobody, a line of the log says it in short."`
}

// The values of maintenance.report_to that name no conversation.
const (
	ReportMail    = "mail"
	ReportWebhook = "webhook"
)

// Next is when maintenance is due after a time; ok is false for never.
func (m Maintenance) Next(last time.Time) (next time.Time, ok bool) { return nextAt(m.At, last) }

// monitor complains of ways to tell of alerts that cannot work.
func (p *parser) monitor() {
	n := p.config.Monitor.Notify
	at := func(keys ...string) any { return p.at(p.set(keys...)) }
	switch m := n.Mail; {
	case len(m.To) > 0 && (m.Sendmail == "") == (m.SMTPHost == ""):
		p.problem("config.mail_way", at("monitor.notify.mail.sendmail", "monitor.notify.mail.smtp_host", "monitor.notify.mail.to"))
	case (m.SMTPUser == "") != (m.SMTPPassword == ""):
		p.problem("config.half_mail", at("monitor.notify.mail.smtp_user", "monitor.notify.mail.smtp_password"))
	case m.SMTPUser != "" && m.SMTPTLS == "none":
		p.problem("config.bare_mail", at("monitor.notify.mail.smtp_tls"))
	}
	if to := p.config.Maintenance.ReportTo; to == ReportMail && len(n.Mail.To) == 0 || to == ReportWebhook && n.WebhookURL == "" {
		p.problem("config.report_way", at("maintenance.report_to"), to)
	}
}
