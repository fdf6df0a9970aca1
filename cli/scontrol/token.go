package scontrol

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/kube"
	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/status"
)

// token prints a token of the caller or of another user, as an assignment to SLURM_JWT.
func token(ctx context.Context, o *Options, args []string) error {
	user, seconds := "", int64(status.DefaultTokenLife)
	for _, word := range args {
		key, value, _ := strings.Cut(word, "=")
		switch strings.ToLower(key) {
		case "username":
			user = value
		case "lifespan":
			n, err := parseLifespan(value)
			if err != nil {
				return err
			}
			seconds = n
		default:
			return &slurmerr.Error{Code: 1, Before: []string{"Invalid option: `" + printable.Escape(word) + "`"}}
		}
	}
	if seconds < status.MinTokenLife {
		seconds = status.MinTokenLife
		o.p.Warn(fmt.Sprintf("scontrol: warning: the token lives %d seconds, the least that is possible", seconds))
	}
	c, err := o.connect()
	if err != nil {
		return err
	}
	t, err := c.Token(ctx, user, seconds)
	switch kube.KindOf(err) {
	case kube.Forbidden, kube.Invalid:
		return &slurmerr.Error{Code: 1, Before: []string{
			"scontrol: error: slurm_fetch_token: error with request: " + printable.Escape(err.Error()),
			"Error fetching token",
		}}
	}
	if err != nil {
		return err
	}
	return o.p.Print("SLURM_JWT=" + t.Token + "\n")
}

// parseLifespan parses a number of seconds; infinite is the longest one that is possible.
func parseLifespan(text string) (int64, error) {
	if strings.EqualFold(text, "infinite") {
		return math.MaxInt32, nil
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 {
		return 0, plain("Invalid lifespan: %s", text)
	}
	return n, nil
}
