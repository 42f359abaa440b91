package line

import (
	"context"
	"net/http"
	"time"

	"github.com/line/line-bot-sdk-go/v8/linebot/messaging_api"
)

// quota is what is known of the messages that may be pushed in this month. Replies do not
// count.
type quota struct {
	looked time.Time
	warned bool      // that its end is near
	spent  time.Time // when LINE last said that it is used up; zero where it is not
}

const (
	quotaEvery = 10 * time.Minute // how often LINE is asked, after a push
	quotaNear  = 90               // per cent, from which on the operators are told
)

// watch is called after a push: it tells the operators once when the quota comes to its end.
func (l *Line) watch(ctx context.Context) {
	l.mu.Lock()
	now := l.opt.Now()
	l.quota.spent = time.Time{}
	fresh := now.Sub(l.quota.looked) < quotaEvery
	if !fresh {
		l.quota.looked = now
	}
	l.mu.Unlock()
	if fresh {
		return
	}
	used, limit, err := l.usage(ctx)
	if err != nil {
		l.opt.Log.Debug("LINE: the quota of the month is not known: " + err.Error())
		return
	}
	if limit == 0 {
		return
	}
	near := used*100 >= limit*quotaNear
	l.mu.Lock()
	was := l.quota.warned
	l.quota.warned = near
	l.mu.Unlock()
	if near && !was {
		l.alert("line.quota", used, limit)
	}
}

// usage is how many messages of the month are used, and how many may be; a limit of 0 is none.
func (l *Line) usage(ctx context.Context) (used, limit int64, err error) {
	var may *messaging_api.MessageQuotaResponse
	_, err = l.once(ctx, func(c *messaging_api.MessagingApiAPI) (res *http.Response, err error) {
		res, may, err = c.GetMessageQuotaWithHttpInfo()
		return res, err
	})
	if err != nil || may == nil || may.Type != messaging_api.QuotaType_LIMITED {
		return 0, 0, err
	}
	var so *messaging_api.QuotaConsumptionResponse
	_, err = l.once(ctx, func(c *messaging_api.MessagingApiAPI) (res *http.Response, err error) {
		res, so, err = c.GetMessageQuotaConsumptionWithHttpInfo()
		return res, err
	})
	if err != nil || so == nil {
		return 0, 0, err
	}
	return so.TotalUsage, may.Value, nil
}

// spent tells the operators once that nothing can be pushed any more in this month.
func (l *Line) spent() {
	l.mu.Lock()
	was := l.quota.spent
	l.quota.spent = l.opt.Now()
	l.mu.Unlock()
	if was.IsZero() {
		l.alert("line.monthly")
	}
}

// exhausted reports whether LINE said so a short while ago: who posts comes again every few
// seconds.
func (l *Line) exhausted() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.opt.Now().Sub(l.quota.spent) < quotaEvery
}
