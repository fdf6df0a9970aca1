package value

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Signal is a value of --signal: the signal, how long before the time limit it is sent,
// and to which processes.
type Signal struct {
	Number int32
	Before int32 // seconds before the limit
	Batch  bool  // B: only to the batch shell
	Resv   bool  // R: allow overlap with a reservation
}

// DefaultSignalTime is the time before the limit for a signal without @TIME.
const DefaultSignalTime = 60

// signalNames are the names that Slurm's commands accept, by Linux's signal numbers.
// Slurm has no names for SEGV, PIPE, CHLD and real-time signals.
var signalNames = map[string]int32{
	"HUP": 1, "INT": 2, "QUIT": 3, "ABRT": 6, "KILL": 9, "USR1": 10, "USR2": 12,
	"ALRM": 14, "TERM": 15, "CONT": 18, "STOP": 19, "TSTP": 20, "TTIN": 21,
	"TTOU": 22, "URG": 23, "XCPU": 24,
}

// SignalNames returns the names of signals, ordered by number.
func SignalNames() []string {
	names := slices.Collect(maps.Keys(signalNames))
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(signalNames[a], signalNames[b]) })
	return names
}

// SignalNumber parses a signal's name, with or without SIG and in either case, or its
// number.
func SignalNumber(s string) (int32, error) {
	if unsigned := strings.TrimPrefix(s, "+"); digits(unsigned) {
		n, err := strconv.ParseInt(unsigned, 10, 32)
		if err != nil || n < 1 || n > 65535 {
			return 0, ErrInvalid
		}
		return int32(n), nil
	}
	if n, ok := signalNames[strings.TrimPrefix(strings.ToUpper(s), "SIG")]; ok {
		return n, nil
	}
	return 0, ErrInvalid
}

// ParseSignal parses [[R][B]:]SIGNAL[@SECONDS].
func ParseSignal(s string) (Signal, error) {
	sig := Signal{Before: DefaultSignalTime}
	if flags, rest, found := strings.Cut(s, ":"); found {
		for _, c := range flags {
			switch c {
			case 'B', 'b':
				sig.Batch = true
			case 'R', 'r':
				sig.Resv = true
			default:
				return Signal{}, ErrInvalid
			}
		}
		s = rest
	}
	name, seconds, timed := strings.Cut(s, "@")
	number, err := SignalNumber(name)
	if err != nil {
		return Signal{}, err
	}
	sig.Number = number
	if timed && seconds != "" {
		n, err := integer(seconds)
		if err != nil || n < 0 || n > 65535 {
			return Signal{}, ErrInvalid
		}
		sig.Before = int32(n)
	}
	return sig, nil
}

// SignalName returns the name of a signal without SIG, or its number.
func SignalName(n int32) string {
	for name, number := range signalNames {
		if number == n {
			return name
		}
	}
	return strconv.Itoa(int(n))
}

// FormatSignal formats s in the syntax of ParseSignal.
func FormatSignal(s Signal) string {
	flags := ""
	if s.Resv {
		flags += "R"
	}
	if s.Batch {
		flags += "B"
	}
	if flags != "" {
		flags += ":"
	}
	return flags + SignalName(s.Number) + "@" + strconv.Itoa(int(s.Before))
}
