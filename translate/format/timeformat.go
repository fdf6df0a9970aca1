package format

import (
	"fmt"
	"strings"
	"time"

	"github.com/berth-hpc/berth/internal/printable"
)

// strftime replaces conversions of strftime(3) by their form in time.Format.
var strftime = strings.NewReplacer(
	"%Y", "2006", "%m", "01", "%d", "02", "%H", "15", "%M", "04", "%S", "05", "%y", "06",
	"%b", "Jan", "%B", "January", "%a", "Mon", "%A", "Monday", "%T", "15:04:05", "%F", "2006-01-02",
	"%R", "15:04", "%D", "01/02/06", "%e", "_2", "%I", "03", "%p", "PM", "%Z", "MST", "%z", "-0700",
	"%c", "Mon Jan _2 15:04:05 2006", "%j", "002", "%-d", "2", "%s", epochMark, "%%", "%")

// epochMark stands for Unix seconds in a layout, which time.Format does not support.
const epochMark = "\x00"

// relative is the layout of SLURM_TIME_FORMAT=relative, whose form depends on the
// distance from the current time.
const relative = "relative"

// TimeLayout returns the Settings.Layout of a value of SLURM_TIME_FORMAT: empty for
// the standard form, or the equivalent of a format of strftime(3).
func TimeLayout(env string) string {
	switch env {
	case "", "standard":
		return ""
	case relative:
		return relative
	}
	return strftime.Replace(env)
}

// ParseTimeFormat is TimeLayout with an error for an invalid format. The layout is
// then the standard one, as in Slurm.
func ParseTimeFormat(env string) (string, error) {
	if env != "" && env != "standard" && env != relative && !strings.Contains(env, "%") {
		return "", fmt.Errorf("invalid SLURM_TIME_FORMAT = '%s'", printable.Escape(env))
	}
	return TimeLayout(env), nil
}

// appendRelative appends a time in Slurm's "relative" form: the time of a nearby
// day, the day of the week, the date, or the year.
func appendRelative(b []byte, t, now time.Time) []byte {
	day := func(t time.Time) int64 {
		y, m, d := t.Date()
		return time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix() / 86400
	}
	switch days := day(t) - day(now); {
	case days == -1:
		return t.AppendFormat(b, "Ystday 15:04")
	case days == 0:
		return t.AppendFormat(b, "15:04:05")
	case days == 1:
		return t.AppendFormat(b, "Tomorr 15:04")
	case days < -365 || days > 365:
		return t.AppendFormat(b, "2 Jan 2006")
	case days < -1 || days > 6:
		return t.AppendFormat(b, "2 Jan 15:04")
	}
	return t.AppendFormat(b, "Mon 15:04")
}
