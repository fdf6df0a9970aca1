package sacctmgr

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/berth-hpc/berth/internal/keyvalue"
	"github.com/berth-hpc/berth/translate/status"
)

var reservationColumns = []column{
	col(10, "Cluster"), col(15, "Name"), col(30, "TRES"), col(19, "TimeStart", "Start"), col(19, "TimeEnd", "End"),
	col(10, "UnusedWall"), col(20, "Flags"), col(6, "ID"),
}

// shownReservations is how far back the list of reservations reaches.
const shownReservations = 24 * time.Hour

// showReservations prints the reservations of the last day, also deleted ones.
func (o *Options) showReservations(ctx context.Context, words []string) error {
	l := &listing{}
	for _, p := range keyvalue.ParseAll(words) {
		if known, err := listingWords.Set(l, p); err != nil || !known || p.Key == "" {
			if err == nil {
				err = refusef(" Unknown condition: %s\n Use keyword 'set' to modify value", p.Text)
			}
			return o.explain(err)
		}
	}
	names := "Cluster,Name,TRES,TimeStart,TimeEnd,UnusedWall"
	if l.format != "" {
		names = l.format
	}
	selected, err := selectColumns(reservationColumns, names)
	if err != nil {
		return o.explain(err)
	}
	server, err := o.server()
	if err != nil {
		return err
	}
	start, end := o.p.Now().Add(-shownReservations).Unix(), o.p.Now().Unix()
	list, err := server.Usage(ctx, &status.UsageQuery{Start: start, End: end, Reservations: true})
	if err != nil {
		return err
	}
	jobs, err := server.Records(ctx, &status.RecordQuery{Start: start, End: end, Duplicates: true, NoSteps: true})
	if err != nil {
		return err
	}
	var rows []row
	for i := range list.Reservations {
		r := &list.Reservations[i]
		if !matches(l.names, r.Name) {
			continue
		}
		rows = append(rows, row{values: map[string]string{
			"Cluster": list.Cluster, "Name": r.Name, "TRES": fmt.Sprintf("cpu=%d", r.CPUs),
			"TimeStart": o.formatTime(r.Start), "TimeEnd": o.formatTime(r.End),
			"UnusedWall": strconv.FormatFloat(unusedWall(r, jobs.Items, end), 'f', 6, 64),
			"Flags":      strings.Join(r.Flags, ","),
		}})
	}
	return o.print(selected, rows)
}

// unusedWall returns the seconds of the reservation's time up to now that its jobs did not
// use, with the weight of its CPUs.
func unusedWall(r *status.Reservation, jobs []status.Record, now int64) float64 {
	end := min(r.End, now)
	unused := float64(max(0, end-r.Start))
	for i := range jobs {
		j := &jobs[i]
		if j.Reservation != r.Name || j.Start == 0 || r.CPUs == 0 {
			continue
		}
		ended := j.End
		if ended == 0 {
			ended = now
		}
		ran := max(0, min(ended, end)-max(j.Start, r.Start)-j.Suspended)
		unused -= float64(ran*cpusOfTRES(j.AllocTRES)) / float64(r.CPUs)
	}
	return max(0, unused)
}

// cpusOfTRES returns the number of CPUs in a list of TRES such as cpu=1,mem=100M.
func cpusOfTRES(tres string) int64 {
	for part := range strings.SplitSeq(tres, ",") {
		if text, ok := strings.CutPrefix(part, "cpu="); ok {
			n, err := strconv.ParseInt(text, 10, 64)
			if err == nil {
				return n
			}
		}
	}
	return 0
}
