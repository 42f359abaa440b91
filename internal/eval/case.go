// Package eval measures the house with small real tasks: a repository, an issue,
// and a check that the model never sees. Each is run through the whole house, or
// through a minimal loop on the same model, and judged in the sandbox.
package eval

import (
	"bytes"
	"embed"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/rogpeppe/go-internal/txtar"

	"toritsugi/internal/document"
	"toritsugi/internal/i18n"
)

// shipped are the cases of our own, an archive each, so that neither Go nor git
// takes the files in them for ours.
//
//go:embed cases/*.txtar
var shipped embed.FS

// File is one file of a case. Its path is relative, with slashes.
type File struct {
	Path string
	Data []byte
}

// Mode is how the file is written: what begins as a script can be executed.
func (f File) Mode() fs.FileMode {
	if bytes.HasPrefix(f.Data, []byte("#!")) {
		return 0o755
	}
	return 0o644
}

// Case is one task.
type Case struct {
	Name  string
	About string   // one line: what it tests
	Needs []string // programs that it cannot do without
	// Checks are what the house checks its work by; nil leaves it to find them,
	// as it does in a repository that nobody configured.
	Checks  []string
	Timeout time.Duration // of the hidden check

	Issue  []byte // issue.md, in the form of a folder's issues
	Repo   []File // the base commit
	Check  string // the hidden check: a script whose exit code 0 means resolved
	Hidden []File // laid over the result for the check
	// Scripts are written answers, by name: script.yaml answers well in a run
	// without planning, script-plan.yaml in one with, script-bare.yaml with only a
	// shell; script-bad.yaml does not answer well.
	Scripts map[string][]byte

	RepoOf string // the case of the same directory that has the base commit
}

// Bounds of a case.
const (
	maxCase        = 16 << 20 // bytes of all its files
	maxCaseFiles   = 5000
	maxCases       = 1000
	defaultTimeout = 2 * time.Minute
	maxTimeout     = time.Hour
)

// settings is case.yaml.
type settings struct {
	About   string   `yaml:"about"`
	Needs   []string `yaml:"needs"`
	Checks  []string `yaml:"checks"`
	Timeout int      `yaml:"timeout_seconds"`
	RepoOf  string   `yaml:"repo_of"`
}

// Shipped returns the cases of our own, sorted by name.
func Shipped() ([]Case, error) {
	sub, err := fs.Sub(shipped, "cases")
	if err != nil {
		return nil, err
	}
	return Load(sub, "cases")
}

// LoadDir reads the cases of a directory; see Load.
func LoadDir(dir string) ([]Case, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, i18n.E("eval.cases_read", dir, err)
	}
	defer func() { _ = root.Close() }() // only read from
	return Load(root.FS(), dir)
}

// Load reads the cases of a directory, sorted by name: each is an archive
// NAME.txtar, or a directory NAME with the same files. Everything else in it is
// passed over. of is what errors call the directory; they are i18n errors.
func Load(dir fs.FS, of string) ([]Case, error) {
	entries, err := fs.ReadDir(dir, ".")
	if err != nil {
		return nil, i18n.E("eval.cases_read", of, err)
	}
	var all []Case
	for _, e := range entries {
		name, archive := strings.CutSuffix(e.Name(), ".txtar")
		where := path.Join(of, e.Name())
		var files []File
		switch {
		case archive && e.Type().IsRegular():
			files, err = readArchive(dir, e.Name())
		case e.IsDir() && exists(dir, path.Join(e.Name(), "issue.md")):
			files, err = readTree(dir, e.Name())
		default:
			continue
		}
		if err != nil {
			return nil, i18n.E("eval.case", where, err)
		}
		c, err := newCase(name, files)
		if err != nil {
			return nil, i18n.E("eval.case", where, err)
		}
		all = append(all, c)
		if len(all) > maxCases {
			return nil, i18n.E("eval.too_many", of, maxCases)
		}
	}
	if len(all) == 0 {
		return nil, i18n.E("eval.no_cases", of)
	}
	slices.SortFunc(all, func(a, b Case) int { return strings.Compare(a.Name, b.Name) })
	for i := range all {
		c := &all[i]
		if i > 0 && c.Name == all[i-1].Name {
			return nil, i18n.E("eval.twice", of, c.Name)
		}
		if c.RepoOf == "" {
			continue
		}
		from := slices.IndexFunc(all, func(o Case) bool { return o.Name == c.RepoOf && o.RepoOf == "" })
		if from < 0 {
			return nil, i18n.E("eval.case", of, i18n.E("eval.repo_of", c.Name, c.RepoOf))
		}
		c.Repo = all[from].Repo
	}
	return all, nil
}

func exists(dir fs.FS, name string) bool {
	_, err := fs.Stat(dir, name)
	return err == nil
}

func readArchive(dir fs.FS, name string) ([]File, error) {
	data, err := readFile(dir, name, maxCase)
	if err != nil {
		return nil, err
	}
	return parseArchive(data), nil
}

func parseArchive(data []byte) []File {
	var files []File
	for _, f := range txtar.Parse(data).Files {
		files = append(files, File{Path: f.Name, Data: f.Data})
	}
	return files
}

// readTree reads the plain files below a directory.
func readTree(dir fs.FS, name string) (files []File, err error) {
	left := int64(maxCase)
	err = fs.WalkDir(dir, name, func(p string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir():
			return nil
		case !e.Type().IsRegular():
			return i18n.E("eval.not_plain", p)
		case len(files) == maxCaseFiles:
			return i18n.E("eval.too_large", maxCaseFiles, maxCase>>20)
		}
		data, err := readFile(dir, p, left)
		left -= int64(len(data))
		files = append(files, File{Path: strings.TrimPrefix(p, name+"/"), Data: data})
		return err
	})
	return files, err
}

func readFile(dir fs.FS, name string, most int64) ([]byte, error) {
	f, err := dir.Open(name)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err = errors.Join(err, f.Close()); err == nil && int64(len(data)) > most {
		err = i18n.E("eval.too_large", maxCaseFiles, maxCase>>20)
	}
	return data, err
}

// newCase sorts the files of a case.
func newCase(name string, files []File) (Case, error) {
	c := Case{Name: name, Timeout: defaultTimeout, Scripts: map[string][]byte{}}
	if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || strings.HasPrefix(name, "-") {
		return c, i18n.E("eval.bad_name", name)
	}
	seen := map[string]bool{}
	for _, f := range files {
		if seen[f.Path] {
			return c, i18n.E("eval.file_twice", f.Path)
		}
		seen[f.Path] = true
		top, rest, _ := strings.Cut(f.Path, "/")
		if (top == "repo" || top == "hidden") && !plainPath(rest) {
			return c, i18n.E("eval.bad_path", f.Path)
		}
		switch {
		case f.Path == "issue.md":
			c.Issue = f.Data
		case f.Path == "check.sh":
			c.Check = string(f.Data)
		case f.Path == "case.yaml":
			if err := c.set(f.Data); err != nil {
				return c, err
			}
		case f.Path == stepsFile:
			if err := c.setSteps(f.Data); err != nil {
				return c, err
			}
		case top == "repo":
			c.Repo = append(c.Repo, File{rest, f.Data})
		case top == "hidden":
			c.Hidden = append(c.Hidden, File{rest, f.Data})
		case rest == "" && strings.HasPrefix(top, "script") && strings.HasSuffix(top, ".yaml"):
			c.Scripts[top] = f.Data
		case rest == "" && strings.HasSuffix(top, ".md"): // notes for people
		default:
			return c, i18n.E("eval.unknown_file", f.Path)
		}
	}
	switch {
	case len(bytes.TrimSpace(c.Issue)) == 0:
		return c, i18n.E("eval.lacks", "issue.md")
	case strings.TrimSpace(c.Check) == "":
		return c, i18n.E("eval.lacks", "check.sh")
	case (len(c.Repo) == 0) == (c.RepoOf == ""):
		return c, i18n.E("eval.lacks", "repo/")
	}
	return c, c.setPlan()
}

// plainPath reports whether p names a file inside a repository, and none of git's.
func plainPath(p string) bool {
	if p == "." || !fs.ValidPath(p) || strings.ContainsAny(p, "\\\x00") {
		return false
	}
	return !slices.ContainsFunc(strings.Split(p, "/"), func(part string) bool { return strings.EqualFold(part, ".git") })
}

// decode reads a document of a case.
func decode(data []byte, into any) *document.Error {
	file, err := document.Parse(data)
	if err == nil && len(file.Docs) > 0 && file.Docs[0].Body != nil {
		if err = yaml.NodeToValue(file.Docs[0].Body, into, yaml.Strict()); err != nil {
			err = document.Explain(err)
		}
	}
	at := new(document.Error)
	if errors.As(err, &at) {
		return at
	}
	return nil
}

func (c *Case) set(data []byte) error {
	var s settings
	if at := decode(data, &s); at != nil {
		return i18n.E("eval.settings", at.Line, at.Why)
	}
	for _, n := range s.Needs {
		if n == "" || strings.Trim(n, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-_.") != "" || strings.HasPrefix(n, "-") {
			return i18n.E("eval.bad_need", n)
		}
	}
	if s.Timeout < 0 || s.Timeout > int(maxTimeout/time.Second) {
		return i18n.E("eval.bad_timeout", s.Timeout, int(maxTimeout/time.Second))
	}
	c.About, c.Needs, c.Checks, c.RepoOf = s.About, s.Needs, s.Checks, s.RepoOf
	if s.Timeout > 0 {
		c.Timeout = time.Duration(s.Timeout) * time.Second
	}
	return nil
}

// answers is the script of a kind for a mode, and its name; nil where there is
// none. The minimal loop has no tools but a shell, and the house may be led by a
// plan, so that each may have a script of its own.
func (c *Case) answers(kind string, m Mode) (name string, data []byte) {
	own := strings.TrimPrefix(kind, Answers) + ".yaml"
	names := map[Mode][]string{House: {plannedScript + own, kind + ".yaml"}, Plan: {plannedScript + own}, Plain: {kind + ".yaml"}, Bare: {bareScript + own, kind + ".yaml"}}
	for _, name = range names[m] {
		if data = c.Scripts[name]; data != nil {
			break
		}
	}
	return name, data
}

// How the scripts for one of the modes begin.
const (
	plannedScript = "script-plan"
	bareScript    = "script-bare"
)

// Select returns the cases whose names are given, all where none are. A name is
// that of a case, or a pattern as path.Match has them.
func Select(all []Case, names []string) ([]Case, error) {
	if len(names) == 0 {
		return all, nil
	}
	var out []Case
	used := make([]bool, len(names))
	for _, c := range all {
		take := false
		for i, n := range names {
			if ok, err := path.Match(n, c.Name); err == nil && ok {
				take, used[i] = true, true
			}
		}
		if take {
			out = append(out, c)
		}
	}
	if i := slices.Index(used, false); i >= 0 {
		return nil, i18n.E("eval.no_case", names[i])
	}
	return out, nil
}
