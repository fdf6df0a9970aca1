package value

import (
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/translate/job"
)

// GRES parses a list of --gres: terms NAME[:TYPE][:COUNT] separated by commas, where
// COUNT may have a factor k, m, g, t or p. A prefix "gres/" or "gres:" is dropped. per
// is the scope of every entry. "none" and an empty text have no entries.
func GRES(s, per string) ([]job.GRES, error) {
	if s == "" || strings.EqualFold(s, "none") {
		return nil, nil
	}
	var out []job.GRES
	for part := range strings.SplitSeq(s, ",") {
		part = strings.TrimPrefix(strings.TrimPrefix(part, "gres:"), "gres/")
		name, rest, colon := strings.Cut(part, ":")
		if colon && rest == "" || strings.Contains(name, "=") {
			return nil, ErrInvalid
		}
		g, err := typed(name, rest, per)
		if err != nil || name == "" || name == "gres" {
			return nil, ErrInvalid
		}
		out = append(out, g)
	}
	return out, nil
}

// GPUs parses a list of the --gpus options: [TYPE:]COUNT separated by commas.
func GPUs(s, per string) ([]job.GRES, error) {
	var out []job.GRES
	for part := range strings.SplitSeq(s, ",") {
		if part == "" { // as in Slurm, empty elements are ignored
			continue
		}
		part = strings.TrimPrefix(part, "gpu:")
		// As in Slurm, only a colon separates a count; an equals sign is a part of the type.
		if strings.Contains(part, "=") && !strings.Contains(part, ":") {
			out = append(out, job.GRES{Name: "gpu", Type: part, Count: 1, Per: per})
			continue
		}
		g, err := typed("gpu", part, per)
		if err != nil || part == "" {
			return nil, ErrInvalid
		}
		out = append(out, g)
	}
	return out, nil
}

// typed parses [TYPE][:COUNT], [TYPE=COUNT] or [COUNT].
func typed(name, rest, per string) (job.GRES, error) {
	g := job.GRES{Name: name, Count: 1, Per: per}
	kind, count, found := strings.Cut(rest, "=")
	if _, isNumber := factored(count); !isNumber { // a type may have an equals sign in its name
		kind, count, found = strings.Cut(rest, ":")
	}
	if !found {
		if n, ok := factored(kind); ok {
			g.Count = n
			return g, nil
		}
		g.Type = kind
		return g, nil
	}
	n, ok := factored(count)
	if !ok || kind == "" || strings.Contains(kind, ":") {
		return g, ErrInvalid
	}
	g.Type, g.Count = kind, n
	return g, nil
}

// factored parses a number with an optional factor.
func factored(s string) (int64, bool) {
	factor := int64(1)
	if s != "" {
		if i := strings.IndexByte("kmgtp", s[len(s)-1]|0x20); i >= 0 {
			factor, s = int64(1)<<(10*(i+1)), s[:len(s)-1]
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || !digits(s) || n > (1<<62)/factor {
		return 0, false
	}
	return n * factor, true
}

// TRES parses --tres-per-task: terms cpu=N and gres/NAME[:TYPE][=N] separated by
// commas, and as in 23.02 gres:NAME[:TYPE][:N] and a colon in place of =.
func TRES(s, per string) (cpus int32, list []job.GRES, err error) {
	for part := range strings.SplitSeq(s, ",") {
		if n, ok := strings.CutPrefix(strings.Replace(part, "cpu:", "cpu=", 1), "cpu="); ok {
			if cpus, err = Count(n); err != nil {
				return 0, nil, ErrInvalid
			}
			continue
		}
		isGRES := strings.HasPrefix(part, "gres/") || strings.HasPrefix(part, "gres:")
		if !isGRES || strings.Count(part, "=") > 1 {
			return 0, nil, ErrInvalid
		}
		// GRES does not accept an equals sign right after the name.
		more, err := GRES(strings.Replace(part, "=", ":", 1), per)
		if err != nil || len(more) == 0 {
			return 0, nil, ErrInvalid
		}
		list = append(list, more...)
	}
	return cpus, list, nil
}

// FormatGRES formats a list in the syntax of --gres.
func FormatGRES(list []job.GRES) string {
	parts := make([]string, len(list))
	for i, g := range list {
		parts[i] = g.Name
		if g.Type != "" {
			parts[i] += ":" + g.Type
		}
		parts[i] += ":" + strconv.FormatInt(g.Count, 10)
	}
	return strings.Join(parts, ",")
}

// FormatTRES formats a list in the syntax of TRES.
func FormatTRES(cpus int32, list []job.GRES) string {
	var parts []string
	if cpus > 0 {
		parts = append(parts, "cpu="+strconv.Itoa(int(cpus)))
	}
	for _, g := range list {
		parts = append(parts, "gres/"+FormatGRES([]job.GRES{g}))
	}
	return strings.Join(parts, ",")
}
