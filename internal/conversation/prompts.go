package conversation

import (
	"embed"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"toritsugi/internal/channel"
	"toritsugi/internal/contract"
	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/routing"
)

//go:embed prompts
var builtin embed.FS

// maxPrompt is the longest file of prompts, in bytes.
const maxPrompt = 64 << 10

// own are the prompts that a folder of the user's may replace; the rest is the program's.
// Users' AGENTS.md and USER.md have no built-in form.
var own = []string{"persona/CHAT_PERSONA.md", "policy.md", "AGENTS.md", "USER.md", "overlays/", "notices/"}

// prompts are the texts that models are given, of the user's folder where it has them.
// They are read again when they change. Safe for concurrent use.
type prompts struct {
	dir  string
	lang i18n.Lang
	log  *slog.Logger

	mu    sync.Mutex
	files map[string]cached
}

// cached is a file of the folder as it was read last.
type cached struct {
	at   time.Time
	size int64
	text string
	ok   bool
	why  error // why the file as it is now is not in force
}

func newPrompts(dir string, lang i18n.Lang, log *slog.Logger) *prompts {
	return &prompts{dir: dir, lang: lang, log: log, files: map[string]cached{}}
}

// text is a prompt by its name, "" where there is none.
func (p *prompts) text(name string) string {
	if p.dir != "" && mayOwn(name) {
		if text, ok := p.read(name); ok {
			return text
		}
	}
	raw, err := builtin.ReadFile("prompts/" + string(p.lang) + "/" + name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(raw))
}

func mayOwn(name string) bool {
	for _, o := range own {
		if name == o || strings.HasSuffix(o, "/") && strings.HasPrefix(name, o) {
			return true
		}
	}
	return false
}

// read is a file of the folder; false where it is missing or empty. One that cannot be
// read while it is edited leaves what was read before in force.
func (p *prompts) read(name string) (string, bool) {
	path := filepath.Join(p.dir, filepath.FromSlash(name))
	p.mu.Lock()
	defer p.mu.Unlock()
	was, known := p.files[name]
	st, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		delete(p.files, name)
		return "", false
	}
	if err == nil && known && st.ModTime().Equal(was.at) && st.Size() == was.size {
		return was.text, was.ok
	}
	now := was
	var raw []byte
	if err == nil {
		now.at, now.size = st.ModTime(), st.Size()
		raw, err = disk.Read(path, maxPrompt)
	}
	if err == nil && strings.ContainsRune(string(raw), 0) {
		err = i18n.E("conversation.no_text")
	}
	if err != nil {
		now.why = i18n.E("conversation.prompt_unread", path, err)
		if was.why == nil || now.why.Error() != was.why.Error() || !now.at.Equal(was.at) || now.size != was.size {
			p.log.Error(p.lang.Error(now.why)) // once for each change
		}
		p.files[name] = now
		return now.text, now.ok
	}
	now.why = nil
	now.text = strings.TrimSpace(strings.ToValidUTF8(string(raw), "\uFFFD"))
	now.ok = now.text != ""
	p.files[name] = now
	return now.text, now.ok
}

// trouble is why files of the folder are not in force as they are now, by their paths.
func (p *prompts) trouble(all map[string]error) {
	if p.dir == "" {
		return
	}
	var paths []string
	for _, name := range own {
		if strings.HasSuffix(name, "/") {
			name += "*.md"
		}
		found, _ := fs.Glob(os.DirFS(p.dir), name) // what is not there is not in force
		paths = append(paths, found...)
	}
	for _, name := range paths {
		p.read(name)
		p.mu.Lock()
		if why := p.files[name].why; why != nil {
			all[filepath.Join(p.dir, filepath.FromSlash(name))] = why
		}
		p.mu.Unlock()
	}
}

// system is what Chat is told before all: persona, policy, overlays, and, where it may hand
// over, how that is done, in this order. What changes with a turn comes last, so that the rest
// is a prefix that stays; requests that may hand over and those that may not have one each.
func (p *prompts) system(kind channel.Kind, route routing.Route, localOnly, mayHand bool) string {
	names := []string{"persona/CHAT_PERSONA.md", "policy.md", "AGENTS.md", "USER.md", "overlays/common.md", "overlays/channel_" + string(kind) + ".md"}
	if mayHand {
		names = append(names, "turn/protocol.md")
	}
	names = append(names, "overlays/route_"+strings.ToLower(string(route))+".md")
	if localOnly {
		names = append(names, "overlays/mode_local_only.md")
	}
	var parts []string
	for _, n := range names {
		if text := p.text(n); text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, "\n\n---\n\n")
}

// worker is what a worker is told of its work and its answer. A coder is told of the
// work alone: what it answers with is a tool's.
func (p *prompts) worker(route routing.Route) (string, error) {
	if route.Coding() {
		return p.text("workers/code.md"), nil
	}
	shape, err := contract.ShownOutput(route)
	if err != nil {
		return "", err
	}
	return p.text("workers/frame.md") + "\n\n" + p.text("workers/"+strings.ToLower(string(route))+".md") + "\n\n" + p.lang.T("conversation.schema") + "\n" + shape, nil
}

// notice is one of the texts of a kind, start or done, by a hash of what it is about.
func (p *prompts) notice(kind, alias, task string) string {
	var lines []string
	for line := range strings.Lines(p.text("notices/" + kind + ".md")) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		lines = []string{"{alias}: {task}"}
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(kind + "\x00" + task)) // a hash takes everything
	return strings.NewReplacer("{alias}", alias, "{task}", contract.Headline(task, maxLabel)).Replace(lines[int(h.Sum32())%len(lines)])
}

// maxLabel is how much of a task a notice shows, in characters.
const maxLabel = 32

// ExportPrompts writes the built-in prompts that may be replaced into dir, and returns
// their names. A file that is there already is an error, and nothing is written then.
func ExportPrompts(files *disk.FS, dir string, lang i18n.Lang) (names []string, err error) {
	root := "prompts/" + string(lang)
	err = fs.WalkDir(builtin, root, func(path string, d fs.DirEntry, err error) error {
		name := strings.TrimPrefix(path, root+"/")
		if err == nil && !d.IsDir() && mayOwn(name) {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, n := range names {
		if _, err := os.Lstat(filepath.Join(dir, n)); err == nil {
			return nil, i18n.E("conversation.export_there", filepath.Join(dir, n))
		}
	}
	for _, n := range names {
		raw, err := builtin.ReadFile(root + "/" + n)
		if err != nil {
			return nil, err
		}
		path := filepath.Join(dir, n)
		if err := files.MkdirAll(filepath.Dir(path)); err != nil {
			return nil, err
		}
		if err := files.Replace(path, raw, true); err != nil {
			return nil, fmt.Errorf("export %s: %w", n, err)
		}
	}
	return names, nil
}
