package api

import (
	"fmt"
	"strings"
)

// What one request may ask for. Both bounds are far above what the commands
// send, and keep the work and memory of one request small.
const (
	maxQueryBytes = 256 << 10 // of the URL's query, as sent
	maxQueryTerms = 20_000    // values in its lists, of all parameters together
)

// checkQuery refuses a URL's query that is too long, before anything of it is
// parsed.
func checkQuery(raw string) error {
	if len(raw) > maxQueryBytes {
		return fmt.Errorf("the query has %d bytes; the limit is %d", len(raw), maxQueryBytes)
	}
	terms := strings.Count(raw, "&") + strings.Count(raw, ",") + strings.Count(raw, "%2C") + strings.Count(raw, "%2c") + strings.Count(raw, "%20") + strings.Count(raw, "+") + 1
	if terms > maxQueryTerms {
		return fmt.Errorf("the query names %d values; the limit is %d", terms, maxQueryTerms)
	}
	return nil
}
