package value

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/translate/job"
)

// Minutes parses a time limit: M, M:S, H:M:S, D-H, D-H:M, D-H:M:S, or UNLIMITED,
// INFINITE and -1. Seconds are rounded up to minutes. 0 means no limit, as in the manual
// page; so do numbers that overflow, and -H, which Slurm accepts and shows as INVALID.
// The result is job.Unlimited or positive.
func Minutes(s string) (int32, error) {
	switch strings.ToUpper(s) {
	case "UNLIMITED", "INFINITE", "-1":
		return job.Unlimited, nil
	}
	days, clock, dashed := strings.Cut(s, "-")
	if !dashed {
		clock, days = s, ""
	}
	if dashed && days == "" {
		if !digits(clock) {
			return 0, ErrInvalid
		}
		return job.Unlimited, nil
	}
	parts, err := clockParts(clock, dashed)
	if err != nil {
		return 0, err
	}
	seconds, ok := total(days, parts)
	if !ok {
		return 0, ErrInvalid
	}
	minutes := math.Ceil(seconds / 60)
	if minutes == 0 || minutes > math.MaxInt32-1 {
		return job.Unlimited, nil
	}
	return int32(minutes), nil
}

// clockParts splits the part after the days into hours, minutes and seconds.
func clockParts(clock string, dashed bool) ([3]string, error) {
	if dashed && clock == "" {
		return [3]string{}, nil
	}
	fields := strings.Split(clock, ":")
	for _, f := range fields {
		if !digits(f) {
			return [3]string{}, ErrInvalid
		}
	}
	var out [3]string
	switch {
	case len(fields) > 3:
		return out, ErrInvalid
	case dashed || len(fields) == 3:
		copy(out[:], fields)
	default:
		copy(out[1:], fields)
	}
	return out, nil
}

// total returns the sum in seconds as floating point, which does not overflow and is
// exact for all valid limits.
func total(days string, parts [3]string) (float64, bool) {
	sum := 0.0
	for i, f := range [4]string{days, parts[0], parts[1], parts[2]} {
		if f == "" {
			continue
		}
		n, err := strconv.ParseFloat(f, 64)
		if err != nil || !digits(f) {
			return 0, false
		}
		sum += n * [4]float64{86400, 3600, 60, 1}[i]
	}
	return sum, true
}

// Seconds parses a time like Minutes and returns seconds, without rounding and without
// values that mean no limit.
func Seconds(s string) (int64, error) {
	days, clock, dashed := strings.Cut(s, "-")
	if !dashed {
		clock, days = s, ""
	}
	parts, err := clockParts(clock, dashed)
	if err != nil {
		return 0, err
	}
	seconds, ok := total(days, parts)
	if !ok || seconds > math.MaxInt32 || s == "" {
		return 0, ErrInvalid
	}
	return int64(seconds), nil
}

// FormatMinutes formats a time limit as Slurm shows it: [D-]HH:MM:SS or UNLIMITED.
func FormatMinutes(n int32) string {
	if n == job.Unlimited {
		return "UNLIMITED"
	}
	return FormatSeconds(int64(n) * 60)
}

// FormatSeconds formats seconds as [D-]HH:MM:SS.
func FormatSeconds(s int64) string {
	text := fmt.Sprintf("%02d:%02d:%02d", s/3600%24, s/60%60, s%60)
	if d := s / 86400; d > 0 {
		return fmt.Sprintf("%d-%s", d, text)
	}
	return text
}
