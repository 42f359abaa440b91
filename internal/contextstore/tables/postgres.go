package tables

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"toritsugi/internal/contextstore/database"
	"toritsugi/internal/lazyregexp"
)

// postgres is an engine: a transaction is one round trip.
type postgres struct {
	server *database.Server
	tables database.Database
	texts  sync.Map // a statement to its translation
}

// postgresOnly are what the tables need besides, of PostgreSQL alone. A transaction is sent as a
// whole, so it is the server that demands that a statement concerns a row.
const postgresOnly = `
ALTER TABLE lines ALTER COLUMN raw SET STORAGE EXTERNAL;

CREATE FUNCTION tori_json(raw bytea) RETURNS json LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN replace(convert_from(raw, 'UTF8'), '\u0000', '')::jsonb::json; -- which refuses what is no text
EXCEPTION WHEN OTHERS THEN
    RETURN NULL;
END $$;

CREATE FUNCTION tori_int(number text) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN number::bigint;
EXCEPTION WHEN OTHERS THEN
    RETURN NULL;
END $$;

CREATE FUNCTION tori_must(n bigint, what text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF n = 0 THEN
        RAISE EXCEPTION USING ERRCODE = 'TR001', MESSAGE = what;
    END IF;
END $$;
`

// demandedState is the SQLSTATE of tori_must.
const demandedState = "TR001"

// OpenPostgres opens the tables of a server, and makes them where they are missing. Who has the
// server closes it, once the DB is closed.
func OpenPostgres(ctx context.Context, o Options, server *database.Server) (*DB, error) {
	base, err := server.Enter(ctx)
	if err != nil {
		return nil, err
	}
	defer base.Close() // only for the making
	e := &postgres{server: server}
	if e.tables, err = base.Open(ctx, &database.File{Base: base, Path: File, Schema: onServer()}); err != nil {
		return nil, err
	}
	return start(o, e)
}

// On returns database.ErrLacks where a server has no tables of contexts.
func On(ctx context.Context, server *database.Server) error {
	t, err := server.OpenToRead(ctx, onServer())
	switch {
	case err == nil:
		return t.Close()
	case !errors.Is(err, database.ErrOlder):
		return err
	case errors.Is(err, fs.ErrNotExist):
		return database.ErrLacks
	}
	return nil
}

// onServer is the schema on a server.
func onServer() database.Schema {
	views := strings.Index(schemaSQL, "\n-- What the lines say")
	translated := func(script string) string {
		return strings.ReplaceAll(database.Translated(strings.ReplaceAll(script, " AUTOINCREMENT", "")), "{json}", "tori_json(l.raw)")
	}
	return database.Schema{File: File, Postgres: []string{
		translated(schemaSQL[:views]) + postgresOnly + numbers().ReplaceAllString(translated(schemaSQL[views:]), "tori_int($1) AS "), objectSQL}}
}

// numbers finds a field that is a number.
var numbers = lazyregexp.New(`CAST\((.*?) AS BIGINT\) AS `)

// now in ms since 1970, by the server's clock.
const postgresNow = `CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)`

// the elements of a list in JSON, as value.
const postgresEach = `json_array_elements_text(CAST(? AS json)) AS value`

// text is a statement for the server.
func (e *postgres) text(s stmt) string {
	key := s.must + ":" + s.sql
	if t, ok := e.texts.Load(key); ok {
		return t.(string)
	}
	var b strings.Builder
	for n, part := range strings.Split(strings.NewReplacer("{now}", postgresNow, "{each}", postgresEach).Replace(s.sql), "?") {
		if n > 0 {
			b.WriteString("$" + strconv.Itoa(n))
		}
		b.WriteString(part)
	}
	text := b.String()
	switch {
	case s.must == "":
	case strings.HasPrefix(text, "SELECT"):
		text = fmt.Sprintf("SELECT tori_must((SELECT count(*) FROM (%s FOR SHARE) q), '%s')", text, s.must)
	default:
		first, also, _ := strings.Cut(text, joint)
		if also != "" {
			also = ", r AS (" + also + ")"
		}
		text = fmt.Sprintf("WITH q AS (%s RETURNING 1)%s SELECT tori_must((SELECT count(*) FROM q), '%s')", first, also, s.must)
	}
	e.texts.Store(key, text)
	return text
}

// joint is between the texts of two statements that are sent as one: each costs messages, and a plan
// to begin.
const joint = " -- and\n"

// atOnce implements engine: each transaction is a round trip.
func (e *postgres) atOnce() bool { return false }

// run implements engine. The statements of a pipeline are one transaction.
func (e *postgres) run(ctx context.Context, all []stmt, durable bool) error {
	b := &pgx.Batch{}
	if !durable {
		b.Queue("SELECT set_config('synchronous_commit', 'off', true)") // of this transaction
	}
	for i := 0; i < len(all); i++ {
		s := all[i]
		if i+1 < len(all) && all[i+1].joined {
			i++
			s.sql, s.args = s.sql+joint+all[i].sql, slices.Concat(s.args, all[i].args)
		}
		b.Queue(e.text(s), s.args...)
	}
	err := e.server.Pool().SendBatch(ctx, b).Close()
	if p := (*pgconn.PgError)(nil); errors.As(err, &p) && p.Code == demandedState {
		return demanded(p.Message)
	}
	return e.server.Explain(err)
}

// query implements engine.
func (e *postgres) query(ctx context.Context, text string, args []any, each func(scan func(...any) error) error) error {
	rows, err := e.server.Pool().Query(ctx, e.text(stmt{sql: text}), args...)
	if err != nil {
		return e.server.Explain(err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(rows.Scan); err != nil {
			return err
		}
	}
	return e.server.Explain(rows.Err())
}

// unreachable implements engine.
func (e *postgres) unreachable(err error) bool {
	return errors.Is(database.Unreachable(err), database.ErrUnreachable) && !errors.Is(err, database.ErrClosed)
}

func (e *postgres) close() error { return e.tables.Close() }
