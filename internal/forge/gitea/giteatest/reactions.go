package giteatest

import (
	"slices"

	sdk "code.gitea.io/sdk/gitea"
)

// onIssue and onComment are where the signs of the path are, by what they are on.
func onIssue(c *call) (of any) { return c.issue }

func onComment(c *call) (of any) {
	if i, n := c.comment(); n >= 0 {
		return i.comments[n]
	}
	return nil
}

func listReactions(of func(*call) any) func(*call) (int, any) {
	return func(c *call) (int, any) {
		on := of(c)
		if on == nil {
			return notFound()
		}
		if c.Request.URL.Query().Has("page") {
			return 200, page(c, c.reactions[on])
		}
		return 200, c.reactions[on]
	}
}

// react puts a sign on something, once for each account.
func react(of func(*call) any) func(*call) (int, any) {
	return func(c *call) (int, any) {
		on := of(c)
		if on == nil {
			return notFound()
		}
		var o struct {
			Content string `json:"content"`
		}
		c.into(&o)
		if !slices.Contains([]string{"+1", "-1", "laugh", "hooray", "confused", "heart", "rocket", "eyes"}, o.Content) {
			return fail(403, "'"+o.Content+"' is not an allowed reaction")
		}
		for _, r := range c.reactions[on] {
			if r.User == &c.doer.User && r.Reaction == o.Content {
				return 200, r
			}
		}
		r := &sdk.Reaction{User: &c.doer.User, Reaction: o.Content, Created: c.second()}
		c.reactions[on] = append(c.reactions[on], r)
		return 201, r
	}
}
