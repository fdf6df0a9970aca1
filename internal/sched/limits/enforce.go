package limits

import "slices"

// Enforcement is what of accounts and QOS is enforced (slurm.conf(5),
// AccountingStorageEnforce).
type Enforcement struct {
	// Associations: jobs must run in an account that their user belongs to.
	Associations bool
	// Limits: the limits of associations and QOS are enforced. Safe: a job starts
	// only if the limits of TRES minutes let it run until its time limit.
	Limits, Safe bool
	// QOS: jobs must run in a QOS that their association lists.
	QOS bool
	// WCKeys: jobs must name a workload characterization key that their user has.
	WCKeys bool
}

// Enforced returns what AccountingStorageEnforce with these words enforces. Without words
// it is associations,limits,qos.
func Enforced(words []string) Enforcement {
	if len(words) == 0 {
		return Enforcement{Associations: true, Limits: true, QOS: true}
	}
	has := func(word string) bool { return slices.Contains(words, word) || slices.Contains(words, "all") }
	e := Enforcement{Safe: has("safe"), QOS: has("qos"), WCKeys: has("wckeys")}
	e.Limits = e.Safe || has("limits")
	e.Associations = e.Limits || e.QOS || e.WCKeys || has("associations")
	return e
}
