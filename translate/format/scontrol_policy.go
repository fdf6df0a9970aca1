package format

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/status"
)

// ReservationRecord returns the record of a reservation in scontrol show
// reservation.
func ReservationRecord(v *status.Reservation, s *Settings) *Record {
	r := new(Record)
	r.line(pair("ReservationName", v.Name), "StartTime="+instantText(v.Start, "Unknown", s),
		"EndTime="+instantText(v.End, "Unknown", s), "Duration="+longDuration(max(0, v.End-v.Start)))
	r.line(
		"Nodes="+orNull(hostlist.Fold(v.Nodes)),
		"NodeCnt="+itoa(int32(len(v.Nodes))),
		"CoreCnt="+itoa(
			v.CPUs,
		),
		pair("Features", orNull(v.Features)),
		pair("PartitionName", orNull(v.Partition)),
		"Flags="+printable.Escape(strings.Join(shownFlags(v), ",")),
	)
	for _, c := range v.Cores {
		r.line("  NodeName="+c.Node, pair("CoreIDs", c.IDs))
	}
	r.line(pair("TRES", orNull(cmp.Or(v.TRES, "cpu="+itoa(v.CPUs)))))
	r.line(pair("Users", orNull(strings.Join(v.Users, ","))), pair("Groups", orNull(strings.Join(v.Groups, ","))),
		pair("Accounts", orNull(strings.Join(v.Accounts, ","))),
		pair("Licenses", orNull(v.Licenses)), "State="+v.State, "BurstBuffer=(null)", "Watts=n/a")
	delay := "(null)"
	if v.MaxStartIn > 0 {
		delay = longDuration(int64(v.MaxStartIn))
	}
	r.line("MaxStartDelay=" + delay)
	return r
}

// shownFlags returns the reservation's flags as scontrol shows them.
func shownFlags(v *status.Reservation) []string {
	out := slices.Clone(v.Flags)
	for i, f := range out {
		switch {
		case f == "STATIC_ALLOC":
			out[i] = "STATIC"
		case f == "PURGE_COMP" && v.PurgeComp > 0:
			out[i] = "PURGE_COMP=" + longDuration(int64(v.PurgeComp))
		}
	}
	return out
}

// SwitchRecord returns the record of a switch, or a block, in scontrol show topology.
func SwitchRecord(w *status.Switch, block bool) *Record {
	r := &Record{compact: true}
	if block {
		r.line(pair("BlockName", w.Name), pair("Nodes", w.Nodes))
		return r
	}
	words := []string{
		pair("SwitchName", w.Name), "Level=" + itoa(w.Level), "LinkSpeed=" + strconv.FormatInt(w.LinkSpeed, 10),
	}
	if w.Nodes != "" {
		words = append(words, pair("Nodes", w.Nodes))
	}
	if w.Switches != "" {
		words = append(words, pair("Switches", w.Switches))
	}
	r.line(words...)
	return r
}

// LicenseRecord returns the record of a license in scontrol show licenses.
func LicenseRecord(l *status.License) *Record {
	r := &Record{indent: "    ", compact: true}
	r.line(pair("LicenseName", l.Name))
	r.line("Total="+itoa(l.Total), "Used="+itoa(l.Used), "Free="+itoa(max(0, l.Total-l.Used)),
		"Reserved="+itoa(l.Reserved), "Remote=no")
	return r
}
