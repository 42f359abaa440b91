// Package hook takes what forges send by webhook: that something happened at an item. It verifies
// who says so over the bytes as they came, and hands on where to look; whatever else a delivery
// says is neither kept nor believed. It asks no forge for anything.
package hook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"toritsugi/internal/channel"
	"toritsugi/internal/forge"
	"toritsugi/internal/i18n"
)

// Kind is what happened at an item.
type Kind string

// The kinds of what happened.
const (
	Said    Kind = "said"    // a comment or a review was written or edited
	Changed Kind = "changed" // its text, state, labels, assignees or branch
)

// Delivery says where to look.
type Delivery struct {
	Source string     // of the forge: "github"
	ID     string     // the forge's, the same when it is sent again: a channel.PlainID
	Repo   forge.Repo // as the forge spells it
	Item   string     // the number of the issue or the pull request
	// ItemType is the type of its task where the forge numbers issues and pull requests each on
	// their own (GitLab); "" where the number tells.
	ItemType string
	Kind     Kind
	By       forge.Person // whose doing it was
}

// How much is read of a delivery, in bytes. GitHub sends none of more than 25 MB.
const (
	// MaxBody is the most of one.
	MaxBody = 25 << 20
	// usual is the most of those of which any number are read at once; of larger
	// ones, which no issue and no comment is, one at a time.
	usual = 1 << 20
)

// Options are what a Receiver needs to know.
type Options struct {
	Source string        // one of Sources
	Secret func() string // as it is now; "" lets nobody in
	// Watched reports whether a repository is one that work is taken from.
	Watched func(forge.Repo) bool
	// Own reports whether it is the account that we speak to the forge as: what we
	// do ourselves is nothing to look at.
	Own func(forge.Person) bool
	// Keep returns once a delivery is on the disk; one whose ID is known changes nothing.
	Keep func(context.Context, Delivery) error
	Now  func() time.Time
	Log  *slog.Logger
}

// Receiver is the page that a forge calls with its deliveries. It is safe for concurrent use.
type Receiver struct {
	opt    Options
	vendor vendor
	forged channel.Throttle
	form   channel.Throttle
	large  chan struct{} // holds a token while a large delivery is read
}

// Sources are the forges whose deliveries can be taken.
func Sources() []string { return slices.Sorted(maps.Keys(vendors())) }

// New returns a Receiver, for POST requests to Path.
func New(o Options) (*Receiver, error) {
	v, ok := vendors()[o.Source]
	if !ok {
		return nil, fmt.Errorf("hook: no webhooks of %q, expected one of %s", o.Source, strings.Join(Sources(), ", "))
	}
	if o.Secret == nil || o.Watched == nil || o.Own == nil || o.Keep == nil || o.Now == nil || o.Log == nil {
		return nil, errors.New("hook: Secret, Watched, Own, Keep, Now and Log are needed")
	}
	return &Receiver{opt: o, vendor: v, large: make(chan struct{}, 1)}, nil
}

// Read tells what the event in a file of a CI job is about: what a forge of a source also sends as
// a delivery, but vouched for by whoever runs the job. Of the Delivery it fills Source, Repo, Item,
// ItemType and By. An event that is about no issue and no pull request is an error.
func Read(source string, body []byte) (Delivery, error) {
	d := Delivery{Source: source}
	v, ok := vendors()[source]
	if !ok {
		return d, fmt.Errorf("hook: no events of %q, expected one of %s", source, strings.Join(Sources(), ", "))
	}
	if !json.Valid(body) {
		return d, i18n.E("hook.no_json")
	}
	err := v.read(body, &d)
	if err == nil && d.Item == "" {
		err = i18n.E("hook.no_item")
	}
	return d, err
}

// Path is where the forge of a source is to send its deliveries: "/webhooks/github".
func Path(source string) string { return "/webhooks/" + source }

// ServeHTTP takes a delivery. 200 says that it is kept; 202 that nothing is to be looked at
// because of it, which the forge is not to take for a failure.
func (r *Receiver) ServeHTTP(out http.ResponseWriter, req *http.Request) {
	if req.Method != http.MethodPost {
		out.Header().Set("Allow", http.MethodPost)
		http.Error(out, "deliveries come by POST", http.StatusMethodNotAllowed)
		return
	}
	status, text := r.take(req)
	if status >= http.StatusBadRequest {
		out.Header().Set("Connection", "close") // what was not read is not waited for
	}
	out.Header().Set("Content-Type", "text/plain; charset=utf-8")
	out.WriteHeader(status)
	_, _ = fmt.Fprintln(out, text) // who asked is gone
}

// take is the answer to a delivery. Nothing is read of one that shows no signature, and
// of what is none of our events no more is kept than its sum.
func (r *Receiver) take(req *http.Request) (status int, text string) {
	if req.ContentLength > MaxBody {
		return tooLarge()
	}
	secret := r.opt.Secret()
	if secret == "" {
		return r.refuse(errSecret)
	}
	proof, err := r.vendor.prove(req.Header, secret, r.opt.Now())
	if err != nil {
		return r.refuse(err)
	}
	event := r.vendor.event(req.Header)
	kind := r.vendor.kind(event)
	body, err := r.read(req, proof, kind != "")
	switch {
	case errors.Is(err, errLarge):
		return tooLarge()
	case err != nil:
		return http.StatusBadRequest, "the body cannot be read"
	case !proof.holds():
		return r.refuse(errWrong)
	case kind == "":
		return http.StatusAccepted, "nothing to look at"
	}
	d := Delivery{Source: r.opt.Source, ID: r.vendor.id(req.Header, body), Kind: kind}
	if !channel.PlainID(d.ID) {
		return http.StatusBadRequest, fmt.Sprintf("the id of a delivery has 1 to %d printable ASCII characters", channel.MaxPlainID)
	}
	if err := r.vendor.read(body, &d); err != nil {
		if strings.HasPrefix(req.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
			err = errors.New("it is a form: the content type of the webhook has to be application/json")
		}
		if r.form.Due(r.opt.Now(), time.Minute) {
			r.opt.Log.Warn("A delivery of "+r.opt.Source+" cannot be read: "+err.Error(), "event", event, "delivery", d.ID)
		}
		return http.StatusBadRequest, "the body is no " + event + ": " + err.Error()
	}
	if d.Item == "" || !r.opt.Watched(d.Repo) || r.opt.Own(d.By) {
		return http.StatusAccepted, "nothing to look at"
	}
	if err := r.opt.Keep(req.Context(), d); err != nil {
		r.opt.Log.Error("A delivery was not kept; looking at intervals makes up for it: "+err.Error(), "source", r.opt.Source, "delivery", d.ID)
		return http.StatusServiceUnavailable, "not kept, send it again"
	}
	return http.StatusOK, "ok"
}

func tooLarge() (int, string) {
	return http.StatusRequestEntityTooLarge, fmt.Sprintf("a delivery has at most %d bytes", MaxBody)
}

// errLarge is the error of a body of more than MaxBody.
var errLarge = errors.New("too large")

// read reads a body as its sum is made; without keep nothing of it is returned.
func (r *Receiver) read(req *http.Request, p *proof, keep bool) ([]byte, error) {
	body := io.TeeReader(req.Body, p)
	if !keep {
		n, err := io.Copy(io.Discard, io.LimitReader(body, MaxBody+1))
		if err == nil && n > MaxBody {
			err = errLarge
		}
		return nil, err
	}
	var kept bytes.Buffer
	n, err := io.Copy(&kept, io.LimitReader(body, usual))
	if err != nil || n < usual {
		return kept.Bytes(), err
	}
	select {
	case r.large <- struct{}{}:
		defer func() { <-r.large }()
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
	if _, err = io.Copy(&kept, io.LimitReader(body, MaxBody+1-usual)); err == nil && kept.Len() > MaxBody {
		err = errLarge
	}
	return kept.Bytes(), err
}

// refuse answers who does not show that it is the forge. The log says so at most once a minute.
func (r *Receiver) refuse(why error) (int, string) {
	if r.forged.Due(r.opt.Now(), time.Minute) {
		r.opt.Log.Warn("A request to " + Path(r.opt.Source) + " was refused (" + why.Error() + "): either the webhook there has another secret than " + r.opt.Source +
			".webhook_secret, or somebody else sent it")
	}
	return http.StatusUnauthorized, why.Error()
}
