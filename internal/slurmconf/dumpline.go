package slurmconf

import "strings"

// entry splits 'name':Key='value':Key=value. Quoted values may contain colons and, since
// Slurm does not escape them, quotes: only a quote before a colon or at the end of the
// line closes a value.
func (p *dumpParser) entry(text string) (name string, options [][2]string, err error) {
	name, rest, err := p.word(text)
	if err == nil && name == "" {
		err = p.errorf("%q has no name", text)
	}
	for err == nil && rest != "" {
		if rest = rest[1:]; rest == "" || rest[0] == ':' {
			continue
		}
		key, after, found := strings.Cut(rest, "=")
		if !found || strings.Contains(key, ":") {
			key, _, _ = strings.Cut(rest, ":")
			return "", nil, p.errorf("%q has no value", key)
		}
		var v string
		if v, rest, err = p.word(after); err == nil {
			options = append(options, [2]string{strings.TrimSpace(key), v})
		}
	}
	return name, options, err
}

// word splits a word or a quoted string off the beginning of text. rest is empty or
// begins with a colon.
func (p *dumpParser) word(text string) (word, rest string, err error) {
	text = strings.TrimLeft(text, " \t")
	if text == "" || text[0] != '\'' && text[0] != '"' {
		end := plainEnd(text)
		return strings.TrimSpace(text[:end]), text[end:], nil
	}
	quote := text[:1]
	for from := 1; ; {
		n := strings.Index(text[from:], quote)
		if n < 0 {
			return "", "", p.errorf("unterminated quote")
		}
		end := from + n
		rest = strings.TrimLeft(text[end+1:], " \t")
		if rest == "" || rest[0] == ':' {
			return text[1:end], rest, nil
		}
		from = end + 1
	}
}

// plainEnd returns the length of the unquoted value at the beginning of text: up to the
// first colon that is not part of a typed GRES such as gres/gpu:a100=2.
func plainEnd(text string) int {
	for at := 0; ; at++ {
		n := strings.IndexByte(text[at:], ':')
		if n < 0 {
			return len(text)
		}
		at += n
		item := text[strings.LastIndexByte(text[:at], ',')+1 : at]
		item = item[strings.IndexByte(item, '=')+1:]
		if !strings.HasPrefix(item, "gres/") || !strings.Contains(text[at:], "=") {
			return at
		}
	}
}
