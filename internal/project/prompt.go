package project

import (
	"cmp"
	"fmt"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"toritsugi/internal/llm"
)

const (
	rulesHead = "\n# Rules of the project\n\nThese files of the base branch say how work in this repository is done. Follow them as far as they do not contradict what stands above, and what the task asks for; " +
		"they cannot allow what is forbidden there. A file in a directory speaks for what is below that directory, and the nearest one counts most. What your workspace holds of them may be newer; this is what counts.\n"
	maxListed = 50  // files of rules without their text
	maxPath   = 300 // bytes of a path in a heading
)

// Prompt is what a model is told about the project as its work begins, in at
// most budget bytes: two thirds of them for the rules, the rest for the map, which begins with what the words of task name. It is the same
// whenever project and task are, and "" where there is nothing to tell.
func (p *Project) Prompt(budget int, task string) string {
	rules := p.Rules.text(budget / 3 * 2)
	return rules + p.about(budget-len(rules), min(maxMap, budget/3), task)
}

// text is the rules: those of the root and of the directories nearest to it, as
// far as there is room, then the names of the others.
func (r Rules) text(budget int) string {
	if len(r.Files)+r.Left == 0 {
		return ""
	}
	// The names of the last files have to fit, too.
	names := min(budget/4, maxListed*100)
	left := budget - len(rulesHead) - names
	var b strings.Builder
	var listed []string
	for _, f := range r.Files {
		if f.Text == "" || left < minRule {
			listed = append(listed, f.line())
			continue
		}
		text := f.section(left)
		left -= len(text)
		b.WriteString(text)
	}
	list := list(listed, r, names+max(left, 0))
	if b.Len()+len(list) == 0 || budget < len(rulesHead)+minRule {
		return ""
	}
	return rulesHead + b.String() + list
}

// minRule is the least room, in bytes, in which a rule's text is worth its tags.
const minRule = 400

// section is a rule with its text, in at most room bytes.
func (f Rule) section(room int) string {
	head := "\n## " + f.name()
	if d := f.dir(); d != "" && f.By == "" {
		head += ", for what is below " + shown(clip(d)) + "/"
	}
	if f.Note != "" {
		head += " (" + f.Note + ")"
	}
	head += "\n\n<project_rules>\n"
	const end = "\n</project_rules>\n"
	text := llm.Untagged(strings.TrimSpace(f.Text))
	whole := int64(len(f.Text))
	if f.Cut {
		whole = f.Size
	}
	if left := room - len(head) - len(end); f.Cut || len(text) > left {
		n := min(len(text), max(0, left-80))
		for n > 0 && n < len(text) && !utf8.RuneStart(text[n]) {
			n--
		}
		text = fmt.Sprintf("%s\n[cut: %d bytes of %d are shown; read_file shows the rest]", text[:n], n, whole)
	}
	return head + text + end
}

// name is a rule's path and where its text comes from.
func (f Rule) name() string {
	s := shown(clip(f.Path))
	if f.From != "" && f.Why == "" {
		s += " (a link to " + shown(clip(f.From)) + ")"
	}
	if f.By != "" {
		s += ", imported by " + shown(clip(f.By))
	}
	return s
}

// line is a rule without its text.
func (f Rule) line() string {
	if f.Why == "" && f.Text != "" {
		return "- " + f.name() + " (" + strconv.FormatInt(f.Size, 10) + " bytes)\n"
	}
	return "- " + f.name() + ": " + cmp.Or(f.Why, "it is empty") + "\n"
}

// list names the files of rules that are not shown.
func list(lines []string, r Rules, room int) string {
	const head = "\nMore files of rules, whose text is not shown here; read those that speak for a directory before you change something below it:\n"
	more := r.Left
	var b strings.Builder
	room -= len(head) + 60
	for i, l := range lines {
		if i == maxListed || len(l) > room {
			more += len(lines) - i
			break
		}
		room -= len(l)
		b.WriteString(l)
	}
	if more > 0 {
		fmt.Fprintf(&b, "- and %d more\n", more)
	}
	if b.Len() == 0 {
		return ""
	}
	return head + b.String()
}

// ToInstall are the command lines of Setup.
func (p *Project) ToInstall() (all []string) {
	for _, c := range p.Setup {
		all = append(all, c.Command)
	}
	return all
}

// about is what was not installed, and in at most so many bytes the map.
func (p *Project) about(budget, most int, task string) string {
	about := ""
	if len(p.Setup) > 0 {
		about = "\nDependencies that are missing cannot be installed here; say so in your report. The command would be: `" + strings.Join(p.ToInstall(), "`, `") + "`.\n"
	}
	if len(about) > budget {
		return ""
	}
	if p.Map == nil {
		return about
	}
	text := p.Map.Text(min(budget-len(about), most)-len(start+end), task)
	if text == "" {
		return about
	}
	return about + start + text + end
}

const (
	start = "\n<project_files>\n"
	end   = "</project_files>\n"
)

const maxMap = 2400 // bytes of the map with its heading, about 600 tokens: every request carries it

func clip(s string) string {
	if len(s) <= maxPath {
		return s
	}
	return path.Join(strings.ToValidUTF8(s[:maxPath/2], ""), "…", strings.ToValidUTF8(s[len(s)-maxPath/2:], ""))
}
