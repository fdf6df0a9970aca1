package format

import (
	"strconv"
	"strings"
	"time"
)

// AppendDuration appends seconds in the form of squeue's TIME: [D-]HH:MM:SS, H:MM:SS
// or M:SS.
func AppendDuration(b []byte, seconds int64) []byte {
	if seconds < 0 {
		return append(b, "INVALID"...)
	}
	days, hours := seconds/86400, seconds/3600%24
	minutes, rest := seconds/60%60, seconds%60
	switch {
	case days > 0:
		b = strconv.AppendInt(b, days, 10)
		b = append(b, '-')
		b = appendTwoDigits(b, hours)
		b = append(b, ':')
		b = appendTwoDigits(b, minutes)
	case hours > 0:
		b = strconv.AppendInt(b, hours, 10)
		b = append(b, ':')
		b = appendTwoDigits(b, minutes)
	default:
		b = strconv.AppendInt(b, minutes, 10)
	}
	b = append(b, ':')
	return appendTwoDigits(b, rest)
}

// AppendDurationLong appends seconds in the form of scontrol's RunTime: [D-]HH:MM:SS.
func AppendDurationLong(b []byte, seconds int64) []byte {
	if seconds < 0 {
		return append(b, "INVALID"...)
	}
	if days := seconds / 86400; days > 0 {
		b = strconv.AppendInt(b, days, 10)
		b = append(b, '-')
	}
	b = appendTwoDigits(b, seconds/3600%24)
	b = append(b, ':')
	b = appendTwoDigits(b, seconds/60%60)
	b = append(b, ':')
	return appendTwoDigits(b, seconds%60)
}

// appendTwoDigits appends n with at least two digits.
func appendTwoDigits(b []byte, n int64) []byte {
	if n < 10 {
		b = append(b, '0')
	}
	return strconv.AppendInt(b, n, 10)
}

// AppendMinutes appends a limit in minutes as a duration; -1 is UNLIMITED.
func AppendMinutes(b []byte, minutes int32) []byte {
	if minutes < 0 {
		return append(b, "UNLIMITED"...)
	}
	return AppendDuration(b, int64(minutes)*60)
}

// AppendInstant appends a time, or none if it is 0.
func AppendInstant(b []byte, unix int64, none string, s *Settings) []byte {
	if unix == 0 {
		return append(b, none...)
	}
	loc, layout := s.Location, s.Layout
	if loc == nil {
		loc = time.UTC
	}
	if layout == relative {
		return appendRelative(b, time.Unix(unix, 0).In(loc), time.Unix(s.Now, 0).In(loc))
	}
	if layout == "" {
		layout = "2006-01-02T15:04:05"
	}
	if !strings.Contains(layout, epochMark) {
		return time.Unix(unix, 0).In(loc).AppendFormat(b, layout)
	}
	text := time.Unix(unix, 0).In(loc).Format(layout)
	return append(b, strings.ReplaceAll(text, epochMark, strconv.FormatInt(unix, 10))...)
}

// AppendMemory appends an amount of MiB in the largest unit that shows it exactly
// (2048 is 2G, 1500 is 1500M), or in M with NoConvert. Zero is "0".
func AppendMemory(b []byte, mib int64, s *Settings) []byte {
	if mib == 0 {
		return append(b, '0')
	}
	units := "MGTPE"
	if s.NoConvert {
		units = "M"
	}
	for len(units) > 1 && mib >= 1024 && mib%1024 == 0 {
		mib /= 1024
		units = units[1:]
	}
	return append(strconv.AppendInt(b, mib, 10), units[0])
}

// appendOr appends text, or none if it is empty.
func appendOr(b []byte, text, none string) []byte {
	if text == "" {
		text = none
	}
	return append(b, text...)
}

func appendInt[T ~int | ~int32 | ~int64](b []byte, n T) []byte {
	return strconv.AppendInt(b, int64(n), 10)
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, '1')
	}
	return append(b, '0')
}
