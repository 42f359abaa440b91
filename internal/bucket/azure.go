package bucket

import (
	"cmp"
	"encoding/base64"
	"encoding/xml"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"toritsugi/internal/i18n"
)

// Azure is how an account of Azure Blob Storage is reached (Blob service REST API).
type Azure struct {
	Endpoint string // address of the account; "" for Azure's, https://ACCOUNT.blob.core.windows.net
	Account  string
	Key      string // in base64, as Azure shows it
}

// azureVersion is the version of the API: a recent one that Azure Stack Hub has, too.
const azureVersion = "2019-07-07"

func openAzure(o Options) (Place, error) {
	s := o.Azure
	if key, err := base64.StdEncoding.DecodeString(s.Key); s.Account == "" || len(key) == 0 || err != nil {
		return nil, i18n.E("bucket.no_azure_login", o.Place)
	}
	return openRemote(s, cmp.Or(s.Endpoint, "https://"+s.Account+".blob.core.windows.net"), o)
}

// Sign signs a request by Shared Key ("Authorize with Shared Key", Azure Storage REST API). A PUT
// without a query writes a blob.
func (s Azure) Sign(q *http.Request, _ []byte, now time.Time) {
	q.Header.Set("X-Ms-Date", now.UTC().Format(http.TimeFormat))
	q.Header.Set("X-Ms-Version", azureVersion)
	if q.Method == http.MethodPut && q.URL.RawQuery == "" {
		q.Header.Set("X-Ms-Blob-Type", "BlockBlob")
	}
	length := ""
	if q.ContentLength > 0 {
		length = strconv.FormatInt(q.ContentLength, 10)
	}
	// Of the eleven headers that stand there without their names, only the length, the third, is sent.
	text := q.Method + "\n\n\n" + length + strings.Repeat("\n", 9)
	var lines []string
	for name, values := range q.Header {
		if strings.HasPrefix(name, "X-Ms-") {
			lines = append(lines, strings.ToLower(name)+":"+strings.Join(values, ",")+"\n")
		}
	}
	slices.Sort(lines)
	text += strings.Join(lines, "") + "/" + s.Account + q.URL.EscapedPath()
	lines = nil
	for name, values := range q.URL.Query() {
		lines = append(lines, "\n"+strings.ToLower(name)+":"+strings.Join(values, ","))
	}
	slices.Sort(lines)
	key, _ := base64.StdEncoding.DecodeString(s.Key) // looked at by openAzure
	q.Header.Set("Authorization", "SharedKey "+s.Account+":"+base64.StdEncoding.EncodeToString(keyed(key, text+strings.Join(lines, ""))))
}

func (Azure) noObject(code string) bool { return code == "BlobNotFound" }

func (Azure) query(prefix, after string) url.Values {
	q := url.Values{"restype": {"container"}, "comp": {"list"}, "prefix": {prefix}, "maxresults": {"1000"}} // about 1 MB
	if after != "" {
		q.Set("marker", after)
	}
	return q
}

func (Azure) page(raw []byte) (all []Object, after string, err error) {
	var page struct { // List Blobs
		XMLName xml.Name `xml:"EnumerationResults"`
		Blobs   []struct {
			Name     string
			Modified string `xml:"Properties>Last-Modified"`
		} `xml:"Blobs>Blob"`
		NextMarker string
	}
	err = xml.Unmarshal(raw, &page)
	for _, b := range page.Blobs {
		at, terr := http.ParseTime(b.Modified)
		err = cmp.Or(err, terr)
		all = append(all, Object{b.Name, at})
	}
	return all, page.NextMarker, err
}
