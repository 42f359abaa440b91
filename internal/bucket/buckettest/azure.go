package buckettest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/xml"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// failAzure answers as Azure does: what has no body has the code in a header.
func failAzure(w http.ResponseWriter, status int, code string) {
	w.Header().Set("X-Ms-Error-Code", code)
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, "\ufeff"+`<?xml version="1.0" encoding="utf-8"?><Error><Code>`+code+"</Code><Message>as asked\nRequestId:1\nTime:now</Message></Error>")
}

// container answers as the container b of the account does; any other one is not there.
func (s *Server) container(w http.ResponseWriter, q *http.Request, body []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	container, name, _ := strings.Cut(strings.TrimPrefix(q.URL.Path, "/"+s.Azure.Account+"/"), "/")
	query := q.URL.Query()
	old, found := s.blobs[name]
	switch {
	case container != "b":
		failAzure(w, 404, "ContainerNotFound")
	case name == "" && q.Method == http.MethodGet && query.Get("restype") == "container" && query.Get("comp") == "list":
		s.list(w, query.Get("prefix"), query.Get("marker"))
	case name == "" || q.URL.RawQuery != "":
		failAzure(w, 400, "InvalidUri")
	case q.Method == http.MethodPut && q.Header.Get("X-Ms-Blob-Type") != "BlockBlob":
		failAzure(w, 400, "MissingRequiredHeader")
	case q.Method == http.MethodPut:
		s.blobs[name] = body
		w.WriteHeader(http.StatusCreated)
	case !found:
		failAzure(w, 404, "BlobNotFound")
	case q.Method == http.MethodDelete:
		delete(s.blobs, name)
		w.WriteHeader(http.StatusAccepted)
	default: // GET, and HEAD, of which the body is not sent
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = w.Write(old)
	}
}

// list writes a page of three names; its marker is where the next one begins.
func (s *Server) list(w http.ResponseWriter, prefix, marker string) {
	type blob struct {
		Name     string
		Modified string `xml:"Properties>Last-Modified"`
	}
	page := struct {
		XMLName    xml.Name `xml:"EnumerationResults"`
		Blobs      []blob   `xml:"Blobs>Blob"`
		NextMarker string
	}{}
	from, _ := base64.StdEncoding.DecodeString(marker)
	for _, name := range slices.Sorted(maps.Keys(s.blobs)) {
		if !strings.HasPrefix(name, prefix) || name < string(from) {
			continue
		}
		if len(page.Blobs) == 3 {
			page.NextMarker = base64.StdEncoding.EncodeToString([]byte(name))
			break
		}
		page.Blobs = append(page.Blobs, blob{name, time.Now().UTC().Format(http.TimeFormat)})
	}
	raw, _ := xml.Marshal(page)
	w.Header().Set("Content-Type", "application/xml")
	_, _ = io.WriteString(w, "\ufeff"+`<?xml version="1.0" encoding="utf-8"?>`+string(raw))
}

// shared tells whether a request, as it came in, is signed with the account's key, and just now
// ("Authorize with Shared Key"). It shares nothing with what is tested.
func (s *Server) shared(q *http.Request) bool {
	at, err := http.ParseTime(q.Header.Get("X-Ms-Date"))
	if err != nil || time.Since(at).Abs() > 15*time.Minute || q.Header.Get("X-Ms-Version") == "" {
		return false
	}
	length := q.Header.Get("Content-Length")
	if length == "0" {
		length = ""
	}
	lines := []string{q.Method, q.Header.Get("Content-Encoding"), q.Header.Get("Content-Language"), length}
	for _, name := range []string{"Content-MD5", "Content-Type", "Date", "If-Modified-Since", "If-Match", "If-None-Match", "If-Unmodified-Since", "Range"} {
		lines = append(lines, q.Header.Get(name))
	}
	for _, name := range slices.Sorted(maps.Keys(q.Header)) {
		if name := strings.ToLower(name); strings.HasPrefix(name, "x-ms-") {
			lines = append(lines, name+":"+q.Header.Get(name))
		}
	}
	path, query, _ := strings.Cut(q.RequestURI, "?")
	lines = append(lines, "/"+s.Azure.Account+path)
	var named []string
	for pair := range strings.SplitSeq(query, "&") {
		if name, value, ok := strings.Cut(pair, "="); ok {
			value, err := url.QueryUnescape(value)
			if err != nil {
				return false
			}
			named = append(named, strings.ToLower(name)+":"+value)
		}
	}
	slices.Sort(named)
	key, _ := base64.StdEncoding.DecodeString(s.Azure.Key)
	h := hmac.New(sha256.New, key)
	_, _ = io.WriteString(h, strings.Join(append(lines, named...), "\n"))
	return q.Header.Get("Authorization") == "SharedKey "+s.Azure.Account+":"+base64.StdEncoding.EncodeToString(h.Sum(nil))
}
