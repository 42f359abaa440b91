package config

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// TestServerSecrets: what a server is given is masked, whatever its name, unless
// it is plainly a setting.
func TestServerSecrets(t *testing.T) {
	t.Parallel()
	for value, secret := range map[string]bool{
		"correct-horse-battery": true, "lanternorchid": true, "12345678901234567890": true, "postgres://u@host/db": true, "a b c d e": true,
		"https://hooks.example.com/T000/B000/xyz": true, "https://h.example.com?k=1": true, "/9j/4AAQSkZJRgABAQ": true, "+/////////==": true, " padded-value ": true,
		"short": false, "1234567": false, "12345678": false, "true": false, "production": false, "36h30m0.5s": false,
		"/usr/local/bin:x": false, "/home/ken/notes": false, "/srv/data": false, "https://git.example.com": false, "http://10.0.0.1:8080/": false,
	} {
		c := parse(t, "mcp_servers: [{mcp_server_name: a, command: [x], env: {PLAIN: "+quote(value)+"}}, {mcp_server_name: b, url: https://h, headers: {X-Plain: "+quote(value)+"}}]", nil)
		if got := slices.Contains(c.Secrets(), value); got != secret {
			t.Errorf("%q counts as a secret: %t", value, got)
		}
		var out bytes.Buffer
		if err := c.Print(&out); err != nil {
			t.Fatal(err)
		}
		if shown := strings.Contains(out.String(), "PLAIN: "+quote(value)); shown == secret {
			t.Errorf("%q is printed: %t", value, shown)
		}
	}
}

func TestServerArguments(t *testing.T) {
	t.Parallel()
	vars := vars{"MY_TOKEN": "t0ken-of-mine", "OPENAI_API_KEY": "key-of-openai"}
	server := func(command, env string) string {
		return "mcp_servers:\n  - mcp_server_name: a\n    command: " + command + "\n    env: {" + env + "}\n"
	}
	refused := "c.yaml:1: mcp_servers[0].command[1]: this argument of the server \"a\" holds a secret, which everybody on this machine can read in the list of processes; put it into env"
	for _, command := range []string{`[x, "--token=${MY_TOKEN}"]`, `[x, "${OPENAI_API_KEY}"]`, "[x, abc-ENV-secret]", "[x, " + "ghp_" + "aaaabbbbccccddddeeeeffff000011112222]", "[x, 'postgres://u:passw0rd@h/db']"} {
		if _, err := load(server(command, "A_KEY: abc-ENV-secret"), vars); err == nil || err.Error() != refused {
			t.Errorf("%s: %v", command, err)
		}
	}
	for command, warns := range map[string]bool{
		"[npx, -y, '@scope/server-with-a-long-name', /srv/data/files]": false, `[sh, -c, 'exec x --token "$A_KEY"']`: false,
		"[x, --token-file, /run/secrets/token]": false, "[x, --model, a-plain-setting]": false,
		"[x, --api-key=abcd-efgh-ijkl]": true, "[x, --token, abcd-efgh-ijkl]": true,
	} {
		c, err := load(server(command, "A_KEY: abc-ENV-secret, B: a-plain-setting"), vars)
		if err != nil {
			t.Errorf("%s: %v", command, err)
		} else if got := len(c.Warnings()) > 0; got != warns {
			t.Errorf("%s: %q", command, warnings(c))
		}
	}
}

func TestToolRules(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"tools: {deny: [shel]}":                           `c.yaml:1: tools.deny[0]: expected the name of a tool, a pattern with *, or SERVER__TOOL (known tools: answer_remark, ask_user, call_tool, edit_file, find_tools, git, git_blame, git_diff, git_log, git_status, glob, grep, list_files, read_file, read_output, recall, shell, shell_job, web_fetch, web_search, write_file), found the text "shel"`,
		"tools: {roles: {coder3: {allow: ['[']}}}":        `c.yaml:1: tools.roles.coder3.allow[0]: expected the name of a tool, a pattern with *, or SERVER__TOOL (known tools: answer_remark, ask_user, call_tool, edit_file, find_tools, git, git_blame, git_diff, git_log, git_status, glob, grep, list_files, read_file, read_output, recall, shell, shell_job, web_fetch, web_search, write_file), found the text "["`,
		"tools: {roles: {coder9: {allow: [grep]}}}":       "c.yaml:1: tools.roles.coder9: unknown key; did you mean tools.roles.coder?",
		"tools: {projects: [{deny: [grep]}]}":             "c.yaml:1: tools.projects[0].project: expected REPO or OWNER/REPO, with * for any part of a name, found nothing (leave the key out to get the default)",
		"tools: {projects: [{project: a/b/c}]}":           `c.yaml:1: tools.projects[0].project: expected REPO or OWNER/REPO, with * for any part of a name, found the text "a/b/c"`,
		"tools: {projects: [{project: a}, {project: A}]}": `c.yaml:1: tools.projects[1]: expected a name of its own, found "a", which tools.projects[0] has already`,
		"tools: {projects: [x]}":                          `c.yaml:1: tools.projects[0]: expected a section with keys of its own, found the text "x"`,
	} {
		if _, err := load(text, nil); err == nil || err.Error() != want {
			t.Errorf("%s: %v\nwant %s", text, err, want)
		}
	}
	for _, c := range []struct {
		project, owner, repo string
		want                 bool
	}{
		{"tori", "any", "tori", true}, {"tori", "any", "toritsugi", false}, {"T*", "any", "tori", true}, {"acme/*", "Acme", "x", true}, {"acme/*", "bcme", "x", false},
		{"*/tori", "acme", "tori", true}, {"*", "acme", "tori", true},
	} {
		if got := (ToolProject{Project: c.project}).Matches(c.owner, c.repo); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
	for _, name := range RoleNames() {
		c := parse(t, "tools: {roles: {"+name+": {deny: [shell]}}}", nil)
		if got := c.Tools.Roles.Role(name); len(got.Deny) != 1 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func load(text string, env vars) (*Config, error) {
	return Parse("c.yaml", []byte(text), env.get, env.list())
}
