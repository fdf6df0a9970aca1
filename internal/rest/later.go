package rest

import (
	"slices"
	"strings"

	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/status"
)

// The documents of v0.0.40 and later, as far as they differ from those of 22.05 in more than
// numbers that may be unset. Their schemas are those of clients that were generated from
// the releases 23.11 to 24.11.

// The versions in which members change.
const (
	v41 = "v0.0.41"
	v42 = "v0.0.42"
)

// atLeast reports whether the document has the form of the version or a later one.
func (r *request) atLeast(version string) bool { return r.version.parser >= version }

// unset is a number without a value.
func unset() format.Object { return per("set", false, "infinite", false, "number", 0) }

// set is a number that may be unset.
func set(n any) format.Object { return per("set", true, "infinite", false, "number", n) }

// withNumbers returns v with each number, and each null in place of one, as an object that
// says whether it is set. Members with the names in plain stay numbers.
func withNumbers(v any, plain ...string) any {
	switch x := v.(type) {
	case format.Object:
		out := make(format.Object, len(x))
		for i, m := range x {
			out[i] = m
			isPlain := false
			for _, name := range plain {
				isPlain = isPlain || name == m.Name
			}
			if !isPlain {
				out[i].Value = withNumbers(m.Value, plain...)
			}
		}
		return out
	case nil:
		return unset()
	case int, int32, int64, float64, decimal:
		return set(x)
	}
	return v
}

// replace sets members of o, and adds those that it does not have. pairs are names and
// values.
func replace(o format.Object, pairs ...any) format.Object {
	for _, m := range per(pairs...) {
		found := false
		for i := range o {
			if o[i].Name == m.Name {
				o[i].Value, found = m.Value, true
			}
		}
		if !found {
			o = append(o, m)
		}
	}
	return o
}

// forms returns the list with each object in the form of the request's version.
func forms(list []any, form func(format.Object) format.Object) []any {
	for i := range list {
		if o, ok := list[i].(format.Object); ok {
			list[i] = form(o)
		}
	}
	return list
}

// member returns the value of a member of o, or nil.
func member(o format.Object, name string) any {
	for _, m := range o {
		if m.Name == name {
			return m.Value
		}
	}
	return nil
}

// textOr returns a text in which null is empty.
func textOr(v any) string {
	s, _ := v.(string)
	return s
}

// laterAssociation returns the association in the form of the request's version.
func (r *request) laterAssociation(o format.Object) format.Object {
	if !r.modern() {
		return o
	}
	id := any(0)
	if !r.atLeast(v41) {
		id = per("account", member(o, "account"), "cluster", member(o, "cluster"), "partition",
			textOr(member(o, "partition")),
			"user", textOr(member(o, "user")), "id", 0)
	}
	defaults, _ := member(o, "default").(format.Object)
	out := format.Object{{Name: "accounting", Value: []any{}}}
	for _, m := range o {
		if m.Name != "usage" {
			out = append(out, m)
		}
	}
	return replace(out,
		"comment", "", "default", per("qos", textOr(member(defaults, "qos"))), "max", withNumbers(member(o,
			"max")), "id", id,
		"is_default", member(o, "is_default") == 1, "lineage", "", "min", withNumbers(member(o, "min")),
		"parent_account", textOr(member(o, "parent_account")), "partition", textOr(member(o, "partition")),
		"priority", withNumbers(member(o, "priority")), "user", textOr(member(o, "user")),
	)
}

// laterShort returns the four members that name an association, and its id.
func laterShort(o format.Object) format.Object {
	return replace(o, "partition", textOr(member(o, "partition")), "user", textOr(member(o, "user")), "id", 0)
}

func laterShorts(v any) []any {
	list, _ := v.([]any)
	return forms(list, laterShort)
}

// laterCoordinators returns a list in which "direct" is a boolean.
func laterCoordinators(v any) []any {
	list, _ := v.([]any)
	return forms(list, func(o format.Object) format.Object { return replace(o, "direct", member(o, "direct") == 1) })
}

func (r *request) laterUser(o format.Object) format.Object {
	if !r.modern() {
		return o
	}
	defaults, _ := member(o, "default").(format.Object)
	return replace(o,
		"administrator_level", []any{textOr(member(o, "administrator_level"))},
		"associations", laterShorts(member(o, "associations")), "coordinators", laterCoordinators(member(o,
			"coordinators")),
		"default", per("account", textOr(member(defaults, "account")), "wckey", textOr(member(defaults, "wckey"))),
		"old_name", "", "wckeys", []any{},
	)
}

func (r *request) laterAccount(o format.Object) format.Object {
	if !r.modern() {
		return o
	}
	return replace(o, "associations", laterShorts(member(o, "associations")),
		"coordinators", laterCoordinators(member(o, "coordinators")))
}

func (r *request) laterQOS(o format.Object) format.Object {
	if !r.modern() {
		return o
	}
	preempt, _ := member(o, "preempt").(format.Object)
	return replace(o,
		"limits", withNumbers(member(o, "limits"), "grace_time"),
		"preempt", replace(preempt, "exempt_time", withNumbers(member(preempt, "exempt_time"))),
		"priority", withNumbers(member(o, "priority")), "usage_factor", withNumbers(member(o, "usage_factor")),
		"usage_threshold", withNumbers(member(o, "usage_threshold")),
	)
}

func (r *request) laterTRES(o format.Object) format.Object {
	if !r.modern() {
		return o
	}
	return replace(o, "name", textOr(member(o, "name")))
}

// rootAssociation returns the association of root that a cluster has.
func (r *request) rootAssociation() any {
	if !r.modern() {
		return nil
	}
	return per("account", rootAccount, "cluster", r.session.cluster, "partition", "", "user", "", "id", 1)
}

func (r *request) laterReservation(o format.Object, v *status.Reservation) format.Object {
	if !r.modern() {
		return o
	}
	var out format.Object
	for _, m := range o {
		if m.Name != "core_spec_cnt" {
			out = append(out, m)
		}
	}
	purge := unset()
	if v.PurgeComp > 0 {
		purge = set(v.PurgeComp)
	}
	return replace(out, "core_specializations", []any{}, "end_time", set(v.End), "start_time", set(v.Start),
		"purge_completed", per("time", purge), "watts", unset())
}

// laterStatistics returns the statistics of the scheduler. What Berth does not count is 0.
func (r *request) laterStatistics(o format.Object) format.Object {
	if !r.modern() {
		return o
	}
	for _, name := range []string{"req_time", "req_time_start", "job_states_ts", "bf_when_last_cycle"} {
		o = replace(o, name, withNumbers(member(o, name)))
	}
	zeros := func(names string) format.Object {
		var out format.Object
		for _, name := range strings.Fields(names) {
			out = append(out, format.Member{Name: name, Value: 0})
		}
		return out
	}
	o = replace(o, "schedule_exit",
		zeros("end_job_queue default_queue_depth max_job_start max_rpc_cnt max_sched_time licenses"),
		"bf_exit", zeros("end_job_queue bf_max_job_start bf_max_job_test bf_max_time bf_node_space_size state_changed"),
		"bf_cycle_sum", 0, "bf_last_depth", 0, "bf_last_depth_try", 0, "bf_depth_sum", 0, "bf_depth_try_sum", 0,
		"bf_queue_len_sum", 0, "bf_table_size_sum", 0)
	if !r.atLeast(v41) {
		return slices.DeleteFunc(o, func(m format.Member) bool {
			return m.Name == "bf_cycle_max" || m.Name == "bf_table_size_sum"
		})
	}
	for _, name := range []string{"rpcs_by_message_type", "rpcs_by_user"} {
		list, _ := member(o, name).([]any)
		forms(list, func(q format.Object) format.Object {
			return replace(q, "average_time", withNumbers(member(q, "average_time")))
		})
	}
	return o
}

// laterPing returns the state of the controller.
func (r *request) laterPing(o format.Object) format.Object {
	if !r.modern() {
		return o
	}
	out := per("hostname", member(o, "hostname"), "pinged", "UP", "latency", 0, "mode", "primary")
	if r.atLeast(v42) {
		out = append(out, per("responding", true, "primary", true)...)
	}
	return out
}

// withUpdate adds when the list was last updated, which later documents say.
func (r *request) withUpdate(o format.Object) format.Object {
	if r.modern() {
		o = append(o, format.Member{Name: "last_update", Value: set(r.now.Unix())})
	}
	return o
}
