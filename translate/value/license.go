package value

import (
	"strings"

	"github.com/berth-hpc/berth/translate/job"
)

// Licenses parses NAME[:COUNT][,...] (--licenses). The error is ErrInvalid.
func Licenses(s string) ([]job.License, error) {
	var out []job.License
	for part := range strings.SplitSeq(s, ",") {
		name, n, given := strings.Cut(part, ":")
		l := job.License{Name: name, Count: 1}
		if given {
			c, err := Count(n)
			if err != nil {
				return nil, ErrInvalid
			}
			l.Count = c
		}
		if name == "" {
			return nil, ErrInvalid
		}
		out = append(out, l)
	}
	return out, nil
}
