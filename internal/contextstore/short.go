package contextstore

// Short is the beginning of a run's uuid, as people see and type it.
func Short(uuid string) string { return uuid[:min(8, len(uuid))] }
