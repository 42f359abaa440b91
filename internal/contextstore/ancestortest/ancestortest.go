// Package ancestortest makes trees as programs by store-v2 or by store-v3 alone wrote them, for tests:
// the examples of the two documents field by field, with more of the same kind between them.
package ancestortest

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	_ "modernc.org/sqlite" // the driver

	"toritsugi/internal/disk"
)

// The runs of a tree.
const (
	Running   = "550e8400-e29b-41d4-a716-446655440000" // had not ended
	Completed = "550e8400-e29b-41d4-a716-446655440001"
	Failed    = "550e8400-e29b-41d4-a716-446655440002" // timeout in store-v2
	Moving    = "550e8400-e29b-41d4-a716-446655440003" // completed, and its owner was killed on the last steps
	NoRow     = "550e8400-e29b-41d4-a716-446655440004" // of store-v3: a directory without a row
	RowAlone  = "550e8400-e29b-41d4-a716-446655440005" // and a row without a directory
)

// metadata is the example of store-v2 §3.1 and store-v3 §3.1, with fields that neither has.
const metadata = `{
  "uuid": "UUID",
  "task_key": {
    "task_source": "github",
    "owner": "notfolder",
    "repo": "coding_agent",
    "task_type": "issue",
    "task_id": "ID",
    "node": "MDU6SXNzdWUx"
  },
  "created_at": "2024-01-15T10:30:00.123456Z",
  "process_id": 12345,
  "hostname": "worker-node-1",
  "config": {
    "llm_provider": "openai",
    "model": "gpt-4o",
    "context_length": 128000,
    "compression_threshold": 0.7MEMORY
  },
  "user": "notfolder",
  "site": {"zone": 9007199254740993}
}
`

// The examples of store-v2 §3.2 to §3.6.
const (
	state2 = `{
  "status": "STATUS",
  "started_at": "2024-01-15T10:30:01.000000Z",
  "updated_at": "2024-01-15T10:35:22.456789Z",
  "completed_at": COMPLETED,
  "llm_call_count": 45,
  "tool_call_count": 12,
  "total_tokens_used": 45678,
  "current_context_tokens": 32000,
  "compression_count": 2,
  "last_activity": "tool_execution",
  "error": null,
  "shard": "a"
}
`
	messages2 = `{"seq":1,"role":"system","content":"You are an AI coding assistant...","timestamp":"2024-01-15T10:30:01.123Z","token_count":250}
{"seq":2,"role":"user","content":"Fix the bug in...","timestamp":"2024-01-15T10:30:02.456Z","token_count":120}
{"seq":3,"role":"assistant","content":"I'll help you fix...","timestamp":"2024-01-15T10:30:15.789Z","token_count":450}
{"seq":4,"role":"tool","content":"{\"output\":\"...\"}","timestamp":"2024-01-15T10:30:20.123Z","token_count":1200,"tool_name":"github_get_file_contents"}
{"seq":5,"role":"assistant","content":"","timestamp":"2024-01-15T10:30:21.5Z","token_count":9,"function_call":{"name":"github_create_branch","arguments":{"branch":"fix-bug"}},"is_summarized":true,"mood":"good"}
`
	more2      = `{"seq":%d,"role":"%s","content":"More of it.","timestamp":"2024-01-15T10:31:%02d.%03dZ","token_count":2}`
	summaries2 = `{"summary_id":1,"start_seq":10,"end_seq":50,"summary":"Fixed authentication bug by updating...","created_at":"2024-01-15T10:32:00.000Z","original_tokens":12000,"summary_tokens":800,"compression_ratio":0.067}
{"summary_id":2,"start_seq":51,"end_seq":90,"summary":"Implemented new feature for...","created_at":"2024-01-15T10:34:30.000Z","original_tokens":15000,"summary_tokens":950,"compression_ratio":0.063}
`
	tools2 = `{"seq":1,"tool_name":"github_get_file_contents","arguments":{"owner":"notfolder","repo":"coding_agent","path":"main.py"},"result":"...file content...","status":"success","duration_ms":234,"timestamp":"2024-01-15T10:30:20.123Z"}
{"seq":2,"tool_name":"github_create_branch","arguments":{"owner":"notfolder","repo":"coding_agent","branch":"fix-bug"},"result":null,"status":"error","error":"Branch already exists","duration_ms":123,"timestamp":"2024-01-15T10:31:15.456Z"}
`
	lock2 = `{
  "process_id": 12345,
  "hostname": "worker-node-1",
  "acquired_at": "2024-01-15T10:30:00.000Z",
  "heartbeat_at": "2024-01-15T10:35:30.000Z"
}
`
)

// Secret stands in a line of store-v3, which says nothing of masking.
const Secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345"

// The examples of store-v3 §3.2 to §3.4 and §2.2.
const (
	messages3 = `{"seq":1,"role":"system","content":"You are an AI...","timestamp":"2024-01-15T10:30:01Z","tokens":250}
{"seq":2,"role":"user","content":"Fix the bug...","timestamp":"2024-01-15T10:30:02Z","tokens":120}
{"seq":3,"role":"assistant","content":"I'll help...","timestamp":"2024-01-15T10:30:15Z","tokens":450}
{"seq":4,"role":"tool","tool_name":"github_get_file","content":"{...}","timestamp":"2024-01-15T10:30:20Z","tokens":1200}
{"seq":5,"role":"tool","tool_name":"github_get_file","content":"token = ` + Secret + `","timestamp":"2024-01-15T10:30:21Z","tokens":12,"summarized":true,"mood":"good"}
`
	more3      = `{"seq":%d,"role":"%s","content":"More of it.","timestamp":"2024-01-15T10:31:%02d.%06dZ","tokens":2}`
	summaries3 = `{"id":1,"start_seq":10,"end_seq":50,"summary":"Fixed auth bug...","original_tokens":12000,"summary_tokens":800,"ratio":0.067,"timestamp":"2024-01-15T10:32:00Z"}` + "\n"
	tools3     = `{"seq":1,"tool":"github_get_file_contents","args":{"path":"main.py"},"result":"...","status":"success","duration_ms":234,"timestamp":"2024-01-15T10:30:20Z"}` + "\n"
	tasks3     = `CREATE TABLE tasks (
    uuid TEXT PRIMARY KEY,              -- タスクUUID
    task_source TEXT NOT NULL,          -- "github" or "gitlab"
    owner TEXT NOT NULL,                -- リポジトリオーナー
    repo TEXT NOT NULL,                 -- リポジトリ名
    task_type TEXT NOT NULL,            -- "issue" or "pull_request"
    task_id TEXT NOT NULL,              -- タスクID（issue番号等）
    status TEXT NOT NULL,               -- "running" or "completed" or "failed"
    created_at TEXT NOT NULL,           -- 作成日時（ISO 8601）
    started_at TEXT,                    -- 開始日時
    completed_at TEXT,                  -- 完了日時
    process_id INTEGER,                 -- プロセスID
    hostname TEXT,                      -- 実行ホスト名
    llm_provider TEXT,                  -- LLMプロバイダー
    model TEXT,                         -- モデル名
    context_length INTEGER,             -- コンテキスト長
    llm_call_count INTEGER DEFAULT 0,   -- LLM呼び出し回数
    tool_call_count INTEGER DEFAULT 0,  -- ツール呼び出し回数
    total_tokens INTEGER DEFAULT 0,     -- 総トークン数
    compression_count INTEGER DEFAULT 0, -- 圧縮回数
    error_message TEXT,                 -- エラーメッセージ（失敗時）
    user TEXT                           -- ユーザー名
);

CREATE INDEX idx_tasks_status ON tasks(status);
CREATE INDEX idx_tasks_created_at ON tasks(created_at);
CREATE INDEX idx_tasks_user ON tasks(user);
`
	insert3 = `INSERT INTO tasks VALUES (?, 'github', 'notfolder', 'coding_agent', 'issue', ?, ?, '2024-01-15T10:30:00.123456Z', '2024-01-15T10:30:01Z', ?, 12345, 'worker-node-1',
		'openai', 'gpt-4o', 128000, 45, 12, 45678, 2, ?, 'notfolder')`
)

// lastMessage is the last one of a run.
const lastMessage = 90

// logs are messages, with more of them up to the last one that summaries are of, summaries and tools.
func logs(messages, more, summaries, tools string) map[string]string {
	for n := 6; n <= lastMessage; n++ {
		messages += fmt.Sprintf(more, n, []string{"user", "assistant"}[n%2], n%60, n) + "\n"
	}
	return map[string]string{"messages.jsonl": messages, "summaries.jsonl": summaries, "tools.jsonl": tools}
}

// put writes the files of a context, open to everybody as a program leaves them that says nothing of it.
func put(dir string, files map[string]string) error {
	err := os.MkdirAll(dir, 0o755) //nolint:gosec // see above
	for name, text := range files {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644)) //nolint:gosec // see above
	}
	return err
}

// taskOf is the number of a run's task: no two are of the same.
func taskOf(uuid string) string { return "2" + uuid[len(uuid)-1:] }

// V2 makes a tree of store-v2: no database, state.json is the authority.
func V2(base string) (err error) {
	for _, r := range []struct{ dir, uuid, status, completed string }{
		{"running", Running, "processing", "null"},
		{"completed", Completed, "completed", `"2024-01-15T10:45:23.000000Z"`},
		{"completed", Failed, "timeout", `"2024-01-15T10:45:24.000000Z"`},
		{"completed", Moving, "completing", "null"},
	} {
		files := logs(messages2, more2, summaries2, tools2)
		files["metadata.json"] = strings.NewReplacer("UUID", r.uuid, "ID", taskOf(r.uuid), "MEMORY", "").Replace(metadata)
		files["state.json"] = strings.NewReplacer("STATUS", r.status, "COMPLETED", r.completed).Replace(state2)
		if r.dir == "running" {
			files[".lock"] = lock2
		}
		err = errors.Join(err, put(filepath.Join(base, r.dir, r.uuid), files))
	}
	return err
}

// V3 makes a tree of store-v3: tasks.db is the authority, there is no state.json and no lock.
func V3(base string) (err error) {
	for _, r := range []struct{ dir, uuid string }{{"running", Running}, {"completed", Completed}, {"completed", Failed}, {"running", Moving}, {"completed", NoRow}} {
		files := logs(messages3, more3, summaries3, tools3)
		files["metadata.json"] = strings.NewReplacer("UUID", r.uuid, "ID", taskOf(r.uuid), "MEMORY", ",\n    \"max_memory_messages\": 20").Replace(metadata)
		err = errors.Join(err, put(filepath.Join(base, r.dir, r.uuid), files))
	}
	if err != nil {
		return err
	}
	db, err := sql.Open("sqlite", filepath.Join(base, "tasks.db"))
	if err != nil {
		return err
	}
	_, err = db.Exec(tasks3)
	for _, r := range [][]any{
		{Running, taskOf(Running), "running", nil, nil},
		{Completed, taskOf(Completed), "completed", "2024-01-15T10:45:23Z", nil},
		{Failed, taskOf(Failed), "failed", "2024-01-15T10:45:24.123Z", "Task processing failed"},
		{Moving, taskOf(Moving), "completed", "2024-01-15T10:45:25.123456Z", nil},
		{RowAlone, taskOf(RowAlone), "completed", "2024-01-15 10:45:26", nil},
	} {
		if err == nil {
			_, err = db.Exec(insert3, r...)
		}
	}
	return errors.Join(err, db.Close())
}

// Files are all files below a directory, by their paths.
func Files(dir string) (map[string]string, error) {
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := disk.Read(path, disk.MaxWhole)
		all[path] = string(b)
		return err
	})
	return all, err
}
