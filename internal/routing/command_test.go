package routing

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/i18n"
)

func TestParseCommand(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Command{
		"/code fix it":        ToRoute{Code, "fix it"},
		"/code\nfoo\n  bar\n": ToRoute{Code, "foo\n  bar\n"},
		"/code\r\nfoo":        ToRoute{Code, "foo"},
		"  ／ＣＯＤＥ２　 直して ":      ToRoute{Code2, " 直して "},
		"/Code3":              ToRoute{Code3, ""},
		"/plan   \n ":         ToRoute{Plan, ""},
		"/chat /code x":       ToRoute{Chat, "/code x"},
		"/analyze a":          ToRoute{Analyze, "a"},
		"/ops a":              ToRoute{Ops, "a"},
		"/research a":         ToRoute{Research, "a"},
		"/code1 a":            ToRoute{Code1, "a"},
		"/local":              Local{true, ""},
		"/cloud /code x":      Local{false, "/code x"},
		"/local\n日本語":         Local{true, "日本語"},
		"/repo":               Repo{""},
		"/repo acme/widgets":  Repo{"acme/widgets"},
		"/approve 20260301-101500-0a1b2c3d 0A1B2C3D4E5F": Approve{"20260301-101500-0a1b2c3d", "0a1b2c3d4e5f"},
		"/approve j":                Approve{"j", ""},
		"/approve j ０a1b2c3d4e5f99": Approve{"j", "0a1b2c3d4e5f"},
		"/deny j":                   Deny{"j", "", ""},
		"/deny j  設計が 違う ":          Deny{"j", "", "設計が 違う"},
		"/deny j 0a1b2c3d4e5f no":   Deny{"j", "0a1b2c3d4e5f", "no"},
		"/auto-approve off":         AutoApprove{Off: true},
		"/auto-approve scope=docs/,a types=design,review tools=apply_patch ttl=30m": AutoApprove{Paths: []string{"docs/", "a"}, Types: []string{"design", "review"}, Tools: []string{"apply_patch"}, TTL: 30 * time.Minute},
		"/auto-approve ttl=90":      AutoApprove{TTL: 90 * time.Second},
		"/auto-approve scope＝docs/": AutoApprove{Paths: []string{"docs/"}},
		"/jobs":                     Jobs{},
		"/STATUS":                   Status{},
		"/stop":                     Stop{""},
		"/stop j":                   Stop{"j"},
		"/help /work":               Help{"/work"},
		"/work":                     Work{Turns: 8},
		"/work ５０":                  Work{Turns: 50},
		"/work status":              Work{Show: true},
		"/work off":                 Work{},
		"/normal":                   Work{},
		"/show model":               Show{"model"},
		"/show channels":            Show{"channel"},
		"/list repositories":        List{"repositories"},
		"/list model":               List{"models"},

		"":                         nil,
		"/":                        nil,
		"//code x":                 nil,
		"/codex":                   nil,
		"/code4 x":                 nil,
		"/switch model":            nil,
		"hello\n/code x":           nil,
		"\n/code x":                nil,
		". /code":                  nil,
		"/code、直して":                nil,
		"/etc/hosts を見て":           nil,
		"/deliberate":              nil,
		"/\u0000code":              nil,
		"／あ":                       nil,
		"code":                     nil,
		strings.Repeat("/", 1<<20): nil,
	} {
		if got := ParseCommand(text); !reflect.DeepEqual(got, want) {
			t.Errorf("%.60q: %#v, want %#v", text, got, want)
		}
	}
}

// A control command that cannot be read says how it is used; it is no message.
func TestMalformedCommands(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"/approve", "/approve a b", "/approve a b c", "/deny", "/auto-approve", "/auto-approve on", "/auto-approve ttl=0", "/auto-approve ttl=-5m", "/auto-approve ttl=x",
		"/auto-approve ttl=1ms", "/auto-approve scope=", "/auto-approve scope=,", "/auto-approve scope=a scope=b", "/auto-approve what=a", "/jobs now", "/status x", "/normal 3",
		"/repo a b", "/stop a b", "/work 0", "/work 51", "/work many", "/show", "/show me", "/list", "/list everything", "/help a b",
	} {
		m, ok := ParseCommand(text).(Malformed)
		if !ok || m.Err == nil || m.Name != strings.Fields(text)[0] {
			t.Errorf("%q: %#v", text, ParseCommand(text))
			continue
		}
		if en := m.Err.Error(); !strings.HasPrefix(en, "usage: "+m.Name) && m.Name != "/jobs" {
			t.Errorf("%q: %s", text, en)
		}
	}
}

// Each command has its line of help in both languages, and is read.
func TestCommands(t *testing.T) {
	t.Parallel()
	for _, c := range Commands() {
		for _, l := range []i18n.Lang{i18n.English, i18n.Japanese} {
			if l.T(c.Help) == c.Help {
				t.Errorf("%s has no help in %s", c.Name, l)
			}
		}
		if ParseCommand(c.Name) == nil || ParseCommand("／"+c.Name[1:]) == nil {
			t.Errorf("%s is no command", c.Name)
		}
	}
}

// What follows a route command is never changed.
func FuzzParseCommand(f *testing.F) {
	for _, s := range []string{"/code a\n  b", "／ＰＬＡＮ　x", "/auto-approve scope=a ttl=1h", "/deny j 0123456789ab r", "/work ９", "  /local /code x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		switch c := ParseCommand(s).(type) {
		case ToRoute:
			if !strings.HasSuffix(s, c.Rest) && c.Rest != "" {
				t.Errorf("%q became %q", s, c.Rest)
			}
			if c.Rest != "" && !reflect.DeepEqual(ParseCommand("/plan "+c.Rest), ToRoute{Plan, c.Rest}) {
				t.Errorf("%q is not read again", c.Rest)
			}
		case AutoApprove:
			if !c.Off && c.Paths == nil && c.Types == nil && c.Tools == nil && c.TTL == 0 {
				t.Errorf("%q allows everything", s)
			}
		case Approve:
			if c.Job == "" || c.Hash != "" && len(c.Hash) != hashDigits {
				t.Errorf("%q: %+v", s, c)
			}
		case Work:
			if c.Turns < 0 || c.Turns > maxWorkTurns {
				t.Errorf("%q: %+v", s, c)
			}
		}
	})
}
