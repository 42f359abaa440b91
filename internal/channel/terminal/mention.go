package terminal

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/sys/unix"

	"toritsugi/internal/channel"
	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm/image"
)

const (
	maxFile  = 256 << 10 // bytes of a file that is mentioned
	maxFiles = 20        // of a message
)

// attachments are the files that a text mentions: @PATH below the repository, out of
// which no link leads, and images by path. notes says what was left out, and why.
func (t *Terminal) attachments(text string) (all []channel.Attachment, notes []string) {
	limits := image.DefaultLimits()
	for _, word := range wordsOf(text) {
		name, mention := strings.CutPrefix(strings.TrimLeft(word, "([（「『"), "@")
		if has := func(a channel.Attachment) bool { return a.Name == name }; slices.ContainsFunc(all, has) {
			continue
		}
		a, err := channel.Attachment{}, error(nil)
		switch {
		case mention && t.opt.Repo != "" && len(all) < maxFiles:
			a, err = t.mentioned(name)
		case !mention:
			a, err = picture(word, &limits)
		}
		switch {
		case err != nil:
			notes = append(notes, t.opt.Lang.T("terminal.not_attached", name, err))
		case a.Name != "":
			all = append(all, a)
		}
	}
	return all, notes
}

// mentioned reads a file of the repository; a name of none is no mention.
func (t *Terminal) mentioned(name string) (a channel.Attachment, err error) {
	root, err := os.OpenRoot(t.opt.Repo)
	if err != nil {
		return a, err
	}
	defer func() { _ = root.Close() }()
	if _, err := root.Lstat(name); err != nil {
		if name = strings.TrimRightFunc(name, func(r rune) bool { return unicode.IsPunct(r) && r != '_' }); name == "" {
			return a, nil
		}
	}
	f, err := root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if os.IsNotExist(err) {
		return a, nil
	}
	if err != nil {
		return a, i18n.E("terminal.unreadable")
	}
	defer func() { _ = f.Close() }()
	st, err := f.Stat()
	switch {
	case err != nil || st.IsDir():
		return a, err
	case !st.Mode().IsRegular():
		return a, i18n.E("terminal.unreadable")
	case st.Size() > maxFile:
		return a, i18n.E("terminal.large_file", maxFile>>10)
	}
	content, err := disk.ReadAll(f, name, maxFile)
	if err != nil {
		return a, i18n.E("terminal.large_file", maxFile>>10)
	}
	return channel.Attachment{Name: filepath.ToSlash(name), MediaType: http.DetectContentType(content), Content: content}, nil
}

// picture reads the image that a word names, if it names one that is there.
func picture(word string, limits *image.Limits) (a channel.Attachment, err error) {
	path := strings.TrimPrefix(word, "file://")
	switch strings.ToLower(filepath.Ext(path)) {
	case ".png", ".jpg", ".jpeg", ".gif", ".webp":
	default:
		return a, nil
	}
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			path = filepath.Join(home, rest)
		}
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil { // a word that names nothing
		return a, nil
	}
	img, dropped := image.Load(real, *limits)
	if dropped != "" {
		return a, i18n.E("image."+dropped, imageArgs(dropped)...)
	}
	*limits = limits.Less(img)
	return channel.Attachment{Name: filepath.Base(path), MediaType: img.MediaType, Content: img.Data}, nil
}

func imageArgs(reason string) []any {
	switch reason {
	case image.FileTooLarge:
		return []any{image.MaxFile >> 20}
	case image.TooMany:
		return []any{image.MaxImages, image.MaxBytes >> 20}
	}
	return nil
}

// wordsOf cuts a text into words. Quotes, and backslashes as terminals write them
// before blanks in the names of files that are dropped on them, keep blanks within.
func wordsOf(text string) (all []string) {
	var word strings.Builder
	quote, escaped := rune(0), false
	end := func() {
		if word.Len() > 0 {
			all = append(all, word.String())
			word.Reset()
		}
	}
	for _, r := range text {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\':
			escaped = true
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\'') && (word.Len() == 0 || word.String() == "@"):
			quote = r
		case quote == 0 && unicode.IsSpace(r) || r == '\n':
			quote = 0
			end()
		default:
			word.WriteRune(r)
		}
	}
	end()
	return all
}
