package line

import (
	"context"
	"net/http"
	"strings"

	"github.com/line/line-bot-sdk-go/v8/linebot/messaging_api"

	"toritsugi/internal/channel"
	"toritsugi/internal/i18n"
)

// Check implements channel.Checker.
func (l *Line) Check(ctx context.Context, public string) (all []channel.Finding) {
	add := func(part string, err error, key string, args ...any) {
		f := channel.Found(l.opt.Lang, part, err, key, args...)
		f.Text = plainLine(l.opt.Mask(f.Text))
		all = append(all, f)
	}
	var bot *messaging_api.BotInfoResponse
	var head http.Header
	_, err := l.once(ctx, func(c *messaging_api.MessagingApiAPI) (res *http.Response, err error) {
		if res, bot, err = c.GetBotInfoWithHttpInfo(); res != nil {
			head = res.Header
		}
		return res, err
	})
	if err == nil && bot == nil {
		err = i18n.E("line.failed", http.StatusOK, "/v2/bot/info")
	}
	if err != nil {
		add("access_token", err, "")
		return all // the other calls would fail in the same way
	}
	add("access_token", nil, "line.bot", bot.DisplayName, bot.BasicId)
	all = append(all, channel.Clock(l.opt.Lang, l.opt.Now(), head))
	used, limit, err := l.usage(ctx)
	switch {
	case err == nil && limit == 0:
		add("quota", nil, "line.no_limit")
	case err == nil && used >= limit:
		add("quota", i18n.E("line.monthly"), "")
	default:
		add("quota", err, "line.used", used, limit)
	}
	address := strings.TrimSuffix(public, "/") + "/webhooks/line"
	if err = i18n.E("channel.public"); public != "" {
		err = l.webhook(ctx, address)
	}
	add("webhook", err, "line.webhook", address)
	return all
}

// webhook says why LINE does not send events to an address.
func (l *Line) webhook(ctx context.Context, address string) error {
	var at *messaging_api.GetWebhookEndpointResponse
	_, err := l.once(ctx, func(c *messaging_api.MessagingApiAPI) (res *http.Response, err error) {
		res, at, err = c.GetWebhookEndpointWithHttpInfo()
		return res, err
	})
	r, refused := err.(*refusal) //nolint:errorlint // once returns it bare
	switch {
	case refused && r.status == http.StatusNotFound, err == nil && at == nil:
		return i18n.E("line.webhook_none", address)
	case err != nil:
		return err
	case at.Endpoint != address:
		return i18n.E("line.webhook_other", at.Endpoint, address)
	case !at.Active:
		return i18n.E("line.webhook_off")
	}
	var test *messaging_api.TestWebhookEndpointResponse
	_, err = l.once(ctx, func(c *messaging_api.MessagingApiAPI) (res *http.Response, err error) {
		res, test, err = c.TestWebhookEndpointWithHttpInfo(&messaging_api.TestWebhookEndpointRequest{Endpoint: address})
		return res, err
	})
	if err != nil || test == nil || test.Success {
		return err
	}
	return i18n.E("line.webhook_fails", address, test.StatusCode, test.Reason+" "+test.Detail)
}
