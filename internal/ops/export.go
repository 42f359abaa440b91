package ops

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/jsonl"
	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
)

// The formats of an export.
const (
	FormatMarkdown = "md"
	FormatHTML     = "html"
	FormatJSON     = "json"
	FormatATIF     = "atif"
	FormatSWEBench = "swebench"
)

// ExportOptions say how a run is exported.
type ExportOptions struct {
	Format  string // one of Format…
	Lang    i18n.Lang
	Redact  func(string) string
	Version string // of this program
	History string // planning.HistoryFile's answer for the run

	// Of FormatSWEBench: the instance that the run worked on, "" for that of its task's key;
	// and the patch from the base to the run's commit.
	Instance string
	Patch    []byte
}

// Export writes a run in one document. It holds one line of its logs at a time, and reads
// them as they are when it begins.
func Export(w io.Writer, base, uuid string, o ExportOptions) (err error) {
	names := func(string) ([]string, error) {
		return []string{contextstore.Messages, contextstore.Summaries, contextstore.Checks, contextstore.RequestLog}, nil
	}
	if o.Format == FormatJSON {
		names = recordFiles
	}
	v, err := openRun(base, uuid, names)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, v.Close()) }()
	b := bufio.NewWriter(w)
	switch o.Format {
	case FormatJSON:
		err = exportRecord(b, v, o)
	case FormatATIF:
		err = exportATIF(b, v, o)
	case FormatSWEBench:
		err = exportPrediction(b, v, o)
	default:
		err = exportPage(b, v, o)
	}
	if err != nil {
		return err
	}
	return b.Flush()
}

// recordFiles lists the logs and the small files of a context, but for metadata.json and
// state.json, which are read on their own.
func recordFiles(dir string) (names []string, err error) {
	err = disk.Entries(dir, func(e fs.DirEntry) error {
		name := strings.TrimSuffix(e.Name(), ".gz")
		ext := filepath.Ext(name)
		if e.Type().IsRegular() && !strings.HasPrefix(name, ".") && (ext == ".jsonl" || ext == ".json") && name != contextstore.MetadataFile && name != contextstore.StateFile {
			names = append(names, name)
		}
		return nil
	})
	slices.Sort(names)
	return slices.Compact(names), err
}

// exportRecord writes the whole record: metadata, state, and of each file what it says, by its
// name. A line that is no object is left out: tori check tells of it.
func exportRecord(w *bufio.Writer, v opened, o ExportOptions) error {
	head, err := jsonl.Marshal(map[string]any{"format": contextstore.Format, "uuid": v.Metadata.UUID, "status": v.Status(), "metadata": v.Metadata, "state": v.State})
	if err != nil {
		return err
	}
	_, _ = w.Write(head[:len(head)-1]) // errors stay with the writer
	_, _ = w.WriteString(`,"files":{`)
	if o.History != "" { // in the context, or where the settings say
		at := o.History
		if !filepath.IsAbs(at) {
			at = filepath.Join(v.Dir, at)
		}
		r, _, err := contextstore.OpenLog(filepath.Dir(at), filepath.Base(at))
		if err != nil {
			return err
		}
		if r != nil {
			v.files[contextstore.PlanningRecord] = r
		}
	}
	for i, name := range slices.Sorted(maps.Keys(v.files)) {
		if i > 0 {
			_ = w.WriteByte(',')
		}
		_, _ = w.WriteString("\n\"" + name + "\":")
		if filepath.Ext(name) == ".json" {
			raw, err := io.ReadAll(io.LimitReader(v.files[name], disk.MaxWhole))
			if err != nil {
				return err
			}
			if !json.Valid(raw) {
				raw = []byte("null")
			}
			_, _ = w.Write(bytes.TrimSpace(raw))
			continue
		}
		sep := "["
		err := jsonl.Each(v.files[name], func(_ int64, line []byte) bool {
			if jsonl.Check(line) == nil {
				_, _ = w.WriteString(sep + "\n")
				_, _ = w.Write(line)
				sep = ","
			}
			return true
		})
		if err != nil {
			return err
		}
		_, _ = w.WriteString(strings.TrimPrefix(sep, ",") + "]")
	}
	_, err = w.WriteString("}}\n")
	return err
}

// exportPrediction writes a line of predictions as SWE-bench's evaluation takes it.
func exportPrediction(w *bufio.Writer, v opened, o ExportOptions) error {
	k := v.Metadata.TaskKey
	if o.Instance == "" {
		o.Instance = k.Owner + "__" + k.Repo + "-" + k.ID
	}
	if o.Redact(string(o.Patch)) != string(o.Patch) {
		return i18n.E("ops.export_secret", contextstore.Short(v.Metadata.UUID))
	}
	line, err := jsonl.Append(nil, struct {
		Instance string `json:"instance_id"`
		Model    string `json:"model_name_or_path"`
		Patch    string `json:"model_patch"`
	}{o.Instance, modelOf(v.View), string(o.Patch)})
	if err == nil {
		_, err = w.Write(line)
	}
	return err
}

func modelOf(v contextstore.View) string {
	return v.Metadata.Config.Provider + "/" + v.Metadata.Config.Model
}

// lines calls f with each line of a file of the run.
func (o opened) lines(name string, f func(line []byte) error) (err error) {
	r := o.files[name]
	if r == nil {
		return nil
	}
	rerr := jsonl.Each(r, func(_ int64, line []byte) bool { err = f(line); return err == nil })
	return cmp.Or(err, rerr)
}
