package app

import (
	"context"
	"log/slog"

	"toritsugi/internal/llm"
	"toritsugi/internal/llm/record"
	"toritsugi/internal/models"
	"toritsugi/internal/telemetry"
)

// Models opens what fills the roles by the settings of a file, for who looks at
// them. It is the caller's to close.
func Models(env Env, config string) (*models.Models, error) {
	s := &system{env: env, opt: RunOptions{Config: config}}
	if err := s.settle(); err != nil {
		return nil, err
	}
	if err := s.openModels(); err != nil {
		return nil, &ConfigError{err}
	}
	return s.models, nil
}

func (s *system) openModels() (err error) {
	var log *slog.Logger
	log, s.ofRun = telemetry.Later(s.log) // the models are chosen before the run has a uuid
	s.models, err = models.Open(models.Options{Config: s.cfg, HTTP: s.env.HTTP, Redact: s.redact.String, Personal: s.redact.Personal().String, Strict: s.redact.Strict().String, Log: log,
		Lang: s.env.Lang, Notice: s.env.Notice, Getenv: s.env.Getenv, FS: s.fs, Now: s.env.Now, Traced: s.cfg.Telemetry.Traces.Enabled})
	return err
}

// client is the model that works on the run: the one asked for by name, else
// that of the role, else what is at hand.
func (s *system) client(ctx context.Context, who string) (llm.Client, models.Spec, error) {
	return s.models.Client(ctx, s.use(who))
}

// record makes the file of --record. The caller ends it with recorded.
func (s *system) record() (err error) {
	if s.opt.Record == "" {
		return nil
	}
	s.tape, err = record.Create(s.fs, s.opt.Record, s.redact.String, func(err error) {
		s.log.Error("The record is not complete: " + s.env.Lang.Error(err))
	})
	return err
}

// recorded closes the record, or removes it where nothing came of the run.
func (s *system) recorded(began bool) {
	if s.tape == nil {
		return
	}
	end := s.tape.Close
	if !began {
		end = s.tape.Discard
	}
	if err := end(); err != nil {
		s.log.Error(s.env.Lang.Error(err))
	}
}
