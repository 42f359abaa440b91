package dispatch

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/delivery"
	"toritsugi/internal/forge"
	"toritsugi/internal/forge/github"
	"toritsugi/internal/forge/rest"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
)

// site is the other end of the wire: a GitHub with one repository, that is down
// for a while.
type site struct {
	mu         sync.Mutex
	down       bool
	asked      int             // while it is down
	writes     map[string]int  // what was written, how often
	labels     map[string]bool // "number name"
	comments   map[string][]string
	listedLast time.Time
}

// RoundTrip implements http.RoundTripper.
func (s *site) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	status, body := http.StatusServiceUnavailable, `{"message":"Service unavailable"}`
	if s.down {
		s.asked++
	} else {
		status, body = http.StatusOK, s.answer(r)
	}
	h := http.Header{"Content-Type": {"application/json"}, "Date": {time.Now().UTC().Format(http.TimeFormat)}}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body)), Request: r, ProtoMajor: 1, ProtoMinor: 1}, nil
}

func (s *site) answer(r *http.Request) string {
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/api/v3/"), "/") // repos o a issues 1 labels
	switch {
	case parts[0] == "user":
		return `{"id":1,"login":"tori","type":"User"}`
	case len(parts) == 3:
		return `{"id":9,"name":"a","full_name":"o/a","owner":{"login":"o"},"default_branch":"main"}`
	case len(parts) == 4:
		s.listedLast = time.Now()
		return `[]`
	case parts[4] == "comments":
		return `[]`
	case len(parts) == 5:
		return fmt.Sprintf(`{"id":%[1]s,"number":%[1]s,"state":"open","title":"t","repository_url":"https://x/repos/o/a"}`, parts[4])
	}
	n, what := parts[4], parts[5]
	var in struct {
		Body   string
		Labels []string
	}
	if r.Body != nil {
		_ = json.NewDecoder(r.Body).Decode(&in)
	}
	if r.Method != http.MethodGet {
		s.writes[fmt.Sprint(r.Method, " ", strings.Join(parts[4:], "/"))]++
	}
	var all []string
	switch {
	case what == "labels" && r.Method == http.MethodDelete:
		delete(s.labels, n+" "+parts[6])
	case what == "labels" && r.Method == http.MethodPost:
		for _, l := range in.Labels {
			s.labels[n+" "+l] = true
		}
	case what == "labels":
		for l := range s.labels {
			if name, ok := strings.CutPrefix(l, n+" "); ok {
				all = append(all, fmt.Sprintf(`{"name":%q}`, name))
			}
		}
	case r.Method == http.MethodPost:
		s.comments[n] = append(s.comments[n], in.Body)
		return fmt.Sprintf(`{"id":%d,"body":%q,"user":{"id":1,"login":"tori"}}`, 100+len(s.comments[n]), in.Body)
	default:
		for i, c := range s.comments[n] {
			all = append(all, fmt.Sprintf(`{"id":%d,"body":%q,"user":{"id":1,"login":"tori"}}`, 101+i, c))
		}
	}
	return "[" + strings.Join(all, ",") + "]"
}

func (s *site) set(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

// The forge answers nothing but 503 for an hour while runs end and go on: what
// they are is shown as it was, nothing is taken for delivered, nobody is stopped,
// it is asked a bounded number of times, and within a quarter of an hour after
// that everything is there, once.
func TestTheForgeIsDownForAnHour(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hub := &site{writes: map[string]int{}, labels: map[string]bool{"1 processing": true, "2 processing": true, "3 processing": true}, comments: map[string][]string{}}
		f, err := github.New(github.Options{Login: rest.Login{URL: "https://git.example", Token: "t", HTTP: &http.Client{Transport: hub}}, WriteSpacing: -1})
		if err != nil {
			t.Fatal(err)
		}
		s, stats, log := openStore(t, t.TempDir()), &Stats{}, slog.New(slog.DiscardHandler)
		watch := &Watch{Host: &delivery.Host{Tracker: f, Least: forge.Write, Labels: delivery.Labels{Trigger: "coding agent", Status: map[task.Status]string{task.Running: "processing"}}},
			Patterns: []string{"o/a"}, Label: "coding agent", StopRemoved: true, MaxPerHour: 5}
		watches := map[string]*Watch{"github": watch}
		handlers := map[string]delivery.Handler{
			"labels": func(ctx context.Context, uuid string, _ contextstore.Effect) (string, error) {
				m, err := s.Metadata(uuid)
				if err != nil {
					return "", err
				}
				return "done", f.SetLabels(ctx, m.TaskKey, []string{"done"}, []string{"processing"})
			},
			"comment": func(ctx context.Context, uuid string, e contextstore.Effect) (string, error) {
				m, err := s.Metadata(uuid)
				if err != nil {
					return "", err
				}
				c, err := f.Post(ctx, m.TaskKey, e.Key, "It is done.")
				return c.ID, err
			},
		}
		c := NewDeliverer(&Deliverer{Store: s, Sources: map[string]bool{"github": true}, Watches: watches, Log: log, Now: time.Now,
			Outbox: &Outbox{Store: s, Log: log, Stats: stats, Handlers: handlers}})
		i := &Intake{Store: s, Watches: []*Watch{watch}, Mailbox: &Mailbox{}, Lang: i18n.English, Log: log, Now: time.Now, Wake: c.Wake, Stats: stats,
			Interval: 5 * time.Minute, CommentsEvery: 30 * time.Second}
		runs := map[int]*contextstore.Context{}
		for n := 1; n <= 3; n++ {
			if runs[n], _, err = s.Claim(t.Context(), enqueue(t, s, "github", "a", "ken", n)); err != nil {
				t.Fatal(err)
			}
		}
		ends := func(n int) {
			id := runs[n].UUID()
			owed := func(kind string) contextstore.Effect {
				return contextstore.Effect{Key: id + "." + kind, Kind: kind, Data: json.RawMessage(`{}`)}
			}
			if err := runs[n].Transition(t.Context(), task.Outcome{Status: task.Completed}, owed("comment"), owed("labels")); err != nil {
				t.Fatal(err)
			}
			c.Wake()
		}
		ctx, stop := context.WithCancel(t.Context())
		var engines sync.WaitGroup
		engines.Go(func() { i.Run(ctx) })
		engines.Go(func() { c.Run(ctx) })
		time.Sleep(time.Minute)
		reached := stats.Counts().Polls["github"].At
		hub.set(true)
		ends(1)
		time.Sleep(20 * time.Minute)
		ends(2)
		time.Sleep(40 * time.Minute)
		synctest.Wait()
		if n := stats.Counts(); n.Delivered != 0 || n.Failed == 0 || n.Polls["github"].Errors == 0 || !n.Polls["github"].At.Equal(reached) || time.Since(reached) < time.Hour {
			t.Errorf("after the hour: %+v", n)
		}
		for n, want := range map[int]task.Status{1: task.Completed, 2: task.Completed, 3: task.Running} {
			v, err := s.View(runs[n].UUID())
			left, lerr := s.Undelivered(t.Context(), runs[n].UUID())
			if err != nil || lerr != nil || v.Status() != want || want == task.Completed && len(left) != 2 {
				t.Errorf("#%d: %s, %d effects left, %v, %v", n, v.Status(), len(left), err, lerr)
			}
			if _, asked := s.Pending(runs[n].UUID()); asked {
				t.Errorf("#%d was asked to end", n)
			}
		}
		// Whatever reads is asked for four times: two looks a minute, one at the list
		// of repositories, and what is owed less and less often.
		if n := stats.Counts().Failed; hub.asked < 50 || hub.asked > 60*3*4+int(n)*4 || n > 2*12 {
			t.Errorf("%d requests while it was down, %d attempts to deliver", hub.asked, n)
		}
		hub.set(false)
		time.Sleep(lastPause + time.Minute)
		synctest.Wait()
		for n := 1; n <= 2; n++ {
			id := runs[n].UUID()
			if left, err := s.Undelivered(t.Context(), id); err != nil || len(left) > 0 {
				t.Errorf("#%d: %d effects left, %v", n, len(left), err)
			}
			for _, w := range []string{fmt.Sprintf("POST %d/comments", n), fmt.Sprintf("POST %d/labels", n), fmt.Sprintf("DELETE %d/labels/processing", n)} {
				if hub.writes[w] != 1 {
					t.Errorf("%s was sent %d times", w, hub.writes[w])
				}
			}
		}
		if n := stats.Counts(); len(hub.writes) != 6 || n.Delivered != 4 || time.Since(n.Polls["github"].At) > 6*time.Minute || time.Since(hub.listedLast) > 6*time.Minute {
			t.Errorf("in the end: %+v, %v", n, hub.writes)
		}
		stop()
		engines.Wait()
		if err := runs[3].Close(); err != nil {
			t.Error(err)
		}
	})
}
