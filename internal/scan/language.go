package scan

import (
	"path"
	"strings"
)

// language is what the lexer has to know of one.
type language struct {
	family string // whose rules for code and tests apply

	line    []string    // begin a comment up to the end of the line
	apart   bool        // they do so only at the beginning or after white space
	block   [][2]string // begin and end a comment
	nest    bool        // block comments nest
	quotes  string      // begin and end a literal; a backslash escapes
	spans   bool        // such a literal may go on in the next line
	doubled bool        // no backslashes: a doubled quote is one
	raw     [][2]string // begin and end literals of several lines; the longest first
	escapes bool        // a backslash escapes in these, too
	char    bool        // ' is a character, or a lifetime, a label, a digit separator
	regex   bool        // a slash may begin a regular expression
	here    bool        // here-documents
	loose   bool        // quotes are also apostrophes: they begin a literal only after punctuation
	dots    bool        // a line of three dots alone is no code
}

var (
	slashes  = []string{"//"}
	numbers  = []string{"#"}
	slashBox = [][2]string{{"/*", "*/"}}
	triple   = [][2]string{{`"""`, `"""`}}
	tripled  = [][2]string{{`"""`, `"""`}, {`'''`, `'''`}}
)

// languageOf finds the language of a file by its name; nil where none is known.
func languageOf(name string) *language {
	base := strings.ToLower(path.Base(name))
	switch {
	case strings.HasPrefix(base, "dockerfile"), strings.HasPrefix(base, "containerfile"), strings.HasSuffix(base, ".dockerfile"):
		return config()
	case base == "makefile", base == "gnumakefile", base == "jenkinsfile", base == "gemfile", base == "rakefile", base == "vagrantfile", base == "cmakelists.txt":
		if base == "jenkinsfile" {
			return byExtension(".groovy")
		}
		if base == "gemfile" || base == "rakefile" || base == "vagrantfile" {
			return byExtension(".rb")
		}
		return config()
	case strings.HasPrefix(base, ".") && strings.HasSuffix(base, "rc"), base == ".env", base == ".gitignore", base == ".gitattributes", base == "codeowners":
		return config()
	}
	return byExtension(path.Ext(base))
}

// config is a file of settings.
func config() *language {
	return &language{family: "config", line: numbers, apart: true, quotes: `"'`, loose: true}
}

// byExtension is the table of languages.
func byExtension(ext string) *language {
	switch ext {
	case ".go":
		return &language{family: "go", line: slashes, block: slashBox, quotes: `"`, raw: [][2]string{{"`", "`"}}, char: true, dots: true}
	case ".py", ".pyi", ".pyx", ".bzl", ".star":
		return &language{family: "python", line: numbers, quotes: `"'`, raw: tripled, escapes: true}
	case ".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts":
		return &language{family: "js", line: slashes, block: slashBox, quotes: `"'`, raw: [][2]string{{"`", "`"}}, escapes: true, regex: true, loose: strings.HasSuffix(ext, "x"), dots: true}
	case ".rs":
		return &language{family: "rust", line: slashes, block: slashBox, nest: true, quotes: `"`, spans: true, raw: [][2]string{{`r##"`, `"##`}, {`r#"`, `"#`}}, char: true, dots: true}
	case ".java", ".kt", ".kts", ".scala", ".groovy", ".gradle":
		return &language{family: "java", line: slashes, block: slashBox, nest: ext == ".kt" || ext == ".scala", quotes: quotesOf(ext), raw: triple, char: ext != ".groovy" && ext != ".gradle", dots: true}
	case ".cs":
		return &language{family: "cs", line: slashes, block: slashBox, quotes: `"`, raw: [][2]string{{`"""`, `"""`}, {`@"`, `"`}}, char: true, dots: true}
	case ".c", ".h", ".cc", ".cpp", ".cxx", ".hpp", ".hh", ".m", ".mm", ".cu":
		return &language{family: "c", line: slashes, block: slashBox, quotes: `"`, raw: [][2]string{{`R"(`, `)"`}}, char: true, dots: true}
	case ".swift", ".zig", ".proto", ".thrift", ".sol", ".v", ".sv", ".jsonc", ".json5", ".hcl", ".tf":
		l := &language{family: "swift", line: slashes, block: slashBox, nest: ext == ".swift", quotes: `"`, raw: triple, char: true}
		if ext == ".hcl" || ext == ".tf" {
			l.family, l.line, l.here = "config", []string{"//", "#"}, true
		}
		return l
	case ".dart":
		return &language{family: "dart", line: slashes, block: slashBox, nest: true, quotes: `"'`, raw: tripled, dots: true}
	case ".php":
		return &language{family: "php", line: []string{"//", "#"}, block: slashBox, quotes: `"'`, spans: true, here: true, dots: true}
	case ".rb", ".rake", ".gemspec", ".cr":
		return &language{family: "ruby", line: numbers, apart: true, block: [][2]string{{"=begin", "=end"}}, quotes: `"'` + "`", spans: true, here: true, regex: true}
	}
	return furtherLanguages(ext)
}

func quotesOf(ext string) string {
	if ext == ".groovy" || ext == ".gradle" {
		return `"'`
	}
	return `"`
}

// furtherLanguages are those with no rules of their own but for comments.
func furtherLanguages(ext string) *language {
	switch ext {
	case ".sh", ".bash", ".zsh", ".ksh", ".fish", ".bats":
		return &language{family: "shell", line: numbers, apart: true, quotes: `"'`, spans: true, here: true}
	case ".pl", ".pm", ".t":
		return &language{family: "perl", line: numbers, apart: true, block: [][2]string{{"=pod", "=cut"}, {"=head", "=cut"}}, quotes: `"'`, spans: true, here: true, loose: true}
	case ".ex", ".exs":
		return &language{family: "elixir", line: numbers, apart: true, quotes: `"`, raw: tripled, escapes: true}
	case ".sql":
		return &language{family: "sql", line: []string{"--"}, block: slashBox, quotes: `'"`, spans: true, doubled: true}
	case ".html", ".htm", ".xml", ".xhtml", ".svg", ".vue", ".svelte", ".astro", ".xsl", ".csproj", ".erb", ".tmpl", ".gohtml":
		return &language{family: "html", line: slashes, block: [][2]string{{"<!--", "-->"}, {"/*", "*/"}, {"{{/*", "*/}}"}, {"<%#", "%>"}}}
	case ".md", ".markdown", ".mdx", ".rst", ".adoc":
		return &language{family: "prose", block: [][2]string{{"<!--", "-->"}}}
	case ".css":
		return &language{family: "css", block: slashBox, quotes: `"'`}
	case ".scss", ".sass", ".less":
		return &language{family: "css", line: slashes, apart: true, block: slashBox, quotes: `"'`}
	case ".el", ".lisp", ".cl", ".scm", ".rkt", ".clj", ".cljs", ".cljc", ".edn", ".fnl":
		return &language{family: "lisp", line: []string{";"}, block: [][2]string{{"#|", "|#"}}, nest: true, quotes: `"`, spans: true}
	case ".lua":
		return &language{family: "lua", line: []string{"--"}, block: [][2]string{{"--[[", "]]"}}, quotes: `"'`, raw: [][2]string{{"[[", "]]"}}}
	case ".hs", ".elm", ".purs":
		return &language{family: "haskell", line: []string{"--"}, block: [][2]string{{"{-", "-}"}}, nest: true, quotes: `"`, char: true}
	case ".ml", ".mli", ".fs", ".fsx":
		l := &language{family: "ml", block: [][2]string{{"(*", "*)"}}, nest: true, quotes: `"`, spans: true, char: true}
		if strings.HasPrefix(ext, ".f") {
			l.line = slashes
		}
		return l
	case ".erl", ".hrl", ".tex", ".sty":
		return &language{family: "percent", line: []string{"%"}, quotes: quotedPercent(ext)}
	case ".ps1", ".psm1":
		return &language{family: "config", line: numbers, block: [][2]string{{"<#", "#>"}}, quotes: `"'`, spans: true}
	case ".jl", ".r", ".nix", ".tcl", ".awk", ".nim", ".gd":
		return &language{family: "config", line: numbers, apart: true, quotes: `"`, raw: triple}
	case ".yml", ".yaml", ".toml", ".ini", ".cfg", ".conf", ".properties", ".mk", ".cmake", ".editorconfig", ".graphql", ".service":
		l := config()
		if ext == ".toml" {
			l.raw = tripled
		}
		if ext == ".ini" || ext == ".cfg" || ext == ".conf" {
			l.line = []string{"#", ";"}
		}
		return l
	}
	return nil
}

func quotedPercent(ext string) string {
	if ext == ".erl" || ext == ".hrl" {
		return `"`
	}
	return ""
}
