package redact

import "strings"

// numbers matches telephone and payment card numbers. Both stand by themselves:
// a digit within a word, a version or an id begins none.
func (c *scanner) numbers() {
	s, last := c.s, 0
	for i := 0; i < len(s); i++ {
		if !is(s[i], digit) && s[i] != '+' && s[i] != '(' {
			continue
		}
		if i > last && (is(s[i-1], word|dash|b64) && !strings.HasSuffix(s[:i], "tel:") || s[i-1] == '%' || s[i-1] == '\\') {
			if is(s[i], digit) {
				i = run(s, i, alnum) - 1
			}
			continue
		}
		end := card(s, i)
		if end == 0 {
			end = phone(s, i)
		}
		if end > 0 {
			c.add(span{i, end, Redacted, kindNumber})
			i, last = end-1, end
		} else if is(s[i], digit) {
			i = run(s, i, digit) - 1
		}
	}
}

// closed reports whether a number that ends at s[end] ends there: no letter, no
// further group of digits follows.
func closed(s string, end int) bool {
	return end == len(s) || !is(s[end], word) && (s[end] != '-' && s[end] != '.' || end+1 == len(s) || !is(s[end+1], word) && s[end+1] != '[')
}

// card returns the end of the card number that begins at s[i], 0 if there is
// none: 13 to 16 digits in one run or in the groups that are printed on cards,
// of a known issuer, with a right check digit (ISO/IEC 7812).
func card(s string, i int) int {
	var buf [16]byte
	digits := buf[:0]
	end := run(s, i, digit)
	if end-i >= 13 && end-i <= 16 {
		digits = append(digits, s[i:end]...)
	} else if end-i == 4 && end < len(s) && (s[end] == ' ' || s[end] == '-') {
		groups := [...]int{4, 4, 4}
		n := 3
		if second := run(s, end+1, digit); second-end-1 == 6 {
			groups, n = [...]int{6, 5, 0}, 2
			if s[i] == '3' && (s[i+1] == '0' || s[i+1] == '6' || s[i+1] == '8') {
				groups[1] = 4
			}
		}
		digits = append(digits, s[i:end]...)
		sep := s[end]
		for _, size := range groups[:n] {
			if end >= len(s) || s[end] != sep || run(s, end+1, digit) != end+1+size {
				return 0
			}
			digits = append(digits, s[end+1:end+1+size]...)
			end += 1 + size
		}
	}
	if len(digits) == 0 || !closed(s, end) || !issued(digits) || !luhn(digits) {
		return 0
	}
	return end
}

// issued reports whether a known issuer has numbers that begin so and are so long.
func issued(d []byte) bool {
	two := int(d[0]-'0')*10 + int(d[1]-'0')
	four := two*100 + int(d[2]-'0')*10 + int(d[3]-'0')
	switch len(d) {
	case 13:
		return d[0] == '4'
	case 14:
		return two == 36 || two == 38 || two == 30
	case 15:
		return two == 34 || two == 37
	}
	return d[0] == '4' || two >= 51 && two <= 55 || four >= 2221 && four <= 2720 ||
		four >= 3528 && four <= 3589 || four == 6011 || two == 65 || two == 62 || four >= 6440 && four <= 6499
}

func luhn(d []byte) bool {
	sum := 0
	for i, c := range d {
		n := int(c - '0')
		if (len(d)-i)%2 == 0 {
			if n *= 2; n > 9 {
				n -= 9
			}
		}
		sum += n
	}
	return sum%10 == 0
}

// phone returns the end of the telephone number that begins at s[i], 0 if there
// is none: +81… and other international numbers (ITU-T E.164), and the Japanese
// ones: 090-1234-5678, 09012345678, 03-1234-5678, (03) 1234-5678, 0120-123-456.
func phone(s string, i int) int {
	if s[i] == '+' {
		return international(s, i)
	}
	at, open := i, s[i] == '('
	if open {
		at++
	}
	var sizes [3]int
	n, end := 0, at
	for {
		stop := run(s, end, digit)
		if stop == end || stop-end > 11 {
			break
		}
		sizes[n] = stop - end
		end = stop
		if n++; n == len(sizes) {
			break
		}
		next := end
		if n == 1 && open {
			if next >= len(s) || s[next] != ')' {
				return 0
			}
			next++
			next = blanks(s, next)
		} else if next < len(s) && (s[next] == '-' || n == 1 && s[next] == '(' || n == 2 && s[next] == ')' || s[next] == ' ' && mobile(s[at:])) {
			next++
		}
		if next == end || next >= len(s) || !is(s[next], digit) {
			break
		}
		end = next
	}
	if n == 0 || s[at] != '0' || at+1 >= len(s) || s[at+1] == '0' || !closed(s, end) || !is(s[end-1], digit) {
		return 0
	}
	total := sizes[0] + sizes[1] + sizes[2]
	switch {
	case n == 1 && !open && total == 11 && mobile(s[at:]):
	case n == 3 && sizes[0] == 3 && sizes[1] == 4 && sizes[2] == 4 && total == 11:
	case n == 3 && total == 10 && sizes[0] <= 5 && (sizes[2] == 4 || sizes[0] == 4 && sizes[2] == 3):
	case n == 3 && s[at:at+4] == "0800" && total == 11:
	case n == 2 && open && total == 10 && sizes[1] >= 6:
	default:
		return 0
	}
	return end
}

// mobile reports whether a number is one of those that are 11 digits long.
func mobile(s string) bool {
	return len(s) >= 3 && s[0] == '0' && strings.IndexByte("5789", s[1]) >= 0 && s[2] == '0'
}

// international matches "+" and up to 15 digits, in groups behind a country's
// code, or 11 and more in one run. A shorter run is a number with a sign; where
// the plus begins a line, as in a diff, the number has groups or is Japanese.
func international(s string, i int) int {
	at := i + 1
	if at >= len(s) || s[at] < '1' || s[at] > '9' {
		return 0
	}
	count, groups, first, end := 0, 0, 0, at
	for at < len(s) && count <= 15 {
		stop := run(s, at, digit)
		if stop == at {
			break
		}
		count += stop - at
		if groups++; groups == 1 {
			first = stop - at
		}
		end, at = stop, stop
		if at < len(s) && (s[at] == ' ' || s[at] == '-') {
			at++
		}
		if strings.HasPrefix(s[at:], "(0)") {
			at += 3
		} else if at < len(s) && (s[at] == '(' || s[at] == ')') {
			at++
		}
		at = min(blanks(s, at), at+1)
	}
	if count < 8 || count > 15 || !closed(s, end) {
		return 0
	}
	switch {
	case strings.HasPrefix(s[i:], "+81"):
		if count != 11 && count != 12 {
			return 0
		}
	case groups > 1:
		if first > 3 || groups > 6 || count < 10 {
			return 0
		}
	case count < 11 || i == 0 || s[i-1] == '\n' || s[i+1] == '1' && (count != 11 || s[i+2] < '2'):
		return 0
	}
	return end
}
