package redact

import "testing"

func TestAddressesBeyondASCII(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ in, want string }{
		{"読者@例え.jp", "[EMAIL]"},
		{"宛先: 読者@例え.jp、または", "宛先: [EMAIL]、または"},
		{"user@bücher.example", "[EMAIL]"},
		{"mail <jürgen.müller@bücher.example>", "mail <[EMAIL]>"},
		{"me@例え.jpまで", "[EMAIL]まで"},
		{"me@例え.テスト", "[EMAIL]"},
		{"почта@пример.рф, иван@example.com", "[EMAIL], [EMAIL]"},
		{"読者@example.jp", "[EMAIL]"},
		{"user@mail.bücher.example.", "[EMAIL]."},
		{"連絡先はme@example.comまで", "連絡先は[EMAIL]まで"},
		{"\"\\n読者@例え.jp\"", "\"\\n[EMAIL]\""},
	} {
		if got := new(Sanitizer).String(tc.in); got != tc.want {
			t.Errorf("String(%q)\n got %q\nwant %q", tc.in, got, tc.want)
		}
	}
	for _, s := range []string{"デコレータ@foo.bar", "説明@property.setter", "型@app.route('/')", "例@2x.png", "@例え.jp", "読者@例え", "名前＠例え.jp", "価格@100.円", "\xff@例え.jp", "これ@js.ts.tsx"} {
		if got := new(Sanitizer).String(s); got != s {
			t.Errorf("String(%q) = %q", s, got)
		}
	}
}
