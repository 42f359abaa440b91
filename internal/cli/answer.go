package cli

import (
	"io"
	"os"
	"strings"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
)

// maxAnswer is how much of an answer is read from standard input, in bytes.
const maxAnswer = 64 << 10

type answerCmd struct {
	askCmd `embed:""`
	Text   []string `arg:"" optional:"" help:"${answer_text_help}"`
}

// Run puts down the answer to the question that a run waits for, and puts the run
// back into the queue.
func (a answerCmd) Run(c *console) error {
	text := strings.TrimSpace(strings.Join(a.Text, " "))
	if text == "-" {
		raw, err := io.ReadAll(io.LimitReader(os.Stdin, maxAnswer+1))
		if err != nil {
			return err
		}
		if len(raw) > maxAnswer {
			return usage(i18n.E("cli.long_answer", maxAnswer>>10))
		}
		text = strings.TrimSpace(strings.ToValidUTF8(string(raw), "�"))
	}
	if text == "" {
		return usage(i18n.E("cli.no_answer"))
	}
	a.answer = text
	return a.ask(c, contextstore.Resume)
}
