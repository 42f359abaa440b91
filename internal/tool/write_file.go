package tool

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"toritsugi/internal/lazyregexp"
)

//go:embed write_file.md
var writeFilePage string

const writeFileSchema = `{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"}},"required":["path","content"],"additionalProperties":false}`

type writeFileArgs struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

func writeFileTool(w *workspaceFiles) Tool {
	return builtin[writeFileArgs]{
		def: Describe("write_file", writeFilePage, writeFileSchema, false, append(fileAliases, "contents", "content", "text", "content", "file_text", "content", "code", "content")...),
		call: func(_ context.Context, a writeFileArgs) (Result, error) {
			shown, real, problem := w.target(a.Path)
			if problem != "" {
				return Failf("%s", problem), nil
			}
			w.write.Lock()
			defer w.write.Unlock()
			content, fenced := Unfenced(real, a.Content)
			r := w.writeFile(shown, real, content)
			if fenced && !r.IsError {
				r.Text += " The fence around the content was left out."
			}
			return r, nil
		},
	}
}

// wholeFence is a content that is one block of code in Markdown.
var wholeFence = lazyregexp.New("(?s)^```[a-zA-Z]*\n(.*\n)```\\s*$")

// Unfenced is a content without a fence around all of it, where it is not for
// Markdown: models write code as they show it.
func Unfenced(name, content string) (string, bool) {
	m := wholeFence().FindStringSubmatch(content)
	if m == nil || strings.Contains(m[1], "\n```") || slices.Contains([]string{".md", ".markdown", ".mdx", ".txt", ".rst"}, strings.ToLower(path.Ext(name))) {
		return content, false
	}
	return m[1], true
}

func (w *workspaceFiles) writeFile(shown, real, content string) Result {
	mode, created := newFile, false
	info, err := w.root.Lstat(real)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		created = true
		if problem := w.secretName(real); problem != "" {
			return Failf("%s", problem)
		}
	case err != nil:
		return Failf("%s", w.explain(shown, err))
	case info.IsDir():
		return Failf("%s is a directory, so no file can be written there. Give a path below it.", shown)
	case !info.Mode().IsRegular():
		return Failf("%s is not a regular file (%s).", shown, info.Mode().Type())
	default:
		mode = info.Mode().Perm()
	}
	content, problem := w.ownText(content, real, created)
	if problem != "" {
		return w.maskRefused(shown, problem)
	}
	if err := w.root.MkdirAll(path.Dir(real), 0o777); err != nil {
		return Failf("%s", w.explain(shown, err))
	}
	if err := w.replace(real, content, mode); err != nil {
		return Failf("%s", w.explain(shown, err))
	}
	verb := "Overwrote"
	if created {
		verb = "Created"
	}
	return Text(fmt.Sprintf("%s %s: %s, %s.", verb, shown, counted(len(content), "byte"), counted(countLines(content), "line")))
}

// ownText returns content with the file's own text for each masking token.
func (w *workspaceFiles) ownText(content, rel string, created bool) (own, problem string) {
	if len(w.tokens(content)) == 0 {
		return content, ""
	}
	if created {
		return w.restore("", "", nil, content)
	}
	f, info, problem := w.open(rel)
	if problem != "" {
		return "", problem
	}
	data, err := io.ReadAll(io.LimitReader(f, maxEdit+1))
	_ = f.Close() // it was only read
	if err != nil {
		return "", w.explain(rel, err)
	}
	if len(data) > maxEdit {
		return "", fmt.Sprintf("the new text contains a masking token, and the file has %d bytes, too many to look what it stands for. Use edit_file on a smaller part.", info.Size())
	}
	m := w.mask(string(data))
	sure := m.marks[:0:0]
	for _, k := range m.marks {
		if k.sure {
			sure = append(sure, k)
		}
	}
	return w.restore(string(data), m.text, sure, content)
}

// maxTemps is how many left-over temporary files a write steps over.
const maxTemps = 100

// newFile is the mode of a file that is not there yet.
const newFile = fs.ModeIrregular

// replace puts content at rel so that a reader sees the old file or the new
// one. Nothing is synced: after a power cut the
// workspace is compared with its snapshot (PROTOCOL "Claim" 5).
func (w *workspaceFiles) replace(rel, content string, mode fs.FileMode) (err error) {
	perm := mode
	if mode == newFile {
		perm = 0o666 // the process's umask decides, as for any program
	}
	var tmp string
	var f *os.File
	for i := range maxTemps {
		tmp = path.Join(path.Dir(rel), fmt.Sprintf(".tori-write-%d.tmp", i))
		f, err = w.root.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm|0o200)
		if !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(content)
	if err == nil && mode != newFile {
		err = f.Chmod(mode)
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = w.root.Rename(tmp, rel)
	}
	if err != nil {
		_ = w.root.Remove(tmp) // the first failure is the one to tell
	}
	return err
}
