package config

import "strings"

// Broker is the section broker.
type Broker struct {
	Trifecta            string   `yaml:"trifecta" default:"ask" check:"enum=ask|refuse|allow" doc:"What becomes of a request that reaches others, of a run that has read text of strangers and can read what they must not get: a person is asked, it is refused, or allowed."`
	RepositoryUntrusted bool     `yaml:"repository_untrusted" default:"false" doc:"The files of the repository count as text of strangers."`
	AllowedHosts        []string `yaml:"allowed_hosts" check:"hostpattern" doc:"Hosts that texts may link to besides the task's own forge: names, or *.suffix. Other addresses are posted as text; images never load."`
	Mentions            string   `yaml:"mentions" default:"all" check:"enum=all|groups|keep" doc:"Which mentions in texts are defused: all, those of many people at once (@everyone, @org/team), or none."`
	MaxTextBytes        int      `yaml:"max_text_bytes" default:"60000" check:"min=1000,max=262144" doc:"Length of a comment or description, in bytes."`
	MaxPatchMB          int      `yaml:"max_patch_mb" default:"64" check:"min=1,max=64" doc:"Size of a change that is handed over, in MiB."`
	MaxComments         int      `yaml:"max_comments" default:"20" check:"min=0" doc:"Comments of one run."`
	MaxPushes           int      `yaml:"max_pushes" default:"20" check:"min=0" doc:"Pushes of one run."`
	MaxPullRequests     int      `yaml:"max_pull_requests" default:"3" check:"min=0" doc:"Pull requests of one run."`
}

// hostPattern reports whether s is the name of a host, or *.suffix.
func hostPattern(s string) bool {
	s = strings.TrimPrefix(s, "*.")
	for part := range strings.SplitSeq(s, ".") {
		if part == "" || part[0] == '-' || strings.Trim(strings.ToLower(part), "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			return false
		}
	}
	return true
}
