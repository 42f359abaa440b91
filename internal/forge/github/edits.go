package github

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/rest"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
)

// graphql sends one operation and decodes the data of its answer into v, which
// may be nil. An answer with errors is one; needs is the permission that may lack.
func (d *call) graphql(ctx context.Context, address, operation string, variables map[string]any, needs string, v any) error {
	var out struct {
		Data   json.RawMessage
		Errors []struct{ Type, Message string }
	}
	if _, err := d.Send(ctx, http.MethodPost, address, map[string]any{"query": operation, "variables": variables}, &out); err != nil {
		return err
	}
	if len(out.Errors) == 0 {
		if v == nil {
			return nil
		}
		if err := json.Unmarshal(out.Data, v); err != nil {
			return d.Explain(ctx, err)
		}
		return nil
	}
	e := out.Errors[0]
	kind, advice := forge.Invalid, i18n.E("rest.advice_invalid", d.Name)
	switch e.Type {
	case "NOT_FOUND":
		kind, advice = forge.NotFound, i18n.E("rest.advice_not_found")
	case "FORBIDDEN", "INSUFFICIENT_SCOPES":
		kind, advice = forge.Forbidden, i18n.E("github.advice_permission", needs)
	case "RATE_LIMITED", "RATE_LIMIT":
		return d.Limited(&rest.Limited{Wait: rest.LeastPause, Status: http.StatusOK})
	}
	return d.Failed(kind, http.StatusOK, i18n.E("rest.said", d.Name, http.StatusOK, rest.OneLine(e.Message)), advice, nil)
}

// The history of a text's edits and of a title's changes is told by GraphQL
// alone. A history is asked for as far as one answer tells of it.
const (
	editor  = `{ __typename login ... on User { databaseId } ... on Bot { databaseId } }`
	history = `lastEditedAt userContentEdits(first: 100) { totalCount nodes { editedAt editor ` + editor + ` } } ` +
		`timelineItems(itemTypes: [RENAMED_TITLE_EVENT], last: 100) { nodes { ... on RenamedTitleEvent { createdAt actor ` + editor + ` } } }`
	edits = `query($owner: String!, $name: String!, $number: Int!) { repository(owner: $owner, name: $name) { issueOrPullRequest(number: $number) { ` +
		`... on Issue { ` + history + ` } ... on PullRequest { ` + history + ` } } } }`
)

// actorNode is who did something; nil where the account is gone.
type actorNode struct {
	Typename   string `json:"__typename"`
	Login      string
	DatabaseID int64 `json:"databaseId"`
}

func (a *actorNode) person() forge.Person {
	if a == nil {
		return forge.Person{Login: rest.Ghost}
	}
	return forge.Person{ID: a.DatabaseID, Login: a.Login, Bot: a.Typename == "Bot"}
}

// EditedSince implements forge.Editors.
func (f *Forge) EditedSince(ctx context.Context, k task.Key, since time.Time) ([]forge.Person, error) {
	d, n, err := f.on(ctx, k, "rest.do_edits")
	if err != nil {
		return nil, err
	}
	var out struct {
		Repository struct {
			IssueOrPullRequest struct {
				LastEditedAt     time.Time // zero where it never was
				UserContentEdits struct {
					TotalCount int
					Nodes      []struct {
						EditedAt time.Time
						Editor   *actorNode
					}
				}
				TimelineItems struct {
					Nodes []struct {
						CreatedAt time.Time
						Actor     *actorNode
					}
				}
			}
		}
	}
	r := forge.RepoOf(k)
	if err := d.graphql(ctx, f.address.graphql, edits, map[string]any{"owner": r.Owner, "name": r.Name, "number": n}, "issues=read", &out); err != nil {
		return nil, err
	}
	it := out.Repository.IssueOrPullRequest
	var all []forge.Person
	seen := map[forge.Person]bool{}
	add := func(p forge.Person, at time.Time) {
		if at.After(since) && !seen[p] {
			seen[p] = true
			all = append(all, p)
		}
	}
	for _, e := range it.UserContentEdits.Nodes {
		add(e.Editor.person(), e.EditedAt)
	}
	for _, e := range it.TimelineItems.Nodes {
		add(e.Actor.person(), e.CreatedAt)
	}
	if it.UserContentEdits.TotalCount > len(it.UserContentEdits.Nodes) {
		add(forge.Person{Login: rest.Ghost}, it.LastEditedAt) // by somebody whom we are not told of
	}
	return all, nil
}
