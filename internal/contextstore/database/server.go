package database

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"toritsugi/internal/i18n"
)

// Server is a schema of a database of PostgreSQL, and the connections to it: a pool, and one
// more for the locks of whoever is in it (Enter).
type Server struct {
	pool   *pgxpool.Pool
	name   string // as people know it, without the password
	schema int32  // its oid, bit by bit
	named  string // the schema
}

// ServerOptions say how a server is reached.
type ServerOptions struct {
	// URL is postgres://user@host:port/database, with the parameters of libpq and those of
	// pgxpool (pool_max_conns ...). The first name of search_path is the schema, which is made
	// where it is missing; without one it is the user's own: public, most often.
	URL      string
	Password string // "" for that of URL, of PGPASSWORD or of ~/.pgpass
	Existing bool   // a schema that is missing is not made, but ErrLacks
}

// What a connection is opened with where the URL says nothing.
const (
	poolSize       = 8
	connectTimeout = 10 * time.Second
	lockTimeout    = "10s" // how long a statement waits for another's rows or turn
)

// oldestServer is the first version with CREATE OR REPLACE TRIGGER and idle_session_timeout.
const oldestServer = 14

// Dial connects to a server. No error of it, nor of what is opened there, holds a password.
func Dial(ctx context.Context, o ServerOptions) (*Server, error) {
	config, err := o.config()
	if err != nil {
		return nil, err
	}
	c := config.ConnConfig
	s := &Server{name: fmt.Sprintf("PostgreSQL %s:%d/%s", c.Host, c.Port, c.Database)}
	if s.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, err
	}
	if err := s.greet(ctx, c.RuntimeParams["search_path"], !o.Existing); err != nil {
		s.pool.Close()
		return nil, s.Explain(err)
	}
	return s, nil
}

// config is what pgxpool makes of the options.
func (o ServerOptions) config() (*pgxpool.Config, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return nil, i18n.E("postgres.url") // what cannot be read may have the password anywhere
	}
	config, err := pgxpool.ParseConfig(o.URL)
	if err != nil {
		_, why, _ := strings.Cut(err.Error(), "`: ")
		if password, ok := u.User.Password(); ok && password != "" {
			why = strings.ReplaceAll(why, password, "…")
		}
		return nil, i18n.E("postgres.parameter", why)
	}
	c := config.ConnConfig
	if !u.Query().Has("pool_max_conns") {
		config.MaxConns = poolSize
	}
	c.ConnectTimeout = cmp.Or(c.ConnectTimeout, connectTimeout)
	c.Password = cmp.Or(o.Password, c.Password)
	for name, value := range map[string]string{"application_name": "tori", "lock_timeout": lockTimeout, "timezone": "UTC",
		"tcp_keepalives_idle": "15", "tcp_keepalives_interval": "5", "tcp_keepalives_count": "3", // the locks of a machine that is gone keep all others waiting
		"idle_in_transaction_session_timeout": inMillis(unheard),   // and so do those of a process that stands still
		"max_parallel_workers_per_gather":     "0", "jit": "off"} { // on a busy server they begin later than our queries are answered
		c.RuntimeParams[name] = cmp.Or(c.RuntimeParams[name], value)
	}
	// What the user or the database set otherwise is not what the transactions are written for.
	c.RuntimeParams["default_transaction_isolation"] = "read committed"
	if c.ValidateConnect == nil {
		c.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	return config, nil
}

// greet refuses a server that the tables cannot lie in, and with create makes the schema where it is missing.
func (s *Server) greet(ctx context.Context, searchPath string, create bool) error {
	var version int
	var encoding string
	if err := s.pool.QueryRow(ctx, `SELECT current_setting('server_version_num')::int, current_setting('server_encoding')`).Scan(&version, &encoding); err != nil {
		return err
	}
	if err := fits(s.name, version, encoding); err != nil {
		return err
	}
	const current = `SELECT nspname, oid FROM pg_namespace WHERE nspname = current_schema()`
	var schema string
	var oid uint32
	err := s.pool.QueryRow(ctx, current).Scan(&schema, &oid)
	if first, _, _ := strings.Cut(searchPath, ","); errors.Is(err, pgx.ErrNoRows) && first != "" && create {
		if _, err = s.pool.Exec(ctx, `CREATE SCHEMA IF NOT EXISTS `+pgx.Identifier{strings.Trim(first, ` "`)}.Sanitize()); err == nil || IsUnique(err) { // two at once
			err = s.pool.QueryRow(ctx, current).Scan(&schema, &oid)
		}
	}
	if errors.Is(err, pgx.ErrNoRows) {
		return i18n.E("postgres.no_schema", s.name).Of(ErrLacks)
	}
	s.name, s.schema, s.named = s.name+" ("+schema+")", int32(oid), schema //nolint:gosec // bit by bit
	return err
}

// fits refuses a server that is too old or keeps other texts than UTF-8.
func fits(name string, version int, encoding string) error {
	switch {
	case version/10_000 < oldestServer:
		return i18n.E("postgres.too_old", name, version/10_000, oldestServer)
	case encoding != "UTF8":
		return i18n.E("postgres.encoding", name, encoding)
	}
	return nil
}

// Close closes the connections once they are given back.
func (s *Server) Close() { s.pool.Close() }

// Name is how people know the place: host, database and schema.
func (s *Server) Name() string { return s.name }

// Schema is the name of the schema.
func (s *Server) Schema() string { return s.named }

// Pool are the connections, for what speaks pgx.
func (s *Server) Pool() *pgxpool.Pool { return s.pool }

// Enter takes the locks of the schema as Enter does those of a directory.
func (s *Server) Enter(ctx context.Context) (*Base, error) {
	b, err := come(ctx, s.name, s.name, &advisory{server: s})
	if err != nil {
		return nil, s.Explain(err)
	}
	b.server = s
	return b, nil
}

// DB is the pool with statements in SQLite's dialect.
func (s *Server) DB() *sql.DB {
	db := sql.OpenDB(connector{s.pool})
	db.SetMaxIdleConns(0) // the pool keeps them
	return db
}

// served are the servers that keep the databases of base directories, by these.
var served sync.Map

// Serve has a server keep the databases of a base directory, for all of this process, until
// release is called; who opens them by the directory need not know.
func (s *Server) Serve(dir string) (release func()) {
	served.Store(dir, s)
	return func() { served.CompareAndDelete(dir, s) }
}

// ServerOf is the server that keeps the databases of a base directory, nil where they are files.
func ServerOf(dir string) *Server {
	if abs, err := filepath.Abs(dir); err == nil {
		if s, ok := served.Load(abs); ok {
			return s.(*Server)
		}
	}
	return nil
}
