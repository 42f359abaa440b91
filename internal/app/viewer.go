package app

import (
	"os"
	"os/user"
	"strconv"
	"strings"

	"toritsugi/internal/channel"
	"toritsugi/internal/config"
	"toritsugi/internal/contextstore"
)

// LocalViewer is the person at the command line as a viewer of the contexts
// below base: the owner of the files and root see all, others what is theirs,
// unless access.admins names them. The name is the system's, not that of the
// environment, which anybody can set. The configuration is read only if it
// matters.
func LocalViewer(base, configFile string, getenv func(string) string) (contextstore.Viewer, error) {
	uid, name := os.Geteuid(), LocalUser()
	who := contextstore.LocalViewer(base, uid, name, nil)
	if who.Admin {
		return who, nil
	}
	cfg, err := LoadConfig(configFile, getenv)
	if err != nil {
		return contextstore.Viewer{}, err
	}
	who = contextstore.LocalViewer(base, uid, name, cfg.Access.Admins)
	at, err := accessAt(base, cfg)
	who.Account = localPerson(at, name)
	return who, err
}

// localPerson is whose the runs of somebody at the command line are (access.people), by the
// system's name.
func localPerson(at config.Access, name string) string {
	return strings.TrimPrefix(at.User(string(channel.Terminal)+":"+name), string(channel.Terminal)+":")
}

// UserOf is whose the runs of a person are, by any id of theirs (access.people, tori link).
func UserOf(base, id, configFile string, getenv func(string) string) (string, error) {
	if id == "" {
		return "", nil
	}
	cfg, err := LoadConfig(configFile, getenv)
	if err != nil {
		return "", err
	}
	at, err := accessAt(base, cfg)
	return at.User(id), err
}

// LocalUser is the system's name of whoever runs this process.
func LocalUser() string {
	uid := strconv.Itoa(os.Geteuid())
	if u, err := user.LookupId(uid); err == nil {
		return u.Username
	}
	return "uid " + uid
}

// audit puts on record who decided something about a run.
func (s *system) audit(action, uuid, detail string) {
	s.auditOf(contextstore.AuditEntry{Actor: LocalUser(), Action: action, UUID: uuid, Detail: detail})
}

// auditOf puts on record what somebody did. What cannot be is done nonetheless, and said.
func (s *system) auditOf(e contextstore.AuditEntry) {
	if err := contextstore.Audit(s.fs, s.house(), s.env.Now(), s.redact.String, e); err != nil {
		s.log.Warn("audit.jsonl: " + err.Error())
	}
}
