package contextstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"toritsugi/internal/contextstore/database"
)

// Alert is something that is wrong, in house.db until its end was told.
type Alert struct {
	Name  string // what is wrong
	About string // with what; "" for the house
	Text  string // as people are told it
	Begun Time
	Told  bool // its begin was told
	Ended Time // zero while it is open
}

// Alerts lists those whose end was not told yet, by name and what they are about.
func (s *Store) Alerts(ctx context.Context) ([]Alert, error) { return s.houseDB.Alerts(ctx) }

// Alerts is Store.Alerts.
func (d *HouseDB) Alerts(ctx context.Context) (all []Alert, err error) {
	all, err = list(ctx, d, func(rows *sql.Rows) (a Alert, err error) {
		var begun string
		var ended sql.NullString
		if err = rows.Scan(&a.Name, &a.About, &a.Text, &begun, &a.Told, &ended); err == nil {
			a.Begun.Time, err = time.Parse(time.RFC3339, begun)
		}
		if err == nil && ended.Valid {
			a.Ended.Time, err = time.Parse(time.RFC3339, ended.String)
		}
		return a, err
	}, `SELECT name, about, text, begun_at, told, ended_at FROM alerts ORDER BY name, about`)
	if err != nil {
		return nil, fmt.Errorf("read the alerts: %w", err)
	}
	return all, nil
}

// PutAlert keeps an alert as it is now.
func (s *Store) PutAlert(ctx context.Context, a Alert) error {
	return s.changeAlert(ctx, a, `INSERT INTO alerts (name, about, text, begun_at, told, ended_at) VALUES (?,?,?,?,?,?)
		ON CONFLICT(name, about) DO UPDATE SET told=excluded.told, ended_at=excluded.ended_at`,
		a.Name, a.About, s.Redact(a.Text), a.Begun.String(), map[bool]int{true: 1}[a.Told], database.Null(a.Ended.String()))
}

// DropAlert forgets an alert whose end was told.
func (s *Store) DropAlert(ctx context.Context, a Alert) error {
	return s.changeAlert(ctx, a, `DELETE FROM alerts WHERE name=? AND about=?`, a.Name, a.About)
}

func (s *Store) changeAlert(ctx context.Context, a Alert, text string, args ...any) error {
	if err := s.exec(ctx, text, args...); err != nil {
		return fmt.Errorf("keep the alert %s %s: %w", a.Name, a.About, err)
	}
	return nil
}

// GivenUp are events of one channel that were given up.
type GivenUp struct {
	Channel string
	Events  int
	Last    string // id of the latest
}

// GivenUpSince tells of which channels events were given up since a time.
func (s *Store) GivenUpSince(ctx context.Context, since time.Time) (all []GivenUp, err error) {
	all, err = list(ctx, s.houseDB, func(rows *sql.Rows) (g GivenUp, err error) {
		return g, rows.Scan(&g.Channel, &g.Events, &g.Last)
	}, `SELECT l.channel, g.events, l.id FROM (SELECT count(*) AS events, max(seq) AS seq FROM inbox INDEXED BY idx_inbox_failed WHERE failed<>'' AND done_at>=? GROUP BY channel) AS g
		JOIN inbox AS l ON l.seq=g.seq ORDER BY l.channel`, Time{Time: since.UTC()}.String())
	if err != nil {
		return nil, fmt.Errorf("read the inbox: %w", err)
	}
	return all, nil
}
