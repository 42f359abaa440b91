package mcp_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"toritsugi/internal/tool"
	"toritsugi/internal/tool/mcp"
)

// open opens servers until the test ends.
func open(t testing.TB, opts mcp.Options, servers ...mcp.Server) *mcp.Manager {
	t.Helper()
	m := mustOpen(t, opts, servers...)
	t.Cleanup(m.Close)
	return m
}

func mustOpen(t testing.TB, opts mcp.Options, servers ...mcp.Server) *mcp.Manager {
	t.Helper()
	if opts.Dir == "" {
		opts.Dir = t.TempDir()
	}
	m, err := mcp.Open(context.Background(), servers, opts)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// mode is a server that runs the fake in that mode, named after it.
func mode(name string) mcp.Server { return mcp.Server{Name: name, Command: []string{name}} }

func registry(t testing.TB, tools []tool.Tool) *tool.Registry {
	t.Helper()
	r, err := tool.NewRegistry(tool.Limits{}, tools...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// call calls an offered tool.
func call(t testing.TB, m *mcp.Manager, name, args string) tool.Result {
	t.Helper()
	r, err := registry(t, m.Tools()).Call(context.Background(), name, args)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return r
}

// says fails unless the result is as it should be.
func says(t testing.TB, r tool.Result, isError bool, parts ...string) {
	t.Helper()
	if r.IsError != isError {
		t.Errorf("IsError is %t in %q", r.IsError, r.Text)
	}
	for _, p := range parts {
		if !strings.Contains(r.Text, p) {
			t.Errorf("%q does not say %q", r.Text, p)
		}
	}
}

func status(t testing.TB, m *mcp.Manager, server string) mcp.Status {
	t.Helper()
	for _, s := range m.Status() {
		if s.Server == server {
			return s
		}
	}
	t.Fatalf("no server %s", server)
	return mcp.Status{}
}

func names(tools []tool.Tool) []string {
	var all []string
	for _, x := range tools {
		all = append(all, x.Definition().Name)
	}
	return all
}

func find(t testing.TB, m *mcp.Manager, name string) tool.Definition {
	t.Helper()
	for _, x := range m.Tools() {
		if d := x.Definition(); d.Name == name {
			return d
		}
	}
	t.Fatalf("no tool %s in %q", name, names(m.Tools()))
	return tool.Definition{}
}

func offers(m *mcp.Manager, name string) bool { return slices.Contains(names(m.Tools()), name) }

func pinsOf(t testing.TB, dir string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "pins.json"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
