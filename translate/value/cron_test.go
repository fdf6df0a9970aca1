package value

import (
	"testing"
	"time"
)

func TestCron(t *testing.T) {
	now := time.Date(2026, 11, 21, 15, 30, 20, 0, time.UTC) // a Saturday
	for text, want := range map[string]string{
		"* * * * *":              "2026-11-21T15:31:00Z",
		"*/5 * * * *":            "2026-11-21T15:35:00Z",
		"0 9-17/4 * * mon-fri":   "2026-11-23T09:00:00Z",
		"15,45 3 * * *":          "2026-11-22T03:15:00Z",
		"0 0 13 * 5":             "2026-11-27T00:00:00Z", // a 13th or a Friday
		"0 0 29 2 *":             "2028-02-29T00:00:00Z",
		"@daily":                 "2026-11-22T00:00:00Z",
		"@hourly":                "2026-11-21T16:00:00Z",
		"@Monthly":               "2026-12-01T00:00:00Z",
		"@teatime":               "2026-11-21T16:00:00Z",
		"0 12 * jan 7":           "2027-01-03T12:00:00Z",
		"  30   15   21 11   * ": "2027-11-21T15:30:00Z",
		"10/20 * * * *":          "2026-11-21T15:50:00Z",
		"0 0 31 2 *":             "0001-01-01T00:00:00Z",
	} {
		c, err := ParseCron(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if got := c.Next(now).Format(time.RFC3339); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	for _, text := range []string{
		"", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 8", "5-1 * * * *",
		"*/0 * * * *", "a * * * *", "+1 * * * *", "@never", "1,,2 * * * *", "-5 * * * *",
	} {
		if _, err := ParseCron(text); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}
