package slurmconf

import (
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/value"
)

func (kv pair) bad(want string) error {
	return kv.errorf("%s=%s: %s is expected", kv.key, shorten(kv.value), want)
}

// unlimited reports whether a value is one of Slurm's words for no limit.
func unlimited(s string) bool {
	return strings.EqualFold(s, "UNLIMITED") || strings.EqualFold(s, "INFINITE")
}

// integer parses a number between least and most.
func (kv pair) integer(least, most int64) (int64, error) {
	n, err := strconv.ParseInt(kv.value, 10, 64)
	if err != nil || n < least || n > most {
		return 0, kv.bad("a number from " + strconv.FormatInt(least, 10) + " to " + strconv.FormatInt(most, 10))
	}
	return n, nil
}

const (
	maxInt32 = 1<<31 - 1
	maxMiB   = 1 << 40
)

// count reads a number or a word for no limit, which is 0.
func (kv pair) count() (int32, error) {
	if unlimited(kv.value) {
		return 0, nil
	}
	n, err := kv.integer(0, maxInt32)
	return int32(n), err
}

// minutes reads a time limit; job.Unlimited: none.
func (kv pair) minutes() (int32, error) {
	if unlimited(kv.value) {
		return job.Unlimited, nil
	}
	m, err := value.Minutes(kv.value)
	if err != nil {
		return 0, kv.bad("a time such as 90, 1:30:00 or 2-0, or UNLIMITED")
	}
	return m, nil
}

// mebibytes reads a size in MiB, with an optional unit.
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
		return 0, kv.bad("a size in MB")
	}
	return n * factor, nil
}

// limit is mebibytes for a limit, where UNLIMITED is 0.
func (kv pair) limit() (*int64, error) {
	if unlimited(kv.value) {
		return new(int64), nil
	}
	n, err := kv.mebibytes()
	return &n, err
}

func (kv pair) yes() (bool, error) {
	switch strings.ToLower(kv.value) {
	case "yes", "up", "true", "1":
		return true, nil
	case "no", "down", "false", "0":
		return false, nil
	}
	return false, kv.bad("YES or NO")
}

// list splits at commas; "ALL" and nothing are the empty list.
func (kv pair) list() []string {
	if strings.EqualFold(kv.value, "ALL") {
		return nil
	}
	var all []string
	for _, s := range strings.Split(kv.value, ",") {
		if s = strings.TrimSpace(s); s != "" {
			all = append(all, s)
		}
	}
	return all
}

// gres reads name[:type][:no_consume]:count lists (slurm.conf(5), Gres).
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
			p.warn(kv, "%s: no_consume has no effect; jobs use the resource up", f[0])
		case isCount && i == len(f)-2:
			g.Count = n
		case g.Type == "":
			g.Type = part
		default:
			return g, kv.bad("name:type:count")
		}
	}
	if g.Name == "" {
		return g, kv.bad("name:type:count")
	}
	return g, nil
}

// gresCount reads a count with Slurm's binary suffixes.
func gresCount(s string) (int64, bool) {
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
