package hook

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"toritsugi/internal/forge"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
)

// vendor is how the deliveries of one kind of forge look.
type vendor struct {
	// prove is what the body has to come to; an error where the headers show that it cannot.
	prove func(h http.Header, secret string, now time.Time) (*proof, error)
	event func(h http.Header) string
	// kind is what an event says that happened, "" where it is nothing of ours.
	kind func(event string) Kind
	id   func(h http.Header, body []byte) string
	// read fills in repository, item and person. Without an item there is nothing to look at.
	read func(body []byte, d *Delivery) error
}

// vendors are the forges by their sources.
func vendors() map[string]vendor {
	return map[string]vendor{
		// docs.github.com/webhooks/webhook-events-and-payloads
		"github": {
			prove: func(h http.Header, secret string, _ time.Time) (*proof, error) {
				return hexProof(secret, h.Get("X-Hub-Signature-256"), "sha256=")
			},
			event: func(h http.Header) string { return h.Get("X-GitHub-Event") },
			kind: func(event string) Kind {
				switch event {
				case "issue_comment", "pull_request_review", "pull_request_review_comment":
					return Said
				case "issues", "pull_request":
					return Changed
				}
				return ""
			},
			id:   func(h http.Header, _ []byte) string { return h.Get("X-GitHub-Delivery") },
			read: readItem,
		},
		// docs.gitea.com/usage/webhooks; the events of issues and pull requests are several each.
		// Forgejo sends both names.
		"gitea": {
			prove: func(h http.Header, secret string, _ time.Time) (*proof, error) {
				return hexProof(secret, cmp.Or(h.Get("X-Forgejo-Signature"), h.Get("X-Gitea-Signature")), "")
			},
			event: func(h http.Header) string { return cmp.Or(h.Get("X-Forgejo-Event"), h.Get("X-Gitea-Event")) },
			kind: func(event string) Kind {
				switch {
				case event == "issue_comment", strings.HasPrefix(event, "pull_request_comment"), strings.HasPrefix(event, "pull_request_review"),
					event == "pull_request_approved", event == "pull_request_rejected":
					return Said
				case event == "issues", strings.HasPrefix(event, "issue_"), strings.HasPrefix(event, "pull_request"):
					return Changed
				}
				return ""
			},
			id: func(h http.Header, _ []byte) string {
				return cmp.Or(h.Get("X-Forgejo-Delivery"), h.Get("X-Gitea-Delivery"))
			},
			read: readItem,
		},
		// docs.gitlab.com/user/project/integrations/webhooks: a secret that begins with whsec_ is
		// a signing token (since 19.0), any other one the secret token.
		"gitlab": {
			prove: func(h http.Header, secret string, now time.Time) (*proof, error) {
				if strings.HasPrefix(secret, standardPrefix) {
					return standardProof(h, secret, now)
				}
				return tokenProof(secret, h.Get("X-Gitlab-Token"))
			},
			event: func(h http.Header) string { return h.Get("X-Gitlab-Event") },
			kind: func(event string) Kind {
				switch strings.TrimPrefix(event, "Confidential ") {
				case "Note Hook":
					return Said
				case "Issue Hook", "Work Item Hook", "Merge Request Hook":
					return Changed
				}
				return ""
			},
			id:   gitlabID,
			read: readGitLab,
		},
	}
}

var errNowhere = i18n.E("hook.no_repository")

// readItem reads what GitHub and Gitea send of an issue or a pull request.
func readItem(body []byte, d *Delivery) error {
	type numbered struct {
		Number int64 `json:"number"`
	}
	var in struct {
		Repository struct {
			FullName string `json:"full_name"`
		} `json:"repository"`
		Issue       numbered `json:"issue"`
		PullRequest numbered `json:"pull_request"`
		Sender      struct {
			ID    int64  `json:"id"`
			Login string `json:"login"`
		} `json:"sender"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return err
	}
	return d.fill(in.Repository.FullName, cmp.Or(in.Issue.Number, in.PullRequest.Number), forge.Person{ID: in.Sender.ID, Login: in.Sender.Login})
}

// readGitLab reads what GitLab sends of an issue, a merge request or a note on one. Which of them it
// is the body says: a signature is over that alone.
func readGitLab(body []byte, d *Delivery) error {
	type numbered struct {
		IID int64 `json:"iid"`
	}
	var in struct {
		About   string `json:"object_kind"`
		Project struct {
			Path string `json:"path_with_namespace"`
		} `json:"project"`
		Attributes   numbered `json:"object_attributes"`
		Issue        numbered `json:"issue"`
		MergeRequest numbered `json:"merge_request"`
		User         struct {
			ID       int64  `json:"id"`
			Username string `json:"username"`
		} `json:"user"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return err
	}
	n, merge := in.Attributes.IID, in.About == "merge_request"
	if in.About == "note" {
		n, merge = cmp.Or(in.Issue.IID, in.MergeRequest.IID), in.Issue.IID == 0
	}
	if d.ItemType = task.TypeIssue; merge {
		d.ItemType = task.TypeMerge
	}
	return d.fill(in.Project.Path, n, forge.Person{ID: in.User.ID, Login: in.User.Username})
}

func (d *Delivery) fill(repo string, number int64, by forge.Person) (err error) {
	var ok bool
	if d.Repo, ok = forge.ParseRepo(repo); !ok {
		return errNowhere
	}
	if number > 0 { // a note may be on a commit
		d.Item = strconv.FormatInt(number, 10)
	}
	d.By = by
	return nil
}

// gitlabID is the id that stays when a delivery is sent again. Servers before 17.4 know none: theirs is
// the same, too, for what one event set off, so that the body tells such apart.
func gitlabID(h http.Header, body []byte) string {
	if id := cmp.Or(h.Get("Webhook-Id"), h.Get("Idempotency-Key")); id != "" {
		return id
	}
	event := h.Get("X-Gitlab-Event-UUID")
	if event == "" {
		return ""
	}
	sum := sha256.Sum256(body)
	return event + "." + hex.EncodeToString(sum[:8])
}
