package checks

import (
	"strconv"

	"toritsugi/internal/lazyregexp"
)

// unittest counts the tests of Python's unittest, which names them only as they
// fail.
type unittest struct {
	sink *sink
	ran  int
	on   bool // the number was told, how many of them failed was not
}

var (
	unitRan    = lazyregexp.New(`^Ran (\d+) tests? in [\d.]+s$`)
	unitEnd    = lazyregexp.New(`^(?:OK|FAILED|NO TESTS RAN)(?: \(.*\))?$`)
	unitCounts = lazyregexp.New(`(failures|errors|skipped|expected failures|unexpected successes)=(\d+)`)
)

func (u *unittest) read(line string) {
	if len(line) < 2 || line[0] != 'R' && !u.on {
		return
	}
	if m := unitRan().FindStringSubmatch(line); m != nil {
		u.end()
		u.ran, _ = strconv.Atoi(m[1])
		u.on = true
		u.sink.seen("unittest")
		return
	}
	if !u.on || !unitEnd().MatchString(line) {
		return
	}
	for _, m := range unitCounts().FindAllStringSubmatch(line, -1) {
		n, _ := strconv.Atoi(m[2])
		u.ran -= n
		switch m[1] {
		case "skipped":
			u.sink.skipped += n
		case "expected failures":
			u.sink.passed += n
		default:
			u.sink.failed += n
		}
	}
	u.end()
}

func (u *unittest) end() {
	if u.on {
		u.sink.passed += max(0, u.ran)
	}
	u.on = false
}
