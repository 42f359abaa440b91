package web

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"toritsugi/internal/i18n"
	"toritsugi/internal/llm/wire"
	"toritsugi/internal/tool"
)

//go:embed web_search.md
var searchPage string

const searchSchema = `{"type":"object","properties":{"query":{"type":"string","minLength":1},"time_range":{"enum":["day","month","year"]},` +
	`"limit":{"$comment":"untold","type":"integer","minimum":1,"maximum":20}},"required":["query"],"additionalProperties":false}`

// Bounds of a search: characters of a query and of an excerpt, and results that are shown where no limit
// is given.
const (
	maxQuery   = 400
	maxExcerpt = 400
	maxTitle   = 200
	someHits   = 8
)

// searchAddress is where a SearXNG answers searches.
func searchAddress(base string) (*url.URL, error) {
	u, err := wire.Resolve("SearXNG", base, "search", "/search")
	if err != nil {
		return nil, i18n.E("web.search_url", wire.Endpoint(base))
	}
	return u, nil
}

type searchArgs struct {
	Query     string      `json:"query"`
	TimeRange string      `json:"time_range"`
	Limit     tool.Number `json:"limit"`
}

// searchTool is web_search.
func searchTool(u *Lookup) tool.Tool {
	return tool.Of(tool.Describe("web_search", searchPage, searchSchema, true, "q", "query", "search", "query", "search_term", "query", "max_results", "limit", "num_results", "limit",
		"count", "limit", "recency", "time_range"), u.search)
}

// search asks the SearXNG and shows what it found.
func (u *Lookup) search(ctx context.Context, a searchArgs) (tool.Result, error) {
	query := strings.Join(strings.Fields(visible(a.Query)), " ")
	if n := utf8.RuneCountInString(query); n == 0 || n > maxQuery {
		return tool.Failf("The query has %d characters; between 1 and %d are expected: a few words.", n, maxQuery), nil
	}
	if problem := u.may("query", query); problem != "" {
		return tool.Failf("%s", problem), nil
	}
	found, err := u.w.find(ctx, query, a.TimeRange)
	if ctx.Err() != nil {
		return tool.Result{}, ctx.Err()
	}
	if err != nil {
		u.w.log.Warn("web_search: " + err.Error())
		return tool.Failf("Nothing was searched: %v.", err), nil
	}
	return u.shown(found, cmp.Or(int(a.Limit), someHits)), nil
}

// answer is what a SearXNG answers in JSON (its documentation, "Search API"; the fields of results are
// those of its result types).
type answer struct {
	Results []struct {
		URL       string `json:"url"`
		Title     string `json:"title"`
		Content   string `json:"content"`
		Published string `json:"publishedDate"`
	} `json:"results"`
	Answers      []json.RawMessage `json:"answers"`              // texts, or objects with an "answer" and a "url"
	Corrections  []string          `json:"corrections"`          // of how the query is spelled
	Unresponsive [][]string        `json:"unresponsive_engines"` // pairs of an engine and what befell it
}

// find asks the SearXNG. The error says what to do.
func (w *Web) find(ctx context.Context, query, within string) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	at := *w.search
	q := at.Query()
	q.Set("q", query)
	q.Set("format", "json")
	if within != "" {
		q.Set("time_range", within)
	}
	at.RawQuery = q.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Accept", "application/json")
	shown := wire.Endpoint(w.search.String())
	res, err := w.asks.Do(req)
	if err != nil {
		return answer{}, i18n.E("web.search_down", shown, reason(ctx, err))
	}
	defer func() { _ = res.Body.Close() }()
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	switch {
	case res.StatusCode == http.StatusForbidden:
		return answer{}, i18n.E("web.search_no_json", shown)
	case res.StatusCode == http.StatusTooManyRequests:
		return answer{}, i18n.E("web.search_limited", shown)
	case res.StatusCode >= 300 && res.StatusCode < 400:
		return answer{}, i18n.E("web.search_moved", shown, wire.Endpoint(res.Header.Get("Location")))
	case res.StatusCode != http.StatusOK:
		return answer{}, i18n.E("web.search_status", shown, res.StatusCode)
	case kind != "application/json":
		return answer{}, i18n.E("web.search_not_json", shown)
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxSearched+1))
	if err != nil {
		return answer{}, i18n.E("web.search_down", shown, reason(ctx, err))
	}
	if len(body) > maxSearched {
		return answer{}, i18n.E("web.search_long", shown, maxSearched)
	}
	return readAnswer(body, shown)
}

// readAnswer reads the JSON of a SearXNG. Results that are no web addresses are left out.
func readAnswer(body []byte, shown string) (a answer, err error) {
	if err := json.Unmarshal(body, &a); err != nil {
		return answer{}, i18n.E("web.search_not_json", shown)
	}
	kept := a.Results[:0]
	for _, r := range a.Results {
		if u, err := url.Parse(r.URL); err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil && len(r.URL) <= maxAddress {
			kept = append(kept, r)
		}
	}
	a.Results = kept
	return a, nil
}

// shown is an answer as the model reads it, in what a result may have.
func (u *Lookup) shown(a answer, limit int) tool.Result {
	var silent []string
	for _, e := range a.Unresponsive {
		silent = append(silent, line(strings.Join(e, ": "), maxTitle))
	}
	note := ""
	if len(silent) > 0 {
		note = "\n[engines that did not answer: " + line(strings.Join(silent, "; "), maxExcerpt) + "]"
	}
	if len(a.Results) == 0 && len(a.Answers) == 0 {
		if note == "" {
			return tool.Text("Nothing was found. Try other words.")
		}
		// An engine that bars robots finds nothing for any words.
		return tool.Text("Nothing was found, and not every engine was asked.\n" + marked(strings.TrimSpace(note)))
	}
	room := room(u.leg.Limits)
	var b strings.Builder
	for i, raw := range a.Answers {
		if text := line(answerText(raw), maxExcerpt); text != "" && i < 3 {
			fmt.Fprintf(&b, "Answer: %s\n", text)
		}
	}
	if len(a.Corrections) > 0 {
		fmt.Fprintf(&b, "Did you mean: %s\n", line(a.Corrections[0], maxTitle))
	}
	n := 0
	var sources []Source
	for _, r := range a.Results {
		title := line(r.Title, maxTitle)
		entry := fmt.Sprintf("%d. %s\n   %s\n", n+1, cmp.Or(title, "(no title)"), r.URL)
		if r.Published != "" {
			entry += "   published: " + line(r.Published, 40) + "\n"
		}
		if text := line(r.Content, maxExcerpt); text != "" {
			entry += "   " + text + "\n"
		}
		if n >= limit || n > 0 && b.Len()+len(entry)+len(note) > room {
			break
		}
		b.WriteString(entry)
		sources = append(sources, Source{URL: r.URL, Title: title})
		n++
	}
	for _, s := range sources {
		u.name(s.URL)
	}
	u.found(sources...)
	return tool.Text(marked(strings.TrimSpace(b.String()) + note))
}

// answerText is the text of an answer that an engine gave by itself.
func answerText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var a struct{ Answer, URL string }
	if json.Unmarshal(raw, &a) != nil {
		return ""
	}
	return strings.TrimSpace(a.Answer + " " + a.URL)
}

// line is a text of strangers in one line of at most so many characters.
func line(s string, most int) string {
	if len(s) > 8*most {
		s = s[:8*most]
	}
	r := []rune(strings.Join(strings.Fields(visible(s)), " "))
	if len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return string(r)
}

// reason is why a request failed, without its address.
func reason(ctx context.Context, err error) error {
	if e := new(url.Error); errors.As(err, &e) {
		err = e.Err
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return i18n.E("web.slow", int(maxTime.Seconds()))
	}
	return err
}

// room is how many bytes of strangers' text a result may have, beside what is said around it.
func room(l tool.Limits) int {
	return max(cmp.Or(l.MaxOutput, tool.DefaultMaxOutput)-700, tool.MinMaxOutput/2)
}
