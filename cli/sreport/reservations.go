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

// readReservations reads the jobs that ran and, where accounting has none of
// them, the reservations there are.
func (d *data) readReservations(ctx context.Context, c Accounting, o *Options) error {
	if d.booked = d.Reservations; d.booked == nil {
		list, err := c.Reservations(ctx)
		if err != nil {
			return err
		}
		d.booked = list.Items
	}
	if len(d.booked) == 0 {
		return nil
	}
	records, err := c.Records(ctx, &status.RecordQuery{Start: o.start.Unix(), End: o.end.Unix(), Duplicates: true, NoSteps: true})
	if err == nil {
		d.records = records.Items
	}
	return err
}

// reservations reports how much of each reservation its jobs used.
func (o *Options) reservations(d *data) error {
	unit := o.usageUnit()
	unit = strings.Replace(unit, " CPU ", " TRES ", 1)
	if err := o.head("Reservation Utilization", unit, false); err != nil {
		return err
	}
	table := []format.Field{{Name: "Cluster", Width: 9}, {Name: "Name", Width: 9}, {Name: "Start", Width: 19}, {Name: "End", Width: 19},
		{Name: "TRES Name", Width: 14}, {Name: "Allocated", Width: 20}, {Name: "Idle", Width: 20}}
	var rows []map[string]string
	for i := range d.booked {
		r := &d.booked[i]
		span := overlap(r.Start, r.End, o.start, o.end)
		if span == 0 || len(o.names) > 0 && !slices.Contains(o.names, r.Name) {
			continue
		}
		for _, t := range o.tres {
			used := d.usedOf(r, t, o)
			whole := max(reserved(r, t)*span, used)
			rows = append(rows, map[string]string{
				"Cluster": d.Cluster, "Name": r.Name, "Start": instant(r.Start), "End": instant(r.End),
				"TRES Name": t, "Allocated": o.unit.show(used, whole), "Idle": o.unit.show(whole-used, whole),
			})
		}
	}
	return o.print(table, "Cluster,Name,Start,End,TRES Name,Allocated,Idle", rows)
}

// usedOf are the TRES-seconds that jobs of the reservation used.
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
		used += max(0, ran-j.Suspended) * counted(j.AllocTRES, tres)
	}
	return used
}

// reserved is how much of a TRES the reservation holds.
func reserved(r *status.Reservation, tres string) int64 {
	switch tres {
	case "cpu":
		return max(int64(r.CPUs), counted(r.TRES, tres))
	case "node":
		return int64(len(r.Nodes))
	}
	return counted(r.TRES, tres)
}

// counted is the number of a TRES in a list such as cpu=1,mem=100M.
func counted(list, tres string) int64 {
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

// overlap is how many seconds from start to end lie between from and to.
func overlap(start, end int64, from, to time.Time) int64 {
	return max(0, min(end, to.Unix())-max(start, from.Unix()))
}

func instant(at int64) string { return time.Unix(at, 0).Format("2006-01-02T15:04:05") }
