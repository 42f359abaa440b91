package app

import "path/filepath"

// imagePaths makes what the command line names fit for a run that another
// process may begin. A link is followed now, where its owner can see what it
// leads to; nobody follows one later. What is not there is dropped when the run
// begins, with its reason.
func imagePaths(named []string) ([]string, error) {
	var all []string
	for _, p := range named {
		if p == "" {
			all = append(all, p)
			continue
		}
		abs, err := filepath.Abs(p)
		if err != nil {
			return nil, err
		}
		if real, err := filepath.EvalSymlinks(abs); err == nil {
			abs = real
		}
		all = append(all, abs)
	}
	return all, nil
}
