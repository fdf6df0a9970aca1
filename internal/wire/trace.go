package wire

// AnnotationTraceparent on a BatchJob is the job's place in a trace, in the form of the header
// traceparent (W3C Trace Context). A command sets it to its own TRACEPARENT; admission
// replaces it. Jobs that are not traced have none.
const AnnotationTraceparent = "berth.hpc/traceparent"

// AnnotationTraceCommand on a BatchJob that is submitted with a traceparent names the command
// and when it began, in microseconds of Unix time: "sbatch 1764333555123456". Stored jobs
// have none.
const AnnotationTraceCommand = "berth.hpc/trace-command"

// EnvTraceparent is the variable with a traceparent, by which programs continue a trace.
const EnvTraceparent = "TRACEPARENT"

// Traceparent is a position in a trace.
type Traceparent struct {
	Trace   [16]byte
	Span    [8]byte
	Sampled bool
}

// lenTraceparent is the length of version 00 of a traceparent.
const lenTraceparent = 55

// ParseTraceparent parses a traceparent of any version (W3C Trace Context, section 3.2).
func ParseTraceparent(text string) (t Traceparent, ok bool) {
	if len(text) < lenTraceparent || text[2] != '-' || text[35] != '-' || text[52] != '-' {
		return t, false
	}
	var version, flags [1]byte
	if !hexBytes(version[:], text[:2]) || !hexBytes(t.Trace[:], text[3:35]) ||
		!hexBytes(t.Span[:], text[36:52]) || !hexBytes(flags[:], text[53:lenTraceparent]) {
		return Traceparent{}, false
	}
	longer := len(text) > lenTraceparent
	if version[0] == 0xff || version[0] == 0 && longer || longer && text[lenTraceparent] != '-' ||
		t.Trace == [16]byte{} || t.Span == [8]byte{} {
		return Traceparent{}, false
	}
	t.Sampled = flags[0]&1 != 0
	return t, true
}

// String returns the traceparent in version 00.
func (t Traceparent) String() string {
	b := make([]byte, 0, lenTraceparent)
	b = append(b, "00-"...)
	b = appendHex(b, t.Trace[:])
	b = append(b, '-')
	b = appendHex(b, t.Span[:])
	if t.Sampled {
		return string(append(b, "-01"...))
	}
	return string(append(b, "-00"...))
}

// TraceID returns the id of the trace as logs and exemplars show it.
func (t Traceparent) TraceID() string { return string(appendHex(nil, t.Trace[:])) }

const hexDigits = "0123456789abcdef"

func appendHex(to, b []byte) []byte {
	for _, x := range b {
		to = append(to, hexDigits[x>>4], hexDigits[x&15])
	}
	return to
}

// hexBytes decodes lower-case digits; text is twice as long as to.
func hexBytes(to []byte, text string) bool {
	for i := range to {
		high, low := hexDigit(text[2*i]), hexDigit(text[2*i+1])
		if high > 15 || low > 15 {
			return false
		}
		to[i] = high<<4 | low
	}
	return true
}

func hexDigit(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	}
	return 16
}
