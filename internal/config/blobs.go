package config

import (
	"net/url"
	"path"
	"strings"
)

// Blobs is context_storage.blobs: the place as backup.dir names one, "" for none, and how its server
// is reached: as that of backups, but for what the address says.
func (c *Config) Blobs() (place string, at Backup) {
	place, at, _ = blobsAt(c.ContextStorage.Blobs, c.Backup)
	return place, at
}

// blobsAt reads file:///DIR, s3://BUCKET/PREFIX?endpoint=…&region=… or azure://CONTAINER/PREFIX?endpoint=….
func blobsAt(s string, at Backup) (place string, _ Backup, ok bool) {
	u, err := url.Parse(s)
	if err != nil || u.Scheme == "" || u.User != nil || u.Fragment != "" || u.Opaque != "" {
		return "", at, false
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return "", at, false
	}
	if u.Scheme == "file" {
		return u.Path, at, u.Host == "" && path.IsAbs(u.Path) && path.Clean(u.Path) != "/" && len(query) == 0
	}
	for name, values := range query {
		switch value := values[len(values)-1]; {
		case name == "endpoint" && u.Scheme == "s3" && isAddress(value):
			at.S3.Endpoint = value
		case name == "endpoint" && isAddress(value):
			at.Azure.Endpoint = value
		case name == "region" && u.Scheme == "s3" && value != "":
			at.S3.Region = value
		default:
			return "", at, false
		}
	}
	place = u.Scheme + "://" + strings.TrimSuffix(u.Host+u.Path, "/")
	return place, at, placeName(place)
}

// placeName reports whether a text names a place as backup.dir does: a directory, or a bucket.
func placeName(s string) bool {
	kind, name, server := strings.Cut(s, "://")
	return !server || (kind == "s3" || kind == "azure") && name != "" && name[0] != '/'
}
