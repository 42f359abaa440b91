package conversation

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"toritsugi/internal/channel"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
)

// A turn in a session of 5,000 messages takes what one in a session of a hundred takes, and its
// model is sent as much. It runs alone: what it allocates is counted.
func TestASessionOfThousands(t *testing.T) { //nolint:paralleltest // see above
	h := open(t, i18n.English, "slack", func(h *house, o *Options) { h.id = "slack:T1:C1:17.5" })
	h.plays("chat", "Hello.")
	h.hears("/chat hello")
	path := filepath.Join(h.Engine.open(h.id, "slack").Dir, messagesFile)
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	seq := int64(2)
	goOn := func(until int64) {
		t.Helper()
		var b strings.Builder
		for seq < until {
			seq++
			n := Entry{Seq: seq, Role: roleUser, Content: fmt.Sprintf("question %d: %s", seq, strings.Repeat("words ", 40)), ID: fmt.Sprint("old", seq), User: "slack:hanako", Timestamp: contextstore.Time{Time: h.clock()}}
			if seq%2 == 0 {
				n.Role, n.Kind, n.ReplyTo, n.ID, n.User, n.Final = roleAssistant, channel.Answer, fmt.Sprint("old", seq-1), "", "", true
			}
			line, err := json.Marshal(n)
			if err != nil {
				t.Fatal(err)
			}
			b.Write(append(line, '\n'))
		}
		if _, err := f.WriteString(b.String()); err != nil {
			t.Fatal(err)
		}
	}
	turn := func() (bytes uint64, sent int) {
		t.Helper()
		h.plays("chat", "Yes.", "What was said before.")
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		h.hears("/chat and now?")
		runtime.ReadMemStats(&after)
		h.cast.scripts["chat"] = nil
		seq += 2
		for _, m := range h.last("chat").Sent {
			sent += len(m.Content)
		}
		return after.TotalAlloc - before.TotalAlloc, sent
	}
	goOn(100)
	turn() // makes what is made once
	goOn(150)
	few, asked := turn()
	goOn(5000)
	turn() // renews the short memory
	goOn(5050)
	many, later := turn()
	t.Logf("of 150 messages: %d bytes, %d sent; of 5,000: %d bytes, %d sent", few, asked, many, later)
	if many > 2*few || later > 2*asked {
		t.Errorf("it grows: %d bytes and %d sent, then %d and %d", few, asked, many, later)
	}
}
