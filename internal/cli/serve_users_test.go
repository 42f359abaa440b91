package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"toritsugi/internal/llm"
	"toritsugi/internal/llm/llmtest"
	"toritsugi/internal/task"
)

const (
	keyOfHanako = "hanako-4fgh81kqzx03lmnb"
	keyOfAPI    = "api-key-7d0fb1c2aa19"
)

// userAPI is a server of settings of users, as the reference describes it. answer, if set, takes
// the place of what it says.
type userAPI struct {
	*httptest.Server
	asked  atomic.Int64
	answer atomic.Pointer[http.HandlerFunc]
}

func newUserAPI(t *testing.T, all map[string]any) *userAPI {
	a := &userAPI{}
	a.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		a.asked.Add(1)
		if own := a.answer.Load(); own != nil {
			(*own)(rw, r)
			return
		}
		rw.Header().Set("Content-Type", "application/json")
		if r.Method != http.MethodGet || r.Header.Get("Authorization") != "Bearer "+keyOfAPI || r.URL.RawQuery != "" {
			rw.WriteHeader(http.StatusUnauthorized)
			_, _ = fmt.Fprint(rw, `{"detail":"Invalid API key"}`)
			return
		}
		data, ok := all[strings.TrimPrefix(r.URL.Path, "/config/github/")]
		if !ok {
			data = map[string]any{"llm": map[string]any{}, "system_prompt": "", "max_llm_process_num": 1000}
		}
		_ = json.NewEncoder(rw).Encode(map[string]any{"status": "success", "data": data})
	}))
	t.Cleanup(a.Close)
	return a
}

// A run goes by the settings of its user, the author of the issue: their model and key, and nobody
// else's run does. The key is in no file, log, environment or other run, even where the model
// says it.
func TestARunGoesByItsUser(t *testing.T) {
	t.Parallel()
	server := llmtest.NewServer(t, func(r *llmtest.Request) llmtest.Answer {
		do := func(tool, args string) llmtest.Answer {
			return llmtest.Answer{Calls: []llm.ToolCall{{ID: fmt.Sprint(r.Number), Name: tool, Arguments: args}}}
		}
		switch r.Turn() {
		case 0:
			return do("shell", `{"command":"env > environment.txt"}`)
		case 1:
			return do("write_file", `{"path":"answer.txt","content":"42\n"}`)
		}
		return llmtest.Answer{Text: "The answer is 42 now.\n\nMy key is " + strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ") + "."}
	})
	w := newTown(t, "")
	api := newUserAPI(t, map[string]any{"hanako": map[string]any{
		"llm": map[string]any{"provider": "openai", "function_calling": true, "openai": map[string]any{
			"api_key": keyOfHanako, "base_url": server.URL, "model": "gpt-of-hanako", "max_token": 40960, "organization": nil}},
		"system_prompt": "絵文字😀は使わない。", "max_llm_process_num": 1000, "planning": map[string]any{"enabled": false}, "theme": "dark"}})
	w.asks(server.URL)
	raw, _ := readFile(w.config)
	write(t, w.config, string(raw)+"user_config_api: {enabled: true, url: '"+api.URL+"/'}\nlogging: {level: debug}\ntelemetry: {traces: {content: true}}\n")
	w.env = append(w.env, "USER_CONFIG_API_KEY="+keyOfAPI)
	own := w.repo.OpenIssue("hanako", "The answer is wrong", "It says 41.")
	w.repo.Label(own, "coding agent", "hanako")
	log := w.once()
	other := w.repo.OpenIssue("stranger", "The answer is still wrong", "It says 41.")
	w.repo.Label(other, "coding agent", "hanako")
	log += w.once()
	if strings.Count(log, "theme") == 0 {
		t.Errorf("an unknown setting is not told of:\n%s", log)
	}
	for _, v := range w.runs() {
		user, model := "stranger", "m"
		if v.Metadata.TaskKey.ID == fmt.Sprint(own) {
			user, model = "hanako", "gpt-of-hanako"
		}
		if v.Metadata.User != user || v.Metadata.Config.Model != model || v.Status() != task.Completed {
			t.Errorf("#%s of %s by %s: %s\n%s", v.Metadata.TaskKey.ID, v.Metadata.User, v.Metadata.Config.Model, v.Status(), log)
		}
	}
	theirs, house := 0, 0
	for _, r := range server.Requests() {
		about := bytes.Contains(r.Body, []byte("still wrong"))
		wishes := bytes.Contains(r.Body, []byte("絵文字😀は使わない。"))
		switch key := r.Header.Get("Authorization"); {
		case about && key == "Bearer key-for-a-test" && r.Model == "m" && !wishes:
			house++
		case !about && key == "Bearer "+keyOfHanako && r.Model == "gpt-of-hanako" && wishes:
			theirs++
		default:
			t.Errorf("%s is called with %q (still wrong: %v, wishes: %v)", r.Model, key, about, wishes)
		}
		if bytes.Contains(r.Body, []byte(keyOfHanako)) || bytes.Contains(r.Body, []byte(keyOfAPI)) {
			t.Errorf("a key is in a request:\n%s", r.Body)
		}
	}
	if theirs < 3 || house < 3 || len(w.repo.Pulls()) != 2 {
		t.Errorf("%d calls for hanako, %d for others, %d pull requests", theirs, house, len(w.repo.Pulls()))
	}
	pulls := w.repo.Pulls()
	for _, key := range []string{keyOfHanako, keyOfAPI} {
		for _, p := range pulls {
			if env, _ := w.repo.File(p.Pull.Head, "environment.txt"); !strings.Contains(env, "PATH=") || strings.Contains(env, key) {
				t.Errorf("a command's environment: %q", env)
			}
		}
		if strings.Contains(log, key) {
			t.Errorf("a key is in the log:\n%s", log)
		}
		if at := w.holding(key); len(at) > 0 {
			t.Errorf("a key is in %q", at)
		}
		for _, n := range []int{own, other} {
			if _, ours := w.shown(n); strings.Contains(strings.Join(ours, "\n"), key) {
				t.Errorf("a key is posted: %q", ours)
			}
		}
	}
}

// holding are the files of the town that hold a text.
func (w *town) holding(text string) (at []string) {
	w.t.Helper()
	err := filepath.WalkDir(w.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		b, err := readFile(path)
		if bytes.Contains(b, []byte(text)) {
			at = append(at, path)
		}
		return err
	})
	if err != nil {
		w.t.Error(err)
	}
	return at
}

// Where the server of settings does not work, a run waits or goes by the house's settings, as
// user_config.on_failure says, and one that waits goes on by itself. A key that is wrong ends as
// the house's own does, and is replaced by none.
func TestSettingsOfUsersThatCannotBeHad(t *testing.T) {
	t.Parallel()
	answers := func(r *llmtest.Request) llmtest.Answer {
		switch key := r.Header.Get("Authorization"); {
		case key == "Bearer sk-wrong-0123456789":
			return llmtest.Answer{Status: 401, ErrorCode: "invalid_api_key", ErrorText: "Incorrect API key provided: sk-wrong-0123456789"}
		case r.Turn() == 0:
			return llmtest.Answer{Calls: []llm.ToolCall{{ID: "1", Name: "write_file", Arguments: `{"path":"answer.txt","content":"42\n"}`}}}
		}
		return llmtest.Answer{Text: "The answer is 42 now."}
	}
	settings := map[string]any{"hanako": map[string]any{"llm": map[string]any{"openai": map[string]any{"api_key": keyOfHanako, "model": "gpt-of-hanako"}}},
		"stranger": map[string]any{"llm": map[string]any{"openai": map[string]any{"api_key": "sk-wrong-0123456789"}}}}
	for _, wait := range []bool{true, false} {
		t.Run(fmt.Sprint("wait ", wait), func(t *testing.T) {
			t.Parallel()
			w, server := newTown(t, ""), llmtest.NewServer(t, answers)
			api := newUserAPI(t, settings)
			login := http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
				rw.Header().Set("Content-Type", "text/html")
				_, _ = fmt.Fprint(rw, "<html>Log in</html>")
			})
			api.answer.Store(&login)
			w.asks(server.URL)
			raw, _ := readFile(w.config)
			on := "defaults"
			if wait {
				on = "wait"
			}
			write(t, w.config, string(raw)+"user_config_api: {enabled: true, url: '"+api.URL+"', api_key: "+keyOfAPI+"}\nuser_config: {on_failure: "+on+"}\n")
			n := w.repo.OpenIssue("hanako", "The answer is wrong", "It says 41.")
			w.repo.Label(n, "coding agent", "hanako")
			log := w.once()
			want, model := task.Completed, "m"
			if wait {
				want = task.Queued
			}
			if v := w.runs()[0]; v.Status() != want || v.Metadata.Config.Model != model || !strings.Contains(log, "a login page or a proxy may be in the way") {
				t.Errorf("%s by %s\n%s", v.Status(), v.Metadata.Config.Model, log)
			}
			api.answer.Store(nil)
			if wait { // also in another's hands it is hanako's run
				cmd := w.serve()
				cmd.Args = append([]string{"tori", "run", "--resume", w.runs()[0].Metadata.UUID}, cmd.Args[2:]...)
				out, err := cmd.CombinedOutput()
				if log = string(out); err != nil {
					t.Errorf("%v\n%s", err, log)
				}
			}
			log += w.once()
			if v := w.runs()[0]; v.Status() != task.Completed {
				t.Errorf("%s\n%s", v.Status(), log)
			}
			for _, r := range server.Requests() {
				if own := r.Header.Get("Authorization") == "Bearer "+keyOfHanako && r.Model == "gpt-of-hanako"; own != wait {
					t.Errorf("%s is called with %q", r.Model, r.Header.Get("Authorization"))
				}
			}
			n = w.repo.OpenIssue("stranger", "The answer is wrong", "It says 41.")
			w.repo.Label(n, "coding agent", "hanako")
			log = w.once()
			if v := w.runs()[0]; v.Status() == task.Completed || v.State.LLMCallCount != 0 || v.Metadata.User != "stranger" || !strings.Contains(log, "401") {
				t.Errorf("%s after %d calls\n%s", v.Status(), v.State.LLMCallCount, log)
			}
			if at := w.holding("sk-wrong-0123456789"); len(at) > 0 || strings.Contains(log, "sk-wrong-0123456789") {
				t.Errorf("the key is in %q\n%s", at, log)
			}
		})
	}
}
