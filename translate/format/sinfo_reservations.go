package format

import (
	"fmt"

	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/status"
)

// AppendReservations appends the output of sinfo -T.
func AppendReservations(b []byte, list []status.Reservation, noHeader bool, s *Settings) []byte {
	if len(list) == 0 {
		return append(b, "No reservations in the system\n"...)
	}
	const line = "%-*s  %8s  %19s  %19s  %11s  %s\n"
	width := len("RESV_NAME")
	for i := range list {
		width = max(width, len(printable.Escape(list[i].Name)))
	}
	if !noHeader {
		b = fmt.Appendf(b, line, width, "RESV_NAME", "STATE", "START_TIME", "END_TIME", "DURATION", "NODELIST")
	}
	for i := range list {
		v := &list[i]
		b = fmt.Appendf(b, line, width, printable.Escape(v.Name), v.State, instantText(v.Start, "Unknown", s),
			instantText(v.End, "Unknown", s), longDuration(max(0, v.End-v.Start)), hostlist.Fold(v.Nodes))
	}
	return b
}
