package slack

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/gorilla/websocket"

	"toritsugi/internal/channel"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm/wire"
)

const (
	// silence is how long a connection may say nothing: Slack pings every few seconds.
	silence = time.Minute
	// settled is how long a connection has to hold for the next one to be opened at once.
	settled = 10 * time.Second
	// atOnce is how many envelopes are kept by one call of the inbox at most.
	atOnce = 64
)

// envelope is what comes by Socket Mode.
type envelope struct {
	Type    string          `json:"type"`
	ID      string          `json:"envelope_id"`
	Payload json.RawMessage `json:"payload"`
	// Connections is how many the app has, this one with them, of a hello.
	Connections int `json:"num_connections"`
}

// Run takes events by Socket Mode until ctx ends; nil without an app token. It connects
// anew whenever a connection ends. Its error is ctx's, or one that only people can mend.
func (s *Slack) Run(ctx context.Context) error {
	if s.opt.AppToken == "" {
		return nil
	}
	wait := backoff.NewExponentialBackOff()
	wait.MaxInterval = time.Minute
	var ended time.Time // of the connection before
	for {
		began := s.opt.Now()
		err := s.connection(ctx, ended)
		ended = s.opt.Now()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			s.troubled(err)
		}
		var refused *Error
		if errors.As(err, &refused) && refused.ofToken() {
			return err
		}
		if s.opt.Now().Sub(began) >= settled {
			wait.Reset()
			if err == nil {
				continue
			}
		}
		pause := wait.NextBackOff()
		if err != nil {
			s.log.Warn(s.opt.Mask("Socket Mode of Slack: "+err.Error()), "again_in", pause.Round(time.Millisecond))
		}
		if err := wire.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// connection opens one and takes what comes by it, until it ends; nil where Slack asked
// for that. before is when the one before ended.
func (s *Slack) connection(ctx context.Context, before time.Time) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var open struct {
		URL string `json:"url"`
	}
	if err := s.api.call(ctx, s.opt.AppToken, "apps.connections.open", nil, &open); err != nil {
		return err
	}
	dialer := websocket.Dialer{Proxy: http.ProxyFromEnvironment, HandshakeTimeout: callTime}
	if t, ok := s.api.http.Transport.(*http.Transport); ok {
		dialer.Proxy, dialer.NetDialContext, dialer.TLSClientConfig = t.Proxy, t.DialContext, t.TLSClientConfig
	}
	conn, answer, err := dialer.DialContext(ctx, open.URL, nil)
	if answer != nil {
		_ = answer.Body.Close()
	}
	if err != nil {
		var dns *net.OpError // its text has no address, which holds a ticket
		if errors.As(err, &dns) {
			return dns
		}
		return errors.New("the connection was refused")
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	defer func() { _ = conn.Close() }()
	s.troubled(nil)
	conn.SetReadLimit(channel.MaxRequest)
	alive := func() { _ = conn.SetReadDeadline(time.Now().Add(silence)) }
	alive()
	pong := conn.PingHandler()
	conn.SetPingHandler(func(data string) error { alive(); return pong(data) })

	come, ended := make(chan envelope, atOnce), make(chan error, 1)
	go func() {
		defer close(come)
		ended <- listen(ctx, conn, alive, come, func(connections int) { s.counted(connections, before) })
	}()
	for e := range come {
		all := []envelope{e}
		for len(all) < atOnce && len(come) > 0 {
			all = append(all, <-come)
		}
		if err := s.keep(ctx, conn, all); err != nil {
			s.log.Error(s.opt.Mask("Events of Slack were not kept: " + err.Error()))
		}
	}
	return <-ended
}

// listen hands on what comes, until the connection ends or Slack asks for another one.
func listen(ctx context.Context, conn *websocket.Conn, alive func(), come chan<- envelope, hello func(connections int)) error {
	for {
		_, raw, err := conn.ReadMessage()
		if err != nil {
			return err
		}
		alive()
		var e envelope
		if json.Unmarshal(raw, &e) != nil {
			continue
		}
		if e.Type == "disconnect" {
			return nil
		}
		if e.Type == "hello" {
			hello(e.Connections)
		}
		if e.ID == "" {
			continue
		}
		select {
		case come <- e:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// counted notes how many connections the app has: Slack gives each event to one of them. One of
// ours that ended a moment ago may still be among them.
func (s *Slack) counted(connections int, before time.Time) {
	ours := 1
	if s.opt.Now().Sub(before) < silence {
		ours++
	}
	s.mu.Lock()
	was := s.others
	s.others = nil
	if connections > ours {
		s.others = i18n.E("slack.shared", connections)
	}
	now := s.others
	s.mu.Unlock()
	if now != nil && was == nil {
		s.log.Warn(i18n.English.Error(now))
	}
}

// keep puts envelopes into the inbox, and tells Slack once they are there. What is not kept
// comes again.
func (s *Slack) keep(ctx context.Context, conn *websocket.Conn, all []envelope) error {
	var events []channel.Event
	for _, e := range all {
		event, ok, err := s.eventOf(e.Payload, s.opt.Now())
		if err != nil {
			s.log.Warn("Slack sent what is no event", "envelope", e.Type)
		} else if ok {
			events = append(events, event)
		}
	}
	if len(events) > 0 {
		if err := s.opt.Inbox.Put(ctx, events...); err != nil {
			return err
		}
	}
	for _, e := range all {
		_ = conn.SetWriteDeadline(time.Now().Add(silence))
		if err := conn.WriteJSON(map[string]string{"envelope_id": e.ID}); err != nil {
			return err
		}
	}
	return nil
}
