package sandbox

import (
	"io"
	"strings"
	"testing"
)

// withInstances runs f with each kind whose commands share an instance.
func withInstances(t *testing.T, f func(t *testing.T, r *runner)) {
	for _, kind := range []string{KindBwrap, KindNamespaces} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			made, err := boxOf(t, kind).Runner(newSpec(t))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = made.Close() })
			r, ok := made.(*runner)
			if !ok {
				t.Fatalf("%T", made)
			}
			f(t, r)
		})
	}
}

// begin starts a command that says when it runs and does not end.
func begin(t *testing.T, r Runner) *Process {
	t.Helper()
	p, err := r.Start(t.Context(), Command{Script: "echo up; exec sleep 100"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(p.Stdout, make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	return p
}

// A command whose sandbox is killed has an error, and the next one a new sandbox.
func TestInstanceIsKilled(t *testing.T) {
	t.Parallel()
	withInstances(t, func(t *testing.T, r *runner) {
		p := begin(t, r)
		x := r.instances.running()
		if err := x.kill(); err != nil {
			t.Fatal(err)
		}
		if exit, err := p.Wait(); err == nil || !strings.Contains(err.Error(), "ended before the command") {
			t.Errorf("%+v, %v", exit, err)
		}
		<-x.gone
		if out, exit := sh(t, r, "echo again"); out != "again\n" || exit.Code != 0 {
			t.Errorf("%q, %+v", out, exit)
		}
	})
}

func TestClose(t *testing.T) {
	t.Parallel()
	withInstances(t, func(t *testing.T, r *runner) {
		p := begin(t, r)
		for range 2 {
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := p.Wait(); err == nil {
			t.Error("a command outlived its Runner without a word")
		}
		if _, err := r.Run(t.Context(), Command{Script: ":"}); err == nil {
			t.Error("a closed Runner ran a command")
		}
	})
}

// What cannot be executed ends as in a shell, and says so where its errors go.
func TestNoProgram(t *testing.T) {
	t.Parallel()
	withInstances(t, func(t *testing.T, r *runner) {
		for _, c := range []struct {
			args []string
			code int
		}{{[]string{"no-such-program"}, 127}, {[]string{"/no/such"}, 127}, {[]string{"/etc"}, 126}, {[]string{"/etc/passwd"}, 126}} {
			out := &tail{}
			exit, err := r.Run(t.Context(), Command{Args: c.args, Output: out})
			if err != nil || exit.Code != c.code || !strings.Contains(string(out.b), c.args[0]+": ") {
				t.Errorf("%v: %+v, %v, %q", c.args, exit, err, out.b)
			}
		}
	})
}

// Each Suspend has one end, whoever calls it how often: the sandbox goes on.
func TestRestEndsOnce(t *testing.T) {
	t.Parallel()
	withInstances(t, func(t *testing.T, r *runner) {
		p := begin(t, r)
		for range 2 {
			resume, err := r.Suspend(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			resume()
			resume()
		}
		if out, exit := sh(t, r, "echo on"); out != "on\n" || exit.Code != 0 {
			t.Errorf("%q, %+v", out, exit)
		}
		p.Kill()
		if _, err := p.Wait(); err != nil {
			t.Error(err)
		}
	})
}

// What lies in the memory of an instance that has ended counts no more, also for
// who looks after it.
func TestMemoryOfTheEnded(t *testing.T) {
	t.Parallel()
	withInstances(t, func(t *testing.T, r *runner) {
		if _, exit := sh(t, r, "head -c 3000000 /dev/zero >/tmp/big; cd /dev/shm && touch $(seq 1000)"); exit.Code != 0 {
			t.Fatalf("%+v", exit)
		}
		x, sum := r.instances.running(), r.instances.together
		if u := x.inMemory(sum); u.bytes < 3000000 || u.files < 1000 {
			t.Errorf("%+v", u)
		}
		if all := sum.put("nobody", 0); all < 3000000+1000*fileMemory {
			t.Errorf("%d bytes with the files", all)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		u := x.inMemory(sum)
		if all := sum.put("nobody", 0); u != (usage{}) || all != 0 {
			t.Errorf("%+v, %d bytes of an instance that has ended", u, all)
		}
	})
}

// Files without content take memory, and who left too many does not keep the next
// command from its work.
func TestManyFilesInMemory(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{KindBwrap, KindNamespaces} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			spec := newSpec(t)
			spec.Limits.Memory = 64 << 20
			r, err := boxOf(t, kind).Runner(spec)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = r.Close() }()
			if out, exit := sh(t, r, "cd /tmp; for i in 1 2 3 4; do touch $(seq ${i}0000 ${i}9999); done; sleep 10"); exit.Limit != limitMemory {
				t.Fatalf("%+v\n%s", exit, out)
			}
			if out, exit := sh(t, r, "sleep 0.1; echo on"); out != "on\n" || exit.Code != 0 {
				t.Errorf("the next: %q, %+v", out, exit)
			}
		})
	}
}
