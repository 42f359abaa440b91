package line

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/line/line-bot-sdk-go/v8/linebot/messaging_api"

	"toritsugi/internal/channel"
	"toritsugi/internal/llm/image"
)

const (
	// imagesKept is how long an image lies in MediaDir (route §13.5): the record of what
	// a model was sent says whether it still does (route §7.3).
	imagesKept = 15 * time.Minute
	// maxFetch bounds a download.
	maxFetch = 60 * time.Second
)

// image fetches an image that a person sent. why says in the reader's language why there
// is none; err is one that may mend.
func (l *Line) image(ctx context.Context, m *message) (a channel.Attachment, why string, err error) {
	path := filepath.Join(l.opt.MediaDir, m.ID)
	reason, err := l.fetch(ctx, m, path)
	if ctx.Err() != nil {
		return a, "", ctx.Err()
	}
	if err != nil {
		l.opt.Log.Warn("LINE: an image was not fetched: "+err.Error(), "message", m.ID)
	}
	if reason == "" {
		img, dropped := image.Load(path, image.DefaultLimits())
		if reason = dropped; reason == "" {
			return channel.Attachment{Name: path, MediaType: img.MediaType, Content: img.Data}, "", nil
		}
	}
	image.Dropped(ctx, l.opt.Log, path, reason)
	if reason == image.FileTooLarge {
		return a, l.opt.Lang.T("image.file_too_large", image.MaxFile>>20), nil
	}
	return a, l.opt.Lang.T("image." + reason), nil
}

// fetch writes an image to path, or returns why there is none, one of image's reasons.
func (l *Line) fetch(ctx context.Context, m *message, path string) (reason string, err error) {
	if m.ContentProvider.Type == "external" { // an address of a stranger, which LINE does not vouch for
		return image.ReadFailed, nil
	}
	ctx, cancel := context.WithTimeout(ctx, maxFetch)
	defer cancel()
	var data []byte
	err = l.call(ctx, func(*messaging_api.MessagingApiAPI) (*http.Response, error) {
		c, err := messaging_api.NewMessagingApiBlobAPI(l.opt.AccessToken, messaging_api.WithBlobHTTPClient(l.http), messaging_api.WithBlobEndpoint(l.data))
		if err != nil {
			return nil, err
		}
		res, _, err := c.WithContext(ctx).GetMessageContentWithHttpInfo(m.ID)
		if err != nil {
			return res, err
		}
		defer func() { _ = res.Body.Close() }()
		if data, err = io.ReadAll(io.LimitReader(res.Body, image.MaxFile+1)); err != nil {
			return nil, err
		}
		return res, nil
	})
	switch {
	case err != nil:
		return image.ReadFailed, err
	case len(data) > image.MaxFile:
		return image.FileTooLarge, nil
	}
	if err := os.MkdirAll(l.opt.MediaDir, 0o700); err != nil {
		return image.ReadFailed, err
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return image.ReadFailed, err
	}
	time.AfterFunc(imagesKept, func() { _ = os.Remove(path) })
	return "", nil
}
