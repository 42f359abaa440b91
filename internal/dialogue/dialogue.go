// Package dialogue is what a run and people say to each other: the comments that it reads,
// whose words count, the questions that it asks and their answers. It tells the model what
// was said, and keeps on record what it was told.
package dialogue

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"toritsugi/internal/delivery"
	"toritsugi/internal/forge"
	"toritsugi/internal/planning"
	"toritsugi/internal/task"
)

// Settings are how runs hear people and ask them.
type Settings struct {
	// Signals hands out what was said about a task since it was asked the last
	// time; nil where nobody listens.
	Signals func(task.Key) []forge.Comment
	Asking  *Asking // nil where nobody can be asked
}

// Asking is how a run asks people. While they owe an answer the run waits in
// status awaiting_approval, without a process.
type Asking struct {
	Timeout time.Duration // after which a run goes on without an answer; 0 waits for as long as it takes
	Most    int           // questions of the tool ask_user in one run
}

// Dialogue is that of one run. It is its owner's alone.
type Dialogue struct {
	Settings
	// MaxBytes is how much of what was said the model is told at once.
	MaxBytes int
	// Masks finds a token in a text that stands for what is masked.
	Masks func(string) (token string, ok bool)
	// Record puts a line into the planning history, where there is one.
	Record func(planning.Entry) error
	// Objection tells that somebody who counts said something since it was reset.
	Objection bool

	run       *delivery.Run
	outsiders map[forge.Person]bool // people who were asked about
	known     editionsTold
	inbox     []forge.Comment // that are to be judged
	telling   []forge.Comment // that the model is being told
	toldAfter int64           // the message that it is told them after
	caughtUp  bool            // with what was said while nobody worked
	strangers int             // comments that nobody vouches for that were told
	deafUntil time.Time       // the forge is not asked what was said before that
	questions questions       // that people were asked

	threads   map[string]string // that may be answered, by the comment that was told
	answering sync.Mutex        // of answers
	answers   map[string]string // of the model, by thread
}

// New is the dialogue of a run; Open reads what an earlier owner heard and asked.
func New(run *delivery.Run, s Settings, maxBytes int) *Dialogue {
	return &Dialogue{Settings: s, MaxBytes: maxBytes, run: run, outsiders: map[forge.Person]bool{}, threads: map[string]string{}, answers: map[string]string{}, Masks: func(string) (string, bool) { return "", false }, Record: func(planning.Entry) error { return nil }}
}

// Open reads what earlier owners heard and asked, and records what the act that asked
// for the run approves.
func (d *Dialogue) Open() (err error) {
	if d.questions, err = readQuestions(d.run.Ledger.Dir()); err != nil {
		return fmt.Errorf("read what was asked: %w", err)
	}
	err = d.approve()
	known, kerr := readComments(d.run.Ledger.Dir())
	d.known = known
	return errors.Join(err, kerr, d.openRemarks())
}
