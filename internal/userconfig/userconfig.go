// Package userconfig reads the settings of single users where a team keeps them: on a server
// (reference "per-user config"), or in a folder (store-v2 §6.1). It keeps nothing of what it reads,
// which may hold keys, and understands none of it.
package userconfig

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm/wire"
)

// ErrNone says that a user has no settings.
var ErrNone = errors.New("no settings of this user")

// maxSettings is the most bytes of one user's settings.
const maxSettings = 128 << 10

// Settings are what one user has set.
type Settings struct {
	From    string // where they stand, for people
	Data    []byte // YAML
	Warning error  // i18n; nil for none
}

// Source is where settings of users are. Read fails with ErrNone for a user who has none, and
// with an i18n error where that cannot be told.
type Source interface {
	Read(ctx context.Context, platform, login string) (Settings, error)
}

// name refuses what is no login of a forge, and what would lead elsewhere in an address or a path.
func name(login string) error {
	bad := func(r rune) bool { return r <= ' ' || strings.ContainsRune(`/\:?#%*`, r) || r == 0x7f }
	if login == "" || len(login) > 200 || login[0] == '.' || strings.Contains(login, "..") || strings.ContainsFunc(login, bad) {
		return i18n.E("users.name", login)
	}
	return nil
}

// API is a server that answers GET {URL}/config/{platform}/{login}.
type API struct {
	URL, Key string
	HTTP     *http.Client // its Timeout bounds a question
}

// Read implements Source.
func (a API) Read(ctx context.Context, platform, login string) (Settings, error) {
	at := strings.TrimSuffix(a.URL, "/") + "/config/" + platform + "/" + url.PathEscape(login)
	s := Settings{From: wire.Endpoint(at)}
	if err := name(login); err != nil {
		return s, err
	}
	status, body, err := a.get(ctx, at)
	if wrapped := new(url.Error); errors.As(err, &wrapped) {
		err = wrapped.Err // without the address, which From is
	}
	switch {
	case err != nil:
		return s, i18n.E("users.unreachable", s.From, wire.Scrubber(a.Key)(err.Error()))
	case status == http.StatusOK:
		if s.Data, err = settings(body); err != nil {
			return s, i18n.E("users.answer", s.From)
		}
		return s, nil
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return s, i18n.E("users.refused", s.From, status)
	case status == http.StatusNotFound && unknown(body):
		return s, ErrNone
	}
	return s, i18n.E("users.status", s.From, status)
}

func (a API) get(ctx context.Context, at string) (status int, body []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+a.Key)
	req.Header.Set("Accept", "application/json")
	res, err := wire.SingleHop(a.HTTP).Do(req) // keys are asked for at no other place
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = res.Body.Close() }()
	body, err = io.ReadAll(io.LimitReader(res.Body, maxSettings+1))
	return res.StatusCode, body, err
}

// unknown reports whether an answer 404 is the server's word on a user, and neither another
// server's page nor FastAPI's word on a path that is none.
func unknown(body []byte) bool {
	var answer struct{ Detail any }
	return json.Unmarshal(body, &answer) == nil && answer.Detail != "Not Found"
}

var errForm = errors.New("not what such a server answers")

// settings are those in an answer, {"status": "success", "data": {…}}, as YAML. What the answer
// leaves empty is left out: the server has a field for each setting. So is max_token, which says
// nothing of a user.
func settings(body []byte) ([]byte, error) {
	var answer struct {
		Status string
		Data   map[string]any
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if err := d.Decode(&answer); err != nil || len(body) > maxSettings {
		return nil, errors.Join(err, errForm)
	}
	if answer.Status != "success" || answer.Data == nil {
		return nil, errForm
	}
	given(answer.Data)
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false) // JSON is YAML, all but for escaped pairs of UTF-16, which so are none
	err := e.Encode(answer.Data)
	return out.Bytes(), err
}

func given(m map[string]any) {
	for k, v := range m {
		sub, section := v.(map[string]any)
		if section {
			given(sub)
		}
		if v == nil || v == "" || k == "max_token" || section && len(sub) == 0 {
			delete(m, k)
		}
	}
}

// Directory is a folder of files {platform}/{login}.yaml, all in lower case.
type Directory string

// Read implements Source.
func (d Directory) Read(_ context.Context, platform, login string) (Settings, error) {
	path := filepath.Join(string(d), platform, strings.ToLower(login)+".yaml")
	s := Settings{From: path}
	if err := name(login); err != nil {
		return s, err
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err = os.Stat(string(d)); err == nil {
			return s, ErrNone
		}
	}
	if err == nil {
		s.Data, err = disk.Read(path, maxSettings)
	}
	if err != nil {
		return s, i18n.E("users.read", path, err)
	}
	if info.Mode()&0o066 != 0 {
		s.Warning = i18n.E("users.open", path, path)
	}
	return s, nil
}
