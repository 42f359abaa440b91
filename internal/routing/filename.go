package routing

import (
	"path"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// buildFiles build or configure a project, wherever they lie; buildPrefixes are such with
// something behind them.
var (
	buildFiles = setOf("package.json package-lock.json pnpm-lock.yaml yarn.lock tsconfig.json dockerfile docker-compose.yml docker-compose.yaml compose.yml compose.yaml pyproject.toml requirements.txt pipfile pipfile.lock cargo.toml cargo.lock go.mod go.sum makefile cmakelists.txt .env")
	workflows  = ".github/workflows/"
)

// extensions are those of source, markup and configuration; products are names that look
// like such files.
var (
	extensions = setOf("ts tsx js jsx mjs cjs py rb php java kt go rs c cc cpp h hpp cs swift scala sh ps1 sql html css scss vue json toml ini conf cfg service yaml yml")
	products   = setOf("node.js next.js nuxt.js vue.js react.js angular.js ember.js backbone.js express.js nest.js three.js d3.js p5.js chart.js alpine.js discord.js moment.js day.js date.js knockout.js meteor.js socket.js solid.js svelte.js electron.js phaser.js babylon.js tensorflow.js brain.js ml5.js matter.js pixi.js anime.js swiper.js video.js hls.js plotly.js deck.gl leaflet.js lodash.js underscore.js require.js handlebars.js mustache.js deno.js bun.js web.py bottle.py pokemon.go let.go socket.h")
)

// token is a run of letters that a file name is made of.
func nameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("._-/\\@+~$[]", c) >= 0
}

// eachName calls f with each token of text that may be the path of a file, where it stands,
// until f returns true. What belongs to an address is none.
func eachName(text string, f func(name string, at span) bool) {
	for i := 0; i < len(text); {
		if !nameByte(text[i]) {
			i++
			continue
		}
		start := i
		for i < len(text) && nameByte(text[i]) {
			i++
		}
		if strings.HasPrefix(text[i:], "://") { // an address: to its end
			for i < len(text) && text[i] > ' ' && text[i] < utf8.RuneSelf && strings.IndexByte(`"'<>)`, text[i]) < 0 {
				i++
			}
			continue
		}
		name := strings.Trim(text[start:i], "-+@$[]")
		name = strings.TrimRight(name, "./\\")
		if name == "" || strings.IndexByte(name, '.') < 0 && !buildFiles[strings.ToLower(path.Base(name))] {
			continue
		}
		at := start + strings.Index(text[start:i], name)
		if apostrophe := at > 0 && text[at-1] == '\''; apostrophe || strings.ContainsRune(name, '@') || hostname(name) {
			continue
		}
		if f(name, span{at, at + len(name)}) {
			return
		}
	}
}

// hostname reports whether a path begins with the name of a host.
func hostname(name string) bool {
	host, _, isPath := strings.Cut(name, "/")
	host = strings.ToLower(host)
	if strings.HasPrefix(host, "www.") {
		return true
	}
	if !isPath {
		return false
	}
	tops := []string{".com", ".org", ".net", ".io", ".jp", ".dev", ".app", ".ai", ".co", ".me", ".gov", ".edu"}
	return slices.ContainsFunc(tops, func(top string) bool { return strings.HasSuffix(host, top) && len(host) > len(top) })
}

// buildFile is where a text names a file that builds or configures.
func buildFile(text string) (found span) {
	eachName(text, func(name string, at span) bool {
		lower := strings.ToLower(strings.ReplaceAll(name, `\`, "/"))
		base := path.Base(lower)
		workflow := strings.Contains(lower, workflows) && (strings.HasSuffix(base, ".yml") || strings.HasSuffix(base, ".yaml"))
		// A Makefile is written with a capital; "makefile" in a sentence is one, too.
		if buildFiles[base] || workflow || strings.HasPrefix(base, ".env.") || strings.HasPrefix(base, "dockerfile.") {
			found = at
			return true
		}
		return false
	})
	return found
}

// sourceFile is where a text names a file of source, markup or configuration.
func sourceFile(text string) (found span) {
	eachName(text, func(name string, at span) bool {
		base := path.Base(strings.ReplaceAll(name, `\`, "/"))
		dot := strings.LastIndexByte(base, '.')
		if dot < 1 || !extensions[strings.ToLower(base[dot+1:])] || products[strings.ToLower(base)] {
			return false
		}
		if !stem(base[:dot], len(base)-dot-1) {
			return false
		}
		found = at
		return true
	})
	return found
}

// stem reports whether a file can be called s, with an extension of n letters: it has a
// letter, is no version (v1.2) and no abbreviation (e.g.).
func stem(s string, n int) bool {
	if strings.Trim(strings.ToLower(s), "v0123456789.-_") == "" {
		return false
	}
	parts := strings.Split(s, ".")
	if len(parts) > 1 && !slices.ContainsFunc(parts, func(p string) bool { return len(p) > 1 }) {
		return false
	}
	return len(s) > 1 || n > 1 && s >= "a" && s <= "z"
}

// The signals: what a message says of what is wanted. Each is a set of signals().
const (
	signalChange  = iota // something is to be changed or made
	signalTrouble        // something does not work
	signalAsk            // something is asked for
	signalWhatIs         // what a thing is, or whether one should
	signalAnalyze        // data is to be looked at
	signalOps            // a command of operations
)

// changes are words of a change that is wanted. What was done, or is being done, is none:
// see done.
var (
	changes = []string{
		"直して", "直したい", "直す", "修正", "変更", "追加", "実装", "リファクタ", "書き換え", "書き直", "書いて", "作って", "作成", "削除", "消して", "消す", "置き換え", "差し替え", "置換", "移行", "移動して", "分割", "切り出", "改名", "リネーム", "改善",
		"最適化", "更新", "上げて", "上げたい", "下げて", "足して", "入れて", "外して", "統一", "整形", "対応", "化して", "変えて", "変えたい", "テスト追加", "共通化", "型を付け", "型付け", "有効に", "無効に", "生成して", "まとめて", "分けて", "整理",
		"デバッグ", "戻して", "マルチステージ化", "並列化", "非同期化", "変換", "にして", "したい", "するように", "なんとか", "してほしい", "して欲しい", "翻訳して",
		"fix", "change", "add", "implement", "refactor", "rewrite", "rename", "remove", "delete", "replace", "modify", "edit", "update", "upgrade", "bump", "migrate", "convert", "create", "write", "generate", "extract", "split", "move",
		"inline", "optimize", "optimise", "clean up", "simplify", "patch", "debug", "port", "pin", "revert", "make", "turn it into", "drop", "wire up", "handle", "support", "cache", "parallelize", "stop that", "translate",
	}
	notChanges = []string{"updated", "fix up dinner", "how to write", "add-on", "i write", "i change", "対応表", "したい人", "気にして", "一覧にして", "リストにして", "表にして", "グラフにして", "静かにして", "大切にして", "楽しみにして", "変更履歴", "追加料金", "make sense", "makes sense"}
	// done are endings with which a verb tells of the past or of a state.
	done = []string{"いる", "いて", "いない", "いたな", "いたけ", "いたの", "いたん", "いたよ", "いたら", "いました", "いた。", "た", "る", "しまっ", "くれた", "くれまし", "もらった", "もらいまし", "あった", "あり", "ある", "ばかり", "ます"}
	// doneNoun are such endings behind a noun of action.
	doneNoun = []string{"した。", "したら", "しました", "したよ", "したの", "したけ", "したん", "した！", "した!", "している", "していた", "された", "済み", "が終わ", "し終"}
)

// undone are longer words in which a change is none: with endings of the past.
func undone(change string) []string {
	all := slices.Clone(notChanges)
	endings := doneNoun
	switch {
	case change[0] < utf8.RuneSelf:
		return all
	case strings.HasSuffix(change, "て"):
		endings = done
	}
	for _, e := range endings {
		all = append(all, change+e)
	}
	return all
}

// signals finds the signals in a folded text.
var signals = sync.OnceValue(func() *matcher {
	m := &matcher{}
	m.add(nil, nil)
	for _, c := range changes {
		m.extend(signalChange, []string{c}, undone(c))
	}
	m.add([]string{
		"エラー", "動かない", "動きません", "落ちる", "落ちます", "失敗する", "失敗します", "失敗した", "通らない", "コンパイルでき", "ビルドでき", "バグ", "おかしい", "壊れ", "例外", "未定義", "クラッシュする", "クラッシュします", "無限ループ", "警告が",
		"読み込まれない", "反映されない", "見つからない", "解決できない", "何も起き", "効かない", "になる", "になってしまう", "遅い",
		"error:", "errors", "error", "fails", "failing", "broken", "bug", "crashes", "panics", "panic", "undefined", "doesn't work", "does not work", "not working", "won't compile", "doesn't compile", "warning", "nil pointer",
		"null pointer", "segfault", "throws", "exception", "deadlock", "infinite loop", "not found", "leak", "leaks", "hangs", "twice",
	}, []string{"エラーなし", "気になる", "楽しくなる", "好きになる"})
	m.add([]string{
		"してください", "して下さい", "ください", "お願い", "説明して", "レビューして", "チェックして", "確認して", "調べて", "見て", "読んで", "教えて",
		"please", "can you", "could you", "would you", "explain", "review", "check", "look at", "show me", "walk me through",
	}, []string{"見ていた", "見てた", "見てみたら", "読んでい", "読んでた", "教えてくれた", "教えてもらった", "調べてい"})
	m.add([]string{
		"とは", "って何", "ってなに", "は何", "の違い", "違いは", "違いって", "べき", "必要?", "必要ある", "必要あり", "コミットする?", "いつ使う", "何のため", "歴史", "読み方", "の意味", "おすすめ", "由来", "好き", "嫌い", "つづり", "という名前", "懐かし",
		"what is", "what's a", "what's the", "what's your", "what are", "what does", "difference between", "should i", "should we", "do i need", "do we need", "stand for", "history of", "pros and cons", "why is it called", "why do people",
		"when do people", "love", "hate", "opinion", "favorite", "favourite",
	}, []string{"とはいえ", "ことは", "とは別", "とは思", "とは言", "とは限", "とはいか", "好きなように", "お好き", "what's the bug", "what's the error", "what does the", "what does this"})
	m.add([]string{
		"集計", "傾向", "統計", "分布", "相関", "分類", "抽出", "分析", "可視化", "件数", "内訳", "analyze", "analyse", "analysis", "aggregate", "trend", "trends", "statistics", "distribution", "correlation", "summarize", "how many", "breakdown",
	}, nil)
	m.add([]string{
		"systemctl", "journalctl", "systemd", "docker", "docker-compose", "podman", "kubectl", "ssh", "scp", "rsync", "ufw", "iptables", "nmcli", "tailscale", "crontab", "apt", "nginx -t", "サーバ", "再起動", "sudo", "reload", "restart", "リロード",
		"git", "gh",
	}, []string{".git"})
	return m
})

// configuring are extensions of what servers and data are, not programs.
var configuring = setOf("json yaml yml conf cfg ini service toml html sql env")

// workOn makes of named, which finds a file in a text, a kind that holds where something
// is to be done with the file: its name in a story, or in a question what it is, is no
// work for a coder (the costly mistake, route §2.4).
func workOn(named func(string) span) func(*message) (string, bool) {
	return func(m *message) (string, bool) {
		if strings.IndexByte(m.raw, '.') < 0 && !strings.Contains(m.folded, "file") {
			return "", false
		}
		at := named(m.raw)
		if at.end == 0 {
			return "", false
		}
		name := m.raw[at.start:at.end]
		s := signals().find(m.folded)
		has := func(signal int) bool { return s[signal].end > 0 }
		base := strings.ToLower(path.Base(name))
		config := configuring[strings.TrimPrefix(path.Ext(base), ".")] || buildFiles[base]
		switch {
		case has(signalWhatIs), tells(m) && !has(signalTrouble):
			return "", false
		case has(signalChange):
			return name, true
		case config && (has(signalOps) || has(signalAnalyze)):
			return "", false
		}
		return name, has(signalTrouble) || has(signalAsk) || alone(m.raw, at)
	}
}

// tells reports whether a message only tells something.
func tells(m *message) bool {
	_, ok := statement(m)
	return ok
}

// alone reports whether a message is little else than a file: its name, a line in it.
func alone(text string, at span) bool {
	rest := strings.TrimSpace(text[:at.start] + text[at.end:])
	return len(rest) <= 12 && strings.Trim(rest, ":0123456789`\"'「」#L-,行目 ") == ""
}
