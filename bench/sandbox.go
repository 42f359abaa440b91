package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"

	"toritsugi/internal/sandbox"
)

const (
	// maxBox is what a sandbox of one instance may add to a bare shell, in
	// milliseconds. Landlock makes its walls anew for each command.
	maxBox = 3.0
	boxes  = 100 // commands of each kind
)

// sandboxMain measures what each kind of sandbox that works here adds to a shell.
// The kinds take turns, so that all have the same weather.
func sandboxMain(ctx context.Context) error {
	ws, err := os.MkdirTemp("", "tori-bench-box-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(ws) }()
	spec := sandbox.Spec{Workspace: ws}
	runners := []sandbox.Runner{sandbox.Unconfined(spec)}
	for _, kind := range []string{sandbox.KindBwrap, sandbox.KindNamespaces, sandbox.KindLandlock} {
		s, err := sandbox.Choose(ctx, sandbox.Options{Prefer: kind})
		if err != nil {
			note("%s does not work here: %v", kind, err)
			continue
		}
		r, err := s.Runner(spec)
		if err != nil {
			return err
		}
		defer func() { _ = r.Close() }()
		runners = append(runners, r)
	}
	bare, took := []float64{}, make([][]float64, len(runners))
	for range boxes {
		begin := time.Now()
		if err := exec.CommandContext(ctx, "/bin/bash", "-c", ":").Run(); err != nil {
			return err
		}
		bare = append(bare, ms(time.Since(begin)))
		for i, r := range runners {
			begin := time.Now()
			if _, err := r.Run(ctx, sandbox.Command{Script: ":"}); err != nil {
				return err
			}
			took[i] = append(took[i], ms(time.Since(begin)))
		}
	}
	// The best tenth is what it costs when nothing else wants the processors.
	fmt.Printf("a shell, bare: median %.1f ms, best tenth %.1f ms (of %d)\n", quantile(bare, 0.5), quantile(bare, 0.1), boxes)
	for i, r := range runners {
		verdict := "ok"
		added, best := quantile(took[i], 0.5)-quantile(bare, 0.5), quantile(took[i], 0.1)-quantile(bare, 0.1)
		switch kind := r.Kind(); {
		case kind != sandbox.KindBwrap && kind != sandbox.KindNamespaces:
			verdict = "no budget"
		case added > maxBox:
			verdict = "OVER"
		}
		fmt.Printf("  %-11s adds %5.1f ms, %5.1f ms in the best tenth (budget %.0f ms)  %s\n", r.Kind(), added, best, maxBox, verdict)
	}
	return nil
}
