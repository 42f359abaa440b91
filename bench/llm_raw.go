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
	finish string
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
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header = c.header.Clone()
	res, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }() // only read from
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 1000)) // for the error alone
		return nil, fmt.Errorf("%s: %s", res.Status, text)
	}
	s := &said{}
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		if len(lines.Bytes()) == 0 {
			continue
		}
		if err := c.take(lines.Bytes(), s); err != nil {
			return nil, err
		}
	}
	return s, lines.Err()
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
				Content   string `json:"content"`
				ToolCalls []struct {
					Function struct {
						Arguments string `json:"arguments"`
					} `json:"function"`
				} `json:"tool_calls"`
			} `json:"delta"`
			FinishReason string `json:"finish_reason"`
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
		s.finish = e.Choices[0].FinishReason
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
			Text       string `json:"text"`
			JSON       string `json:"partial_json"`
			StopReason string `json:"stop_reason"`
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
		s.finish, s.tokens = e.Delta.StopReason, e.Usage.Tokens
	}
	return nil
}

func takeOllama(line []byte, s *said) error {
	var e struct {
		Message struct {
			Content   string `json:"content"`
			ToolCalls []struct {
				Function struct {
					Arguments json.RawMessage `json:"arguments"`
				} `json:"function"`
			} `json:"tool_calls"`
		} `json:"message"`
		Done       bool   `json:"done"`
		DoneReason string `json:"done_reason"`
		Tokens     int    `json:"eval_count"`
	}
	if err := json.Unmarshal(line, &e); err != nil {
		return err
	}
	s.text.WriteString(e.Message.Content)
	if e.Done {
		s.finish, s.tokens = e.DoneReason, e.Tokens
	}
	return nil
}
