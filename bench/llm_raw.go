package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// said is what a client keeps of an answer.
type said struct {
	text   strings.Builder
	tokens int // of the output, as the server counts them
}

// rawClient is the least that a client is made of: net/http, bufio and
// encoding/json. What it sends was encoded before.
type rawClient struct {
	http   *http.Client
	url    string
	header http.Header
	take   func(line []byte, s *said) error // takes in a line of the answer
}

func (c *rawClient) call(ctx context.Context, body []byte) (*said, error) {
	s := &said{}
	return s, post(ctx, c.http, c.url, c.header, body, func(line []byte) error { return c.take(line, s) })
}

// post sends a request and has take read each line of the answer that is not empty.
func post(ctx context.Context, hc *http.Client, url string, header http.Header, body []byte, take func(line []byte) error) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header = header.Clone()
	res, err := hc.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }() // only read from
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 1000)) // for the error alone
		return fmt.Errorf("%s: %s", res.Status, text)
	}
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		if len(lines.Bytes()) == 0 {
			continue
		}
		if err := take(lines.Bytes()); err != nil {
			return err
		}
	}
	return lines.Err()
}

var dataPrefix = []byte("data: ")

func takeOpenAI(line []byte, s *said) error {
	data, found := bytes.CutPrefix(line, dataPrefix)
	if !found || string(data) == "[DONE]" {
		return nil
	}
	var e struct {
		Choices []struct {
			Delta struct {
				Content string `json:"content"`
			} `json:"delta"`
		} `json:"choices"`
		Usage *struct {
			Tokens int `json:"completion_tokens"`
		} `json:"usage"`
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return err
	}
	if len(e.Choices) > 0 {
		s.text.WriteString(e.Choices[0].Delta.Content)
	}
	if e.Usage != nil {
		s.tokens = e.Usage.Tokens
	}
	return nil
}

func takeAnthropic(line []byte, s *said) error {
	data, found := bytes.CutPrefix(line, dataPrefix)
	if !found {
		return nil
	}
	var e struct {
		Type  string `json:"type"`
		Delta struct {
			Text string `json:"text"`
		} `json:"delta"`
		Usage struct {
			Tokens int `json:"output_tokens"`
		} `json:"usage"`
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return err
	}
	switch e.Type {
	case "content_block_delta":
		s.text.WriteString(e.Delta.Text)
	case "message_delta":
		s.tokens = e.Usage.Tokens
	}
	return nil
}

func takeOllama(line []byte, s *said) error {
	var e struct {
		Message struct {
			Content string `json:"content"`
		} `json:"message"`
		Done   bool `json:"done"`
		Tokens int  `json:"eval_count"`
	}
	if err := json.Unmarshal(line, &e); err != nil {
		return err
	}
	s.text.WriteString(e.Message.Content)
	if e.Done {
		s.tokens = e.Tokens
	}
	return nil
}
