package bounds

import "fmt"

// Budget limits a quantity that is counted while a request is parsed, so that nothing is
// allocated for a request that exceeds it.
type Budget struct {
	Name string // what is counted, in the plural: "job ids in a query"
	Most int64
	Text string // Slurm's message, if it has one
}

// Check returns nil if n is within the budget, else an *Exceeded.
func (b Budget) Check(n int64) error {
	if n <= b.Most {
		return nil
	}
	return &Exceeded{Field: b.Name, Limit: fmt.Sprintf("at most %d", b.Most), Text: b.Text}
}

// Budgets of requests. They are checked before the quantity is parsed.
var (
	QueryBytes  = Budget{Name: "bytes of a query", Most: 256 << 10}
	QueryTerms  = Budget{Name: "values in a query", Most: 20_000} // over all of its lists
	Operation   = Budget{Name: "bytes of an operation", Most: 4 << 20}
	JobRefs     = Budget{Name: "jobs of an operation", Most: 100_000}
	Settings    = Budget{Name: "settings of an update", Most: 256}
	SettingText = Budget{Name: "bytes of a setting", Most: MaxDepend, Text: TooLong}

	Payload     = Budget{Name: "bytes of script and environment, compressed", Most: MaxPayload}
	Description = Budget{Name: "bytes of the job's description", Most: MaxJobBytes}
	Annotations = Budget{Name: "annotations of the job", Most: MaxAnnotations}
)

// Exceeded is the error for a value beyond a bound. Error returns Slurm's message if it
// has one, so that a command prints what Slurm's does; Detail always names the field
// and the limit.
type Exceeded struct {
	Field string // JSON path ("job.shape.tasks") or a budget's name
	Limit string // "at most 1024 bytes"
	Text  string // Slurm's message; "": it has none
}

func (e *Exceeded) Error() string {
	if e.Text != "" {
		return e.Text
	}
	return e.Detail()
}

// Detail returns the field and the limit: "spec.job.name: at most 1024 bytes".
func (e *Exceeded) Detail() string { return e.Field + ": " + e.Limit }
