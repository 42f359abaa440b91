package tool

import (
	"bytes"
	"fmt"
	"strings"
)

// magics are beginnings of files that are no text, and what they tell. at is
// where the bytes stand.
var magics = [...]struct {
	at    int
	bytes string
	what  string
}{
	{0, "\x89PNG\r\n\x1a\n", "a PNG image"}, {0, "\xff\xd8\xff", "a JPEG image"}, {0, "GIF8", "a GIF image"}, {8, "WEBP", "a WebP image"},
	{0, "BM", "a BMP image"}, {0, "\x00\x00\x01\x00", "an icon"}, {0, "%PDF-", "a PDF document"}, {0, "PK\x03\x04", "a ZIP archive (also .jar, .docx, .xlsx)"},
	{0, "\x1f\x8b", "gzip-compressed data"}, {0, "BZh", "bzip2-compressed data"}, {0, "\xfd7zXZ\x00", "xz-compressed data"}, {0, "\x28\xb5\x2f\xfd", "zstd-compressed data"},
	{0, "7z\xbc\xaf\x27\x1c", "a 7-Zip archive"}, {257, "ustar", "a tar archive"}, {0, "!<arch>\n", "an ar archive or static library"},
	{0, "\x7fELF", "an ELF program or library"}, {0, "MZ", "a Windows program"}, {0, "\xcf\xfa\xed\xfe", "a macOS program"}, {0, "\xca\xfe\xba\xbe", "a Java class or macOS program"},
	{0, "\x00asm", "a WebAssembly module"}, {0, "SQLite format 3\x00", "an SQLite database"}, {0, "OggS", "Ogg audio or video"}, {0, "ID3", "MP3 audio"}, {8, "WAVE", "WAV audio"},
	{4, "ftyp", "MP4 video"}, {0, "wOFF", "a font"}, {0, "wOF2", "a font"}, {0, "\x00\x01\x00\x00", "a font"}, {0, "DIRC", "a git index"},
}

// kindOfBinary says what a file that is no text is, from its beginning.
func kindOfBinary(head []byte) string {
	for _, m := range magics {
		if len(head) >= m.at+len(m.bytes) && string(head[m.at:m.at+len(m.bytes)]) == m.bytes {
			return m.what
		}
	}
	switch {
	case bytes.HasPrefix(head, []byte("\xff\xfe")), bytes.HasPrefix(head, []byte("\xfe\xff")):
		return "text in UTF-16"
	case len(head) >= 4 && len(head)%2 == 0 && everyOther(head, 1), len(head) >= 4 && everyOther(head[1:], 1):
		return "probably text in UTF-16"
	case strings.Trim(string(head), "\x00") == "":
		return "nothing but NUL bytes at its beginning"
	}
	return "a binary file"
}

// everyOther reports whether s has a NUL at each second place from at on, and
// none between them.
func everyOther(s []byte, at int) bool {
	for i, b := range s[:min(len(s), 64)] {
		if (b == 0) != (i%2 == at) {
			return false
		}
	}
	return true
}

// binaryNote is why a file cannot be shown, and what to do.
func binaryNote(rel string, head []byte, size int64) string {
	what := kindOfBinary(head)
	note := fmt.Sprintf("%s is %s of %d bytes. It cannot be shown as text.", rel, what, size)
	if strings.Contains(what, "UTF-16") {
		note += " Convert it with iconv in shell."
	}
	return note
}
