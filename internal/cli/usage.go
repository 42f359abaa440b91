package cli

import (
	"regexp"
	"strings"

	"toritsugi/internal/i18n"
	"toritsugi/internal/lazyregexp"
)

// parserForms are what the parser of the command line says, in English, and the texts that say
// so to a reader of either language, with the groups as their arguments. The order counts.
var parserForms = []struct {
	form func() *regexp.Regexp
	key  string
}{
	{lazyregexp.New(`(?s)^(unknown flag .+|unexpected argument .+), did you mean (?:one of )?(".+")\?$`), "cli.usage_meant"},
	{lazyregexp.New(`(?s)^unknown flag (.+)$`), "cli.usage_flag"},
	{lazyregexp.New(`(?s)^unexpected argument (.+)$`), "cli.usage_argument"},
	{lazyregexp.New(`^expected one of (.+)$`), "cli.usage_verbs"},
	{lazyregexp.New(`^expected "(.+)"$`), "cli.usage_missing"},
	{lazyregexp.New(`^flag (--\S+) applies to the default command "(.+)", not "(.+)"$`), "cli.usage_flag_of"},
	{lazyregexp.New(`^(--\S+) and (--\S+) can't be used together$`), "cli.usage_both"},
	{lazyregexp.New(`^(.+?): expected \S+ value but got "EOL" \(.*\)$`), "cli.usage_no_value"},
	{lazyregexp.New(`(?s)^(.+?): expected \S+ value but got ".*" \(.*\); perhaps try (.+)\?$`), "cli.usage_value_like"},
	{lazyregexp.New(`(?s)^(.+?): expected a valid \d+ bit u?int but got (".*")$`), "cli.usage_number"},
	{lazyregexp.New(`(?s)^(.+?): (?:expected a float but got|strconv\.ParseFloat: parsing) (".*?").*$`), "cli.usage_number"},
	{lazyregexp.New(`(?s)^(.+?): bool value must be .* but got (".*")$`), "cli.usage_switch"},
	{lazyregexp.New(`(?s)^(.+?) must be one of (.+) but got (".*")$`), "cli.usage_enum"},
	{lazyregexp.New(`(?s)^(.+?): expected "<key>=<value>" but got (".*")$`), "cli.usage_pair"},
}

// parserError is an error of the parser as its reader understands it. A form that is not known
// keeps the parser's words.
func parserError(err error) error {
	for _, f := range parserForms {
		m := f.form().FindStringSubmatch(err.Error())
		if m == nil {
			continue
		}
		args := make([]any, len(m)-1)
		for i, s := range m[1:] {
			args[i] = strings.TrimSpace(s)
		}
		if f.key == "cli.usage_meant" {
			args[0] = parserError(parserText(m[1]))
		}
		return i18n.E(f.key, args...)
	}
	return err
}

// parserText is a part of what the parser said.
type parserText string

func (t parserText) Error() string { return string(t) }
