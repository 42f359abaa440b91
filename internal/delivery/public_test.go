package delivery

import (
	"testing"

	"toritsugi/internal/contextstore"
)

// What a reason says of this machine is not posted; what it says of the work is.
func TestPublic(t *testing.T) {
	t.Parallel()
	s := &Service{Store: &contextstore.Store{Options: contextstore.Options{BaseDir: "/srv/my runs"}}}
	for reason, want := range map[string]string{
		"the disk is full: write /var/lib/tori/contexts/ab/messages.jsonl: no space left": "the disk is full: write [path]: no space left",
		"open \"/home/ken/.config/x\": denied":                                            "open \"[path]\": denied",
		"write /srv/my runs/a/b: no space":                                                "write [path]: no space",
		"/etc/tori/config.yaml is unreadable":                                             "[path] is unreadable",
		"Post \"http://10.0.0.7:11434/api/chat\": dial tcp 10.0.0.7:11434: refused":       "Post \"[address]\": dial [address]: refused",
		"dial tcp: lookup model.internal on 127.0.0.53:53: no such host":                  "dial tcp: [address] on [address]: no such host",
		"read tcp [::1]:80->[::1]:4711: reset":                                            "read [address]: reset",
		"main.go:12: see https://github.com/acme/widgets/pull/2 and a/b/c.go":             "main.go:12: see https://github.com/acme/widgets/pull/2 and a/b/c.go",
		"`/resume` lets it go on, `/stop` ends it; 3/4 and and/or":                        "`/resume` lets it go on, `/stop` ends it; 3/4 and and/or",
		"ディスクに書き込めません: /var/lib/tori/x":                                                   "ディスクに書き込めません: [path]",
		"ログは「/var/lib/tori/x」にあります":                                                       "ログは「[path]」にあります",
		"(path:/home/ken/x/y)、（/home/ken/z）":                                              "(path:[path])、（[path]）",
		"`sh ${DIR}/run/x.sh` and src/**/a/b.go failed":                                   "`sh ${DIR}/run/x.sh` and src/**/a/b.go failed",
		"Post \"http://ollama.internal/api/chat\": EOF, proxy http://squid refused":       "Post \"[address]\": EOF, proxy [address] refused",
		"clone of https://me:word@git.acme.com/a failed":                                  "clone of [address] failed",
		"https://git.acme.com/acme/widgets.git: not found; file:///srv/x":                 "https://git.acme.com/acme/widgets.git: not found; [address]",
		"version 1.2.3 at 12:30":                                                          "version 1.2.3 at 12:30",
	} {
		if got := s.Public(reason); got != want {
			t.Errorf("%q\n got %q\nwant %q", reason, got, want)
		}
	}
}
