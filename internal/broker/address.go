package broker

import (
	"slices"
	"strings"

	"toritsugi/internal/lazyregexp"
)

// hostName reports whether s is a name of a host in ASCII, in lower case.
func hostName(s string) bool {
	if s == "" || len(s) > 253 {
		return false
	}
	for part := range strings.SplitSeq(s, ".") {
		if part == "" || strings.Trim(part, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || part[0] == '-' {
			return false
		}
	}
	return true
}

// hostListed reports whether a host, in lower case, is in a list of names and
// *.suffixes.
func hostListed(list []string, host string) bool {
	return slices.ContainsFunc(list, func(h string) bool {
		h = strings.ToLower(h)
		if suffix, ok := strings.CutPrefix(h, "*."); ok {
			return strings.HasSuffix(host, "."+suffix)
		}
		return h == host
	})
}

// web splits a web address as strictly as can be: whoever reads it differently
// than others do is not to be tricked by that.
var web = lazyregexp.New(`^(?i:https?)://([A-Za-z0-9.-]+)(?::[0-9]{1,5})?(?:[/?#][A-Za-z0-9._~/?#\[\]!$&'()*+,;=%:@-]*)?$`)

// allowed reports whether an address leads to a host on the list.
func (f *Filter) allowed(address string) bool {
	if _, host, ok := strings.Cut(address[:min(len(address), maxURL)], "://"); !ok || !hostListed(f.o.Hosts, strings.ToLower(hostAt(host))) {
		return false // most are: the exact look is dear
	}
	m := web().FindStringSubmatch(address)
	if m == nil {
		return false
	}
	host := strings.ToLower(m[1])
	return hostName(host) && hostListed(f.o.Hosts, host)
}

// maxURL is how long an address is looked at, in bytes.
const maxURL = 2048

var (
	absolute = lazyregexp.New(`(?i)([a-z][a-z0-9+.-]{0,30})\\?:\\?[/\\]\\?[/\\]`)
	wwwHost  = lazyregexp.New(`(?i)www\\?\.`)
	dataURI  = lazyregexp.New(`(?i)\b(?:data\s*:\s*(?:[a-z0-9.+-]+/[a-z0-9.+-]+\s*)?[;,]|(?:javascript|vbscript)\s*:\S)`)
)

// addresses makes addresses of unknown hosts such that no reader turns them
// into links: hxxps://host[.]example/path.
func addresses(f *Filter, format Format, s string) (edits []edit) {
	code := codeOf(format, s)
	stays := f.stays(s)
	done := 0 // up to where dots were looked for
	dots := func(i int) {
		i = max(i, done)
		done = hostEnd(s, i)
		for j := i; j < done; j++ {
			if s[j] == '.' && j+1 < done && (alnum(s[j+1]) || s[j+1] >= 0x80) {
				edits = append(edits, edit{j, j + 1, "[.]", FoundLink})
			}
		}
	}
	for _, m := range absolute().FindAllStringSubmatchIndex(s, -1) {
		name := strings.ToLower(s[m[2]:m[3]])
		if code.has(m[0]) || stays.has(m[0]) || strings.HasSuffix(name, "hxxp") || strings.HasSuffix(name, "hxxps") {
			continue
		}
		with := s[m[2]:m[3]] + "[:]//"
		if i := strings.LastIndex(name, "http"); i >= 0 && (name[i:] == "http" || name[i:] == "https") {
			with = s[m[2]:m[2]+i] + "hxxp" + name[i+4:] + "://"
		}
		edits = append(edits, edit{m[0], m[1], with, FoundLink})
		dots(m[1])
	}
	done = 0
	for _, m := range wwwHost().FindAllStringIndex(s, -1) {
		if code.has(m[0]) || stays.has(m[0]) || m[0] > 0 && alnum(s[m[0]-1]) {
			continue
		}
		if host := strings.ToLower(hostAt(s[m[0]:])); hostName(host) && hostListed(f.o.Hosts, host) {
			continue
		}
		edits = append(edits, edit{m[0], m[1], s[m[0]:m[0]+3] + "[.]", FoundLink})
		dots(m[1])
	}
	for _, m := range dataURI().FindAllStringIndex(s, -1) {
		if !code.has(m[0]) {
			i := m[0] + strings.IndexByte(s[m[0]:], ':')
			edits = append(edits, edit{i, i + 1, "[:]", FoundData})
		}
	}
	return edits
}

// stays lists where addresses stand that are allowed.
func (f *Filter) stays(s string) (all regions) {
	end := 0
	for _, m := range absolute().FindAllStringIndex(s, -1) {
		if m[0] < end {
			continue
		}
		token := addressToken(s[m[0]:])
		if address := trimmed(token); f.allowed(address) && plainEnd(s, m[0]+len(address)) {
			end = m[0] + len(token)
			all = append(all, [2]int{m[0], end})
		}
	}
	return all
}

// addressToken is s up to where every reader ends an address.
func addressToken(s string) string {
	s = s[:min(len(s), maxURL)]
	if i := strings.IndexAny(s, " \t\n<>\"`"); i >= 0 {
		s = s[:i]
	}
	return s
}

// trimmed is an address without the punctuation of the sentence it stands in.
func trimmed(token string) string {
	for token != "" {
		last := token[len(token)-1]
		switch {
		case strings.IndexByte(".,:;!?*_~'|]", last) >= 0:
		case last == ')' && strings.Count(token, ")") > strings.Count(token, "("):
		default:
			i := strings.IndexFunc(token, func(r rune) bool { return r == '\u3001' || r == '\u3002' || r == '\uff09' || r == '\u300d' })
			if _, behind, ok := strings.Cut(token[:max(i, 0)], "://"); ok && strings.ContainsAny(behind, "/?#") {
				return token[:i] // Japanese punctuation ends an address, but for within its host
			}
			return token
		}
		token = token[:len(token)-1]
	}
	return token
}

// plainEnd reports whether what stands at s[i] cannot belong to the address
// before it.
func plainEnd(s string, i int) bool {
	return i >= len(s) || strings.IndexByte("\\@%", s[i]) < 0
}

// hostAt is the host's name that s begins with.
func hostAt(s string) string {
	i := 0
	for i < len(s) && i < 255 && (alnum(s[i]) || s[i] == '.' || s[i] == '-') {
		i++
	}
	return strings.TrimRight(s[:i], ".")
}

func alnum(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// hostEnd is where whatever could be a host at s[i] ends.
func hostEnd(s string, i int) int {
	end := i
	for end < len(s) && end-i < 300 && (alnum(s[end]) || s[end] >= 0x80 || strings.IndexByte(".-_@:%\\", s[end]) >= 0) {
		end++
	}
	return end
}
