package broker

import (
	"slices"
	"strings"
	"unicode/utf8"

	"toritsugi/internal/i18n"
)

// What Settings.Trifecta may be.
const (
	TrifectaRefuse = "refuse"
	TrifectaAllow  = "allow"
)

// Settings are the rules of the house (section broker of the configuration).
type Settings struct {
	Trifecta            string // ask, refuse or allow; "" is ask
	RepositoryUntrusted bool   // the files of the repository count as a stranger's text
	MaxTextBytes        int    // of a text, after cleaning
	MaxPatchMB          int    // MiB of a patch

	// How many of each a run may send; 0 is none.
	MaxComments, MaxPushes, MaxPullRequests int
}

// limit is how many there may be, and the key of the configuration that says so.
type limit struct {
	n   int
	key string
}

func (s Settings) limit(k Kind) limit {
	return map[Kind]limit{
		Comment:     {s.MaxComments, "broker.max_comments"},
		Push:        {s.MaxPushes, "broker.max_pushes"},
		PullRequest: {s.MaxPullRequests, "broker.max_pull_requests"},
	}[k]
}

// maxTitle is how long a forge lets a title be, in characters.
const maxTitle = 250

// target refuses what is not this very task's own.
func (b *Broker) target(r Request) error {
	s, t := b.o.Scope, r.Target
	foreign := func(what, want string) error {
		return i18n.E("broker.other_target", string(r.Kind), b.o.Filter.shown(what), want)
	}
	switch r.Kind {
	case Comment:
		if !slices.Contains(s.Items, t.Item) {
			return foreign(t.Item, strings.Join(s.Items, ", "))
		}
	case Push, PullRequest:
		if t.Branch == "" || t.Branch != s.Branch {
			return foreign(t.Branch, s.Branch)
		}
		if t.Branch == s.Base || r.Kind == PullRequest && t.Base != s.Base {
			return foreign(t.Branch+" → "+t.Base, s.Branch+" → "+s.Base)
		}
	default:
		return i18n.E("broker.kind", b.o.Filter.shown(string(r.Kind)))
	}
	return nil
}

// content cleans the texts of a request, or says why they cannot go out.
func (b *Broker) content(r Request, v *Verdict) error {
	switch r.Kind {
	case Comment:
		err := b.text(v, Markdown, r.Text, true)
		for _, x := range r.Collapsed {
			b.fold(v, x)
		}
		return err
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
func (b *Broker) fold(v *Verdict, x CollapsedList) {
	above := strings.TrimRight(v.Text, "\n") + "\n\n"
	fold, found, err := b.o.Filter.Collapse(x, b.o.Settings.MaxTextBytes-len(above))
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
