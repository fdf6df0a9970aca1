package slurmconf

import (
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/value"
)

// invalid returns an error that says which values are valid.
func (kv pair) invalid(want string) error {
	return kv.errorf("invalid %s=%s, expected %s", kv.key, shorten(kv.value), want)
}

// unlimited reports whether a value is UNLIMITED or INFINITE.
func unlimited(s string) bool {
	return strings.EqualFold(s, "UNLIMITED") || strings.EqualFold(s, "INFINITE")
}

// integer parses an integer from low to high.
func (kv pair) integer(low, high int64) (int64, error) {
	n, err := strconv.ParseInt(kv.value, 10, 64)
	if err != nil || n < low || n > high {
		return 0, kv.invalid("a number from " + strconv.FormatInt(low, 10) + " to " + strconv.FormatInt(high, 10))
	}
	return n, nil
}

const (
	maxInt32 = 1<<31 - 1
	maxMiB   = 1 << 40
)

// count parses an integer; UNLIMITED is 0.
func (kv pair) count() (int32, error) {
	if unlimited(kv.value) {
		return 0, nil
	}
	n, err := kv.integer(0, maxInt32)
	return int32(n), err
}

// minutes parses a time limit; UNLIMITED is job.Unlimited.
func (kv pair) minutes() (int32, error) {
	if unlimited(kv.value) {
		return job.Unlimited, nil
	}
	m, err := value.Minutes(kv.value)
	if err != nil {
		return 0, kv.invalid("a time such as 90, 1:30:00 or 2-0, or UNLIMITED")
	}
	return m, nil
}

// mebibytes parses a size with an optional unit (M, G or T) to MiB.
func (kv pair) mebibytes() (int64, error) {
	digits, factor := kv.value, int64(1)
	if n := len(digits); n > 1 {
		switch digits[n-1] | 0x20 {
		case 'm':
			digits = digits[:n-1]
		case 'g':
			digits, factor = digits[:n-1], 1<<10
		case 't':
			digits, factor = digits[:n-1], 1<<20
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 || n > maxMiB/factor {
		return 0, kv.invalid("a size in MB")
	}
	return n * factor, nil
}

// limit parses a memory limit to MiB; UNLIMITED is 0.
func (kv pair) limit() (*int64, error) {
	if unlimited(kv.value) {
		return new(int64), nil
	}
	n, err := kv.mebibytes()
	return &n, err
}

func (kv pair) boolean() (bool, error) {
	switch strings.ToLower(kv.value) {
	case "yes", "up", "true", "1":
		return true, nil
	case "no", "down", "false", "0":
		return false, nil
	}
	return false, kv.invalid("YES or NO")
}

// list returns the words of a list that allows or denies something; nil if the value is
// empty or ALL.
func (kv pair) list() []string {
	if strings.EqualFold(kv.value, "ALL") {
		return nil
	}
	return kv.words()
}

// words splits a value at its commas, without blanks and empty words.
func (kv pair) words() []string {
	var all []string
	for _, s := range strings.Split(kv.value, ",") {
		if s = strings.TrimSpace(s); s != "" {
			all = append(all, s)
		}
	}
	return all
}

// gres parses a list of name[:type][:no_consume][:count] (slurm.conf(5), Gres).
func (p *parser) gres(kv pair) ([]GRES, error) {
	var all []GRES
	for _, item := range kv.list() {
		if strings.EqualFold(item, "none") || item == "(null)" {
			continue
		}
		g, err := p.gresItem(kv, item)
		if err != nil {
			return nil, err
		}
		all = append(all, g)
	}
	return all, nil
}

func (p *parser) gresItem(kv pair, item string) (GRES, error) {
	f := strings.Split(item, ":")
	g := GRES{Name: f[0], Count: 1}
	for i, part := range f[1:] {
		switch n, isCount := gresCount(part); {
		case strings.EqualFold(part, "no_consume"):
			p.warn(kv, "%s: no_consume is ignored; the resource is consumed", f[0])
		case isCount && i == len(f)-2:
			g.Count = n
		case g.Type == "":
			g.Type = part
		default:
			return g, kv.invalid("name:type:count")
		}
	}
	if g.Name == "" {
		return g, kv.invalid("name:type:count")
	}
	return g, nil
}

// gresCount parses a count with an optional binary suffix (K, M, G or T).
func gresCount(s string) (count int64, ok bool) {
	if s == "" {
		return 0, false
	}
	shift := 10 * (1 + strings.IndexByte("kmgt", s[len(s)-1]|0x20))
	if shift > 0 {
		s = s[:len(s)-1]
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || n > 1<<60>>shift {
		return 0, false
	}
	return n << shift, true
}
