package bucket

import (
	"cmp"
	"encoding/xml"
	"errors"
	"net/url"
	"time"

	"toritsugi/internal/i18n"
)

// S3 is how an S3-compatible server is reached (Amazon S3 API reference, 2006-03-01).
type S3 struct {
	Endpoint  string // address of the server; "" for Amazon's of the region
	Region    string
	AccessKey string
	SecretKey string
	Token     string // of a session, "" for none
}

func openS3(o Options) (Place, error) {
	if o.S3.AccessKey == "" || o.S3.SecretKey == "" {
		return nil, i18n.E("bucket.no_login", o.Place)
	}
	return openRemote(o.S3, cmp.Or(o.S3.Endpoint, "https://s3."+o.S3.Region+".amazonaws.com"), o)
}

func (S3) noObject(code string) bool { return code != "NoSuchBucket" } // many servers name none; of HEAD none does

func (S3) query(prefix, after string) url.Values {
	q := url.Values{"list-type": {"2"}, "prefix": {prefix}}
	if after != "" {
		q.Set("continuation-token", after)
	}
	return q
}

func (S3) page(raw []byte) (all []Object, after string, err error) {
	var page struct { // ListObjectsV2
		XMLName               xml.Name `xml:"ListBucketResult"`
		IsTruncated           bool
		NextContinuationToken string
		Contents              []struct {
			Key          string
			LastModified time.Time
		}
	}
	err = xml.Unmarshal(raw, &page)
	for _, o := range page.Contents {
		all = append(all, Object{o.Key, o.LastModified})
	}
	if page.IsTruncated {
		after = page.NextContinuationToken
	}
	if err == nil && page.IsTruncated && after == "" {
		err = errors.New("the list goes on, and does not say where")
	}
	return all, after, err
}
