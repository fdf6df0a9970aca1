package format

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/status"
)

// ReservationRecord describes a reservation as scontrol show reservation does.
func ReservationRecord(v *status.Reservation, s *Settings) *Record {
	r := new(Record)
	r.line(pair("ReservationName", v.Name), "StartTime="+instantText(v.Start, "Unknown", s), "EndTime="+instantText(v.End, "Unknown", s),
		"Duration="+long(max(0, v.End-v.Start)))
	r.line("Nodes="+null(hostlist.Fold(v.Nodes)), "NodeCnt="+itoa(int32(len(v.Nodes))), "CoreCnt="+itoa(v.CPUs), pair("Features", null(v.Features)),
		pair("PartitionName", null(v.Partition)), "Flags="+Escape(strings.Join(shownFlags(v), ",")))
	for _, c := range v.Cores {
		r.line("  NodeName="+c.Node, pair("CoreIDs", c.IDs))
	}
	r.line(pair("TRES", null(cmp.Or(v.TRES, "cpu="+itoa(v.CPUs)))))
	r.line(pair("Users", null(strings.Join(v.Users, ","))), pair("Groups", null(strings.Join(v.Groups, ","))), pair("Accounts", null(strings.Join(v.Accounts, ","))),
		pair("Licenses", null(v.Licenses)), "State="+v.State, "BurstBuffer=(null)", "Watts=n/a")
	delay := "(null)"
	if v.MaxStartIn > 0 {
		delay = long(int64(v.MaxStartIn))
	}
	r.line("MaxStartDelay=" + delay)
	return r
}

// shownFlags are the reservation's flags as scontrol shows them.
func shownFlags(v *status.Reservation) []string {
	out := slices.Clone(v.Flags)
	for i, f := range out {
		switch {
		case f == "STATIC_ALLOC":
			out[i] = "STATIC"
		case f == "PURGE_COMP" && v.PurgeComp > 0:
			out[i] = "PURGE_COMP=" + long(int64(v.PurgeComp))
		}
	}
	return out
}

// LicenseRecord describes a licence as scontrol show licenses does.
func LicenseRecord(l *status.License) *Record {
	r := &Record{indent: "    ", tight: true}
	r.line(pair("LicenseName", l.Name))
	r.line("Total="+itoa(l.Total), "Used="+itoa(l.Used), "Free="+itoa(max(0, l.Total-l.Used)), "Reserved="+itoa(l.Reserved), "Remote=no")
	return r
}

// AppendReservations adds what sinfo -T prints.
func AppendReservations(b []byte, list []status.Reservation, noHeader bool, s *Settings) []byte {
	if len(list) == 0 {
		return append(b, "No reservations in the system\n"...)
	}
	width := len("RESV_NAME")
	for i := range list {
		width = max(width, len(Escape(list[i].Name)))
	}
	if !noHeader {
		b = fmt.Appendf(b, "%-*s  %8s  %19s  %19s  %11s  %s\n", width, "RESV_NAME", "STATE", "START_TIME", "END_TIME", "DURATION", "NODELIST")
	}
	for i := range list {
		v := &list[i]
		b = fmt.Appendf(b, "%-*s  %8s  %19s  %19s  %11s  %s\n", width, Escape(v.Name), v.State, instantText(v.Start, "Unknown", s), instantText(v.End, "Unknown", s),
			long(max(0, v.End-v.Start)), hostlist.Fold(v.Nodes))
	}
	return b
}
