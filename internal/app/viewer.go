package app

import (
	"os"
	"os/user"
	"strconv"

	"toritsugi/internal/contextstore"
)

// LocalViewer is the person at the command line as a viewer of the contexts
// below base: the owner of the files and root see all, others what is theirs,
// unless access.admins names them. The name is the system's, not that of the
// environment, which anybody can set. The configuration is read only if it
// matters.
func LocalViewer(base, configFile string, getenv func(string) string) (contextstore.Viewer, error) {
	uid := os.Geteuid()
	name := "uid " + strconv.Itoa(uid)
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		name = u.Username
	}
	who := contextstore.LocalViewer(base, uid, name, nil)
	if who.Admin {
		return who, nil
	}
	cfg, err := LoadConfig(configFile, getenv)
	if err != nil {
		return contextstore.Viewer{}, err
	}
	return contextstore.LocalViewer(base, uid, name, cfg.Access.Admins), nil
}
