package broker

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"toritsugi/internal/i18n"
)

// What Settings.Trifecta may be.
const (
	TrifectaAsk    = "ask"
	TrifectaRefuse = "refuse"
	TrifectaAllow  = "allow"
)

// Settings are the rules of the house (section broker of the configuration).
type Settings struct {
	Trifecta            string   // ask, refuse or allow; "" is ask
	RepositoryUntrusted bool     // the files of the repository count as a stranger's text
	Labels              []string // names, or prefixes followed by "*", that may be set and taken away
	WebHosts            []string // names or *.suffix that web requests may go to
	MaxTextBytes        int      // of a text, after cleaning
	MaxPatchMB          int      // MiB of a patch

	// How many of each a run may send; 0 is none.
	MaxComments, MaxLabels, MaxPushes, MaxPullRequests, MaxMessages, MaxWebRequests int
}

type limit struct {
	n   int
	key string // of the configuration
}

func (s Settings) limit(k Kind) (limit, bool) {
	switch k {
	case Comment:
		return limit{s.MaxComments, "broker.max_comments"}, true
	case Label:
		return limit{s.MaxLabels, "broker.max_labels"}, true
	case Push:
		return limit{s.MaxPushes, "broker.max_pushes"}, true
	case PullRequest:
		return limit{s.MaxPullRequests, "broker.max_pull_requests"}, true
	case Chat:
		return limit{s.MaxMessages, "broker.max_messages"}, true
	case Web:
		return limit{s.MaxWebRequests, "broker.max_web_requests"}, true
	}
	return limit{}, false
}

// The sizes that forges and chats set themselves.
const (
	maxTitle  = 250  // characters of a pull request's title
	maxLabel  = 50   // characters of a label's name
	maxURL    = 2048 // bytes
	maxBranch = 244  // bytes; a ref is a file name with ".lock"
)

// target refuses what is not this very task's own.
func (b *Broker) target(r Request) error {
	s, t := b.o.Scope, r.Target
	foreign := func(what, want string) error {
		return i18n.E("broker.other_target", string(r.Kind), b.o.Filter.shown(what), want)
	}
	switch r.Kind {
	case Comment, Label:
		if !slices.Contains(s.Items, t.Item) {
			return foreign(t.Item, strings.Join(s.Items, ", "))
		}
	case Push, PullRequest:
		if !refName(t.Branch) {
			return i18n.E("broker.branch_name", b.o.Filter.shown(t.Branch))
		}
		if t.Branch != s.Branch {
			return foreign(t.Branch, s.Branch)
		}
		if t.Branch == s.Base || r.Kind == PullRequest && t.Base != s.Base {
			return foreign(t.Branch+" → "+t.Base, s.Branch+" → "+s.Base)
		}
	case Chat:
		if t.Thread == "" || t.Thread != s.Thread {
			return foreign(t.Thread, s.Thread)
		}
	case Web:
		return b.address(t.URL, r.Fields[FieldMethod])
	default:
		return i18n.E("broker.kind", b.o.Filter.shown(string(r.Kind)))
	}
	return nil
}

// refName reports whether a name is a branch's as git allows it
// (git-check-ref-format(1)), and none that git or a shell could misread.
func refName(s string) bool {
	if s == "" || len(s) > maxBranch || s == "@" || s == "HEAD" || strings.HasPrefix(s, "-") || strings.HasPrefix(s, "refs/") ||
		strings.HasSuffix(s, ".") || strings.Contains(s, "..") || strings.Contains(s, "@{") || !utf8.ValidString(s) || strings.ContainsAny(s, " ~^:?*[\\") {
		return false
	}
	if strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c == 0x7f || hiddenRune(c) }) {
		return false
	}
	for part := range strings.SplitSeq(s, "/") {
		if part == "" || part[0] == '.' || strings.HasSuffix(part, ".lock") {
			return false
		}
	}
	return true
}

// address refuses what a web request must not be directed at.
func (b *Broker) address(raw, method string) error {
	bad := func() error { return i18n.E("broker.url", b.o.Filter.shown(cut(raw, 200))) }
	if method != "GET" && method != "HEAD" {
		return i18n.E("broker.method", b.o.Filter.shown(cut(method, 20)))
	}
	if len(raw) > maxURL || strings.ContainsFunc(raw, func(c rune) bool { return c <= ' ' || c >= 0x7f || c == '\\' }) {
		return bad()
	}
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "https" || u.User != nil || u.Opaque != "" || u.Port() != "" && u.Port() != "443" {
		return bad()
	}
	host := strings.ToLower(u.Hostname())
	if _, err := netip.ParseAddr(host); err == nil || !hostName(host) {
		return bad()
	}
	if !hostListed(b.o.Settings.WebHosts, host) {
		return i18n.E("broker.web_host", host)
	}
	if b.o.Filter.holdsSecret(raw) {
		return i18n.E("broker.secret", "URL")
	}
	return nil
}

// content cleans the texts of a request, or says why they cannot go out.
func (b *Broker) content(r Request, v *Verdict) error {
	switch r.Kind {
	case Comment:
		if err := b.text(v, Markdown, r.Text, true); err != nil {
			return err
		}
		for _, x := range r.Folds {
			b.fold(v, x)
		}
		return nil
	case Chat:
		return b.text(v, Plain, r.Text, true)
	case Label:
		return b.labels(r)
	case Push:
		return b.patch(r.Patch, v)
	case PullRequest:
		title, found, err := b.o.Filter.Clean(Title, r.Title)
		v.Findings = append(v.Findings, placed("title", found)...)
		if err != nil {
			return err
		}
		if title == "" || utf8.RuneCountInString(title) > maxTitle {
			return i18n.E("broker.title", maxTitle)
		}
		v.Title = title
		if err := b.text(v, Merge, r.Text, false); err != nil {
			return err
		}
		return b.patch(r.Patch, v)
	}
	return nil
}

func (b *Broker) text(v *Verdict, f Format, text string, needed bool) error {
	clean, found, err := b.o.Filter.Clean(f, text)
	v.Findings = append(v.Findings, placed("text", found)...)
	if err != nil {
		return err
	}
	if needed && strings.TrimSpace(clean) == "" {
		return i18n.E("broker.empty")
	}
	if len(clean) > b.o.Settings.MaxTextBytes {
		return i18n.E("broker.too_long", len(clean), b.o.Settings.MaxTextBytes, "broker.max_text_bytes")
	}
	v.Text = clean
	return nil
}

// fold puts a fold below the text, as much of it as there is room for. One that
// cannot be cleaned is left out: the text is what has to be said.
func (b *Broker) fold(v *Verdict, x Fold) {
	above := strings.TrimRight(v.Text, "\n") + "\n\n"
	fold, found, err := b.o.Filter.Fold(x, b.o.Settings.MaxTextBytes-len(above))
	v.Findings = append(v.Findings, placed("history", found)...)
	if err == nil && fold != "" {
		v.Text = above + fold
	}
}

func placed(field string, found []Finding) []Finding {
	out := slices.Clone(found)
	for i := range out {
		out[i].Place = field + ", " + out[i].Place
	}
	return out
}

// labels checks the names of the labels to be set and taken away.
func (b *Broker) labels(r Request) error {
	add, remove := r.Fields[FieldAdd], r.Fields[FieldRemove]
	if add == "" && remove == "" {
		return i18n.E("broker.empty")
	}
	for _, name := range []string{add, remove} {
		if name == "" {
			continue
		}
		clean, _, err := b.o.Filter.Clean(Line, name)
		if err != nil || clean != name || utf8.RuneCountInString(name) > maxLabel || strings.ContainsAny(name, ",\"") {
			return i18n.E("broker.label_name", b.o.Filter.shown(cut(name, 100)))
		}
		if !listed(b.o.Settings.Labels, name) {
			return i18n.E("broker.label", name, strings.Join(b.o.Settings.Labels, ", "))
		}
	}
	return nil
}

// listed reports whether a name is in a list of names and "prefix*".
func listed(list []string, name string) bool {
	return slices.ContainsFunc(list, func(p string) bool {
		if prefix, ok := strings.CutSuffix(p, "*"); ok {
			return strings.HasPrefix(name, prefix)
		}
		return p == name
	})
}

// patch refuses a patch that is too large or holds a secret; it is never
// rewritten (DESIGN §2.7).
func (b *Broker) patch(patch string, v *Verdict) error {
	if len(patch) > b.o.Settings.MaxPatchMB<<20 {
		return i18n.E("broker.patch_size", len(patch)>>20, b.o.Settings.MaxPatchMB, "broker.max_patch_mb")
	}
	found := b.o.Filter.patchSecrets(patch)
	for _, f := range found {
		f.Place = "patch, " + f.Place
		v.Findings = append(v.Findings, f)
	}
	if len(found) > 0 {
		return i18n.E("broker.secret_in_patch", found[0].Excerpt)
	}
	return nil
}
