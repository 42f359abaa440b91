package folder

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"toritsugi/internal/disk/disktest"
	"toritsugi/internal/forge"
	"toritsugi/internal/llm/image"
)

func targets(text string) (all []string) {
	imageTargets(text, func(s string) { all = append(all, s) })
	return all
}

func TestImageTargets(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"![a](b.png)", "b.png"},
		{"text ![a](b.png) and ![](c.jpg), too", "b.png c.jpg"},
		{`![a](b.png "a title") ![a](b2.png 'x') ![a](  b3.png)`, "b.png b2.png b3.png"},
		{"![a](<a b.png>) ![a](a\\ b.png) ![x](a%20b.png)", "a b.png|a%20b.png"},
		{"![a](a\\(1\\).png) ![a](a(2).png) ![a](a&amp;b.png)", "a(1).png a(2).png a&b.png"},
		{"[![alt](inner.png)](https://example.com) [no](image.png)", "inner.png"},
		{"![a [b] c](x.png) ![a \\] b](y.png) ![a](z.png", "x.png y.png"},
		{"\\![a](b.png) !\\[a](b.png) \\\\![a](c.png)", ""},
		{"![two\nlines](b.png)", "b.png"},
		{"![two\n\nparagraphs](b.png)", ""},
		{"![]() ![a]( ) ![a](<>) ![a](b c.png)", ""},
		{"![a](b(c.png) ![a](<b.png)", ""},
		{"日本語 ![図](画像/図1.png) です", "画像/図1.png"},
		{"line\r\n![a](b.png)\r\n", "b.png"},

		{"`![a](b.png)` ![a](c.png)", "c.png"},
		{"``![a](b.png)` ![a](c.png)`` ![a](d.png)", "d.png"},
		{"a lone ` and ![a](b.png)", "b.png"},
		{"`one\n![a](b.png)` ![a](c.png)", "c.png"},
		{"```\n![a](b.png)\n```\n![a](c.png)", "c.png"},
		{"````md\n![a](b.png)\n```\n![a](b.png)\n````\n![a](c.png)", "c.png"},
		{"~~~ `x`\n![a](b.png)\n```\n~~~\n![a](c.png)", "c.png"},
		{"  ```\n![a](b.png)\n  ```\n![a](c.png)", "c.png"},
		{"```\n![a](b.png)", ""},
		{"``` not a fence ` ![a](c.png)", "c.png"},
		{"text\n\n    ![a](code.png)\n    ![a](code.png)\n\n![a](c.png)", "c.png"},
		{"    ![a](code.png)", ""},
		{"\t![a](code.png)", ""},
		{"text\n    ![a](c.png)", "c.png"},
		{"- item\n\n  ![a](c.png)\n\n      ![a](code.png)\n\n    ![a](d.png)", "c.png d.png"},
		{"1. item\n   - inner\n\n     ![a](c.png)\n\n         ![a](code.png)\n\n![a](d.png)\n\n    ![a](code.png)", "c.png d.png"},
		{"- ![a](c.png)\n-     ![a](code.png)\n* ![a](d.png)", "c.png d.png"},
		{"- ```\n  ![a](code.png)\n  ```\n  ![a](c.png)", "c.png"},
		{"> ![a](b.png)\n> ```\n> ![a](code.png)\n> ```\n> > ![a](c.png)", "b.png c.png"},

		{"<!-- ![a](b.png) --> ![a](c.png)", "c.png"},
		{"<!--\n![a](b.png)\n\n<img src=x.png>\n--> ![a](c.png)", "c.png"},
		{"![a](b.png) <!-- x --> <!-- y -->![a](c.png)<!-- ![a](d.png)", "b.png c.png"},
		{"`<!--` ![a](b.png) `-->`", "b.png"},

		{`<img src="a.png"> <IMG alt=x SRC='b.png' width=10/> <img src=c.png>`, "a.png b.png c.png"},
		{"<p align=center><img\n  alt=\"x > y\"\n  src=\"a b.png\" /></p>", "a b.png"},
		{`<img alt="src=x.png"> <image src=x.png> <img> <img src> <img src=""> <imgsrc=x.png>`, ""},
		{`<img src="a.png" <img src="b.png">`, "b.png"},
		{`<img src="a&amp;b.png" src="c.png">`, "a&b.png"},
		{"`<img src=a.png>` \\<img src=b.png>", ""},
		{`<img data-src="x.png" src="y.png">`, "y.png"},
		{"", ""},
	} {
		sep := " "
		if strings.Contains(c.want, "|") {
			sep = "|"
		}
		want := strings.Split(c.want, sep)
		if strings.Contains(c.want, " b.png") && !strings.Contains(c.want, ".png b.png") && sep == " " {
			want = []string{c.want}
		}
		if c.want == "" {
			want = nil
		}
		if d := cmp.Diff(want, targets(c.text)); d != "" {
			t.Errorf("%q (-want +got):\n%s", c.text, d)
		}
	}
}

// Texts that would take long if each part were looked at again and again.
func TestImageTargetsOfHostileTexts(t *testing.T) {
	t.Parallel()
	for _, part := range []string{"](", "![", "](a)", "![a](", "<img ", "<img a=", "`", "`` ` ", "<!--", "\\", "> ", "- ", "[", "![a](b.png)\n", "- \n"} {
		n := 0
		imageTargets(strings.Repeat(part, 200_000/len(part)), func(string) { n++ })
		if want := strings.Contains(part, "b.png"); want != (n > 0) {
			t.Errorf("%q: %d images", part, n)
		}
	}
}

func FuzzImageTargets(f *testing.F) {
	for _, s := range []string{"![a](b.png)", "<img src='a'>", "```\n![", "<!-- -->", "- > `![a](<b>)", "\t1. ![a\\](b(c)d \"e\")", "![" + "\xff\x00](\xff)"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		defer disktest.Bounded(t, len(text))()
		for _, target := range targets(text) {
			if target == "" && !strings.Contains(text, "&") || len(target) > 4*maxTarget {
				t.Errorf("target %q of %q", target, text)
			}
		}
		// What stands behind a closed fence of tildes is no code.
		if closed := strings.ReplaceAll(text, "~", "-"); !strings.Contains(text, "<!") {
			got := targets("~~~\n" + closed + "\n~~~\n\n![a](last.png)")
			if len(got) != 1 || got[0] != "last.png" {
				t.Errorf("images in a block of code: %q", got)
			}
		}
	})
}

func TestImagesOfAnIssue(t *testing.T) {
	t.Parallel()
	outer, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	repo, dir := filepath.Join(outer, "repo"), filepath.Join(outer, "repo", "docs", "issues")
	for _, d := range []string{filepath.Join(dir, "shots"), filepath.Join(outer, "elsewhere")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"out.png": "../../../secret.png", "in.png": "shots/a.png", "elsewhere": filepath.Join(outer, "elsewhere"), "loop.png": "loop.png"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range []string{"secret.png", "repo/logo.png", "repo/docs/issues/shots/a.png", "elsewhere/b.png", "repo/docs/issues/with space.png"} {
		if err := os.WriteFile(filepath.Join(outer, p), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for target, want := range map[string]forge.Image{
		"shots/a.png":                  {Root: dir, Name: "shots/a.png"},
		"./shots/../shots/a.png?raw=1": {Root: dir, Name: "shots/a.png"},
		"shots/a.png#part":             {Root: dir, Name: "shots/a.png"},
		"in.png":                       {Root: dir, Name: "shots/a.png"},
		"with%20space.png":             {Root: dir, Name: "with space.png"},
		"missing.png":                  {Root: dir, Name: "missing.png"},
		"loop.png":                     {Root: dir, Name: "loop.png"},
		"../../logo.png":               {Root: repo, Name: "logo.png"},
		"../../../secret.png":          {Dropped: image.OutsideDirectory},
		"..%2f..%2f..%2fsecret.png":    {Dropped: image.OutsideDirectory},
		"out.png":                      {Dropped: image.OutsideDirectory},
		"elsewhere/b.png":              {Dropped: image.OutsideDirectory},
		"/etc/passwd":                  {Dropped: image.OutsideDirectory},
		filepath.Join(dir, "in.png"):   {Dropped: image.OutsideDirectory},
		"file:///etc/passwd":           {Dropped: image.OutsideDirectory},
		"data:image/png;base64,AAAA":   {Dropped: image.UnsupportedType},
		"#anchor":                      {Dropped: image.EmptyPath},
		"https://example.com/a.png":    {Link: true},
		"HTTP://example.com/a.png":     {Link: true},
		"//example.com/a.png":          {Link: true},
		"ftp://example.com/a.png":      {Link: true},
		"C:/a.png":                     {Root: dir, Name: "C:/a.png"},
		"a%00b.png":                    {Root: dir, Name: "a\x00b.png"},
		"100%.png":                     {Root: dir, Name: "100%.png"},
	} {
		want.Target = target
		path, texts := filepath.Join(dir, "12.md"), []string{"![x](<" + target + ">)"}
		got, more := images(path, texts, repo)
		if d := cmp.Diff([]forge.Image{want}, got); d != "" || more != 0 {
			t.Errorf("%q, %d more (-want +got):\n%s", target, more, d)
		}
		if got[0].Root == repo {
			if got, _ = images(path, texts, ""); got[0].Dropped != image.OutsideDirectory {
				t.Errorf("%q without a repository: %+v", target, got)
			}
		}
	}
}

func TestImagesOfCommentsAndOfManyImages(t *testing.T) {
	t.Parallel()
	f := OpenIssue(Options{Repo: house, Issue: &Issue{ID: "1", Path: file(t, "1.md", "![a](a.png) ![again](a.png)")}})
	dir, err := filepath.EvalSymlinks(filepath.Dir(f.o.Issue.Path))
	if err != nil {
		t.Fatal(err)
	}
	text := "![b](b.png)\n\n## ken — 2026-01-02T03:04:05Z\n\n![a](a.png) <img src=c.png>\n\n## tori — 2026-01-02T03:04:06Z\n\n![d](ours.png)\n\n<!-- tori:m -->\n"
	if err := os.WriteFile(CommentsPath(f.o.Issue.Path), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var names []string
	got, more, err := f.Images(t.Context(), f.key("1"), "")
	for _, img := range got {
		names = append(names, img.Path())
	}
	if want := []string{dir + "/a.png", dir + "/b.png", dir + "/c.png"}; !slices.Equal(names, want) || more != 0 || err != nil {
		t.Errorf("%q, %d more, %v", names, more, err)
	}
	if p := (forge.Image{Link: true}).Path(); p != "" {
		t.Error(p)
	}
	many := ""
	for n := range maxImages + 7 {
		many += "![x](" + strings.Repeat("i", n+1) + ".png)\n"
	}
	if got, more = images("/issues/1.md", []string{many}, ""); len(got) != maxImages || more != 7 {
		t.Errorf("%d images, %d more", len(got), more)
	}
}
