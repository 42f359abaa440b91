// Package project reads what a repository says of itself: rules for agents, files, checks. All of it comes from the objects of one commit, never from a tree that a model
// can change, and all of it is bounded.
package project

import (
	"context"
	"fmt"
	"path"
	"strings"

	"toritsugi/internal/workspace"
)

// Repository is what is read from: a workspace.
type Repository interface {
	Files(ctx context.Context, commit string, each func(workspace.Entry) error) error
	Find(ctx context.Context, commit string, paths []string) (map[string]workspace.Entry, error)
	Blobs(ctx context.Context, ids []string, most int64) (map[string]workspace.Blob, error)
}

// Options say what is read. The zero value reads what Detect finds, only.
type Options struct {
	Rules    bool
	MaxFile  int // bytes of a file of rules that are taken
	MaxTotal int // bytes of all of them
	Map      bool
	MaxDepth int // how deep the map shows directories; below 0 for no limit
}

// Project is what a commit says. Its parts are not changed once it was read.
type Project struct {
	Rules  Rules
	Map    *FileMap // nil where it was not asked for
	Checks []Check
	Setup  []Check  // what would load the dependencies that lock files name; nothing runs them
	Notes  []string // what somebody should know who wonders why something is not as expected
}

// Read reads a project at a commit, which is a whole id: one walk over the names
// of its files, and a few files themselves. What is odd about a repository is no
// error but a note, or part of the rules; an error is one of git's or of ctx.
func Read(ctx context.Context, repo Repository, commit string, o Options) (*Project, error) {
	s := newSurvey(o)
	if err := repo.Files(ctx, commit, s.add); err != nil {
		return nil, fmt.Errorf("read the project: %w", err)
	}
	p := &Project{}
	if o.Map {
		p.Map = s.files.finish(o.MaxDepth)
	}
	l := &loader{repo: repo, commit: commit, maxFile: int64(o.MaxFile), left: o.MaxTotal}
	var err error
	if o.Rules {
		if p.Rules, err = l.rules(ctx, s.rules); err != nil {
			return nil, fmt.Errorf("read the project's rules: %w", err)
		}
	}
	found, err := detect(ctx, l, s)
	if err != nil {
		return nil, fmt.Errorf("read the project: %w", err)
	}
	p.Checks, p.Setup, p.Notes = found.checks, found.setup, found.notes
	return p, nil
}

// survey is what one walk over the files collects.
type survey struct {
	rules candidates
	files *builder // nil where no map is wanted
	facts facts
}

func newSurvey(o Options) *survey {
	s := &survey{facts: newFacts()}
	if o.Map {
		s.files = newBuilder()
	}
	return s
}

func (s *survey) add(e workspace.Entry) error {
	dir, name := path.Split(e.Path)
	dir = strings.TrimSuffix(dir, "/")
	if e.Mode == workspace.ModeSubmodule {
		return nil
	}
	class := classOf(dir)
	if s.files != nil {
		s.files.add(dir, name)
	}
	s.rules.add(e, dir, name, class)
	if class != foreign {
		s.facts.add(e, dir, name, class)
	}
	return nil
}
