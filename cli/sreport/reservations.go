package sreport

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/translate/value"
)

// readReservations reads the records of the jobs that ran, and the reservations: those in
// the database, or the present ones if it has none.
func (d *data) readReservations(ctx context.Context, c Accounting, o *Options) error {
	d.reservations = d.Reservations
	if d.reservations == nil {
		list, err := c.Reservations(ctx)
		if err != nil {
			return err
		}
		d.reservations = list.Items
	}
	if len(d.reservations) == 0 {
		return nil
	}
	records, err := c.Records(
		ctx,
		&status.RecordQuery{Start: o.start.Unix(), End: o.end.Unix(), Duplicates: true, NoSteps: true},
	)
	if err == nil {
		d.records = records.Items
	}
	return err
}

// reservationUtilization reports how much of each reservation its jobs used.
func (o *Options) reservationUtilization(d *data) error {
	unit := strings.Replace(o.usageUnit(), " CPU ", " TRES ", 1)
	if err := o.printTitle("Reservation Utilization", unit, false); err != nil {
		return err
	}
	table := []format.Field{
		{Name: "Cluster", Width: 9}, {Name: "Name", Width: 9}, {Name: "Start", Width: 19}, {Name: "End", Width: 19},
		{Name: "TRES Name", Width: 14}, {Name: "Allocated", Width: 20}, {Name: "Idle", Width: 20},
	}
	var rows []map[string]string
	for i := range d.reservations {
		r := &d.reservations[i]
		seconds := overlap(r.Start, r.End, o.start, o.end)
		if seconds == 0 || len(o.reservations) > 0 && !slices.Contains(o.reservations, r.Name) {
			continue
		}
		for _, t := range o.tres {
			used := d.usedOf(r, t, o)
			total := max(reserved(r, t)*seconds, used)
			rows = append(rows, map[string]string{
				"Cluster": d.Cluster, "Name": r.Name, "Start": formatTime(r.Start), "End": formatTime(r.End),
				"TRES Name": t, "Allocated": o.unit.show(used, total), "Idle": o.unit.show(total-used, total),
			})
		}
	}
	return o.print(table, "Cluster,Name,Start,End,TRES Name,Allocated,Idle", rows)
}

// usedOf returns the TRES-seconds that jobs in the reservation used.
func (d *data) usedOf(r *status.Reservation, tres string, o *Options) int64 {
	var used int64
	for i := range d.records {
		j := &d.records[i]
		if j.Reservation != r.Name || j.Start == 0 {
			continue
		}
		end := j.End
		if end == 0 {
			end = o.p.Now().Unix()
		}
		ran := overlap(max(j.Start, r.Start), min(end, r.End), o.start, o.end)
		used += max(0, ran-j.Suspended) * amountOf(j.AllocTRES, tres)
	}
	return used
}

// reserved returns how much of a TRES the reservation holds.
func reserved(r *status.Reservation, tres string) int64 {
	switch tres {
	case "cpu":
		return max(int64(r.CPUs), amountOf(r.TRES, tres))
	case "node":
		return int64(len(r.Nodes))
	}
	return amountOf(r.TRES, tres)
}

// amountOf returns the number of a TRES in a list such as cpu=1,mem=100M.
func amountOf(list, tres string) int64 {
	for part := range strings.SplitSeq(list, ",") {
		name, n, _ := strings.Cut(part, "=")
		if name != tres {
			continue
		}
		if tres == "mem" {
			mb, _ := value.Megabytes(n)
			return mb
		}
		var sum int64
		for _, c := range n {
			if c < '0' || c > '9' {
				break
			}
			sum = sum*10 + int64(c-'0')
		}
		return sum
	}
	return 0
}

// overlap returns the number of seconds from start to end that are between from and to.
func overlap(start, end int64, from, to time.Time) int64 {
	return max(0, min(end, to.Unix())-max(start, from.Unix()))
}

func formatTime(at int64) string { return time.Unix(at, 0).Format(timeLayout) }
