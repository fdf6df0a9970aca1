package sreport

import (
	"slices"
	"strconv"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/format"
)

// utilization reports how the capacity of the cluster was used. Without events of the
// cluster in the database, it uses the present capacity.
func (o *Options) utilization(d *data) error {
	if o.tresNamed && slices.Contains(o.tres, "node") {
		return slurmerr.New(slurmerr.Fatal,
			"TRES node usage is no longer reported in the Cluster Utilization report.  Please use TRES CPU instead.")
	}
	if err := o.printTitle("Cluster Utilization", o.usageUnit(), false); err != nil {
		return err
	}
	table := []format.Field{{Name: "Cluster", Width: 9}, {Name: "TRES Name", Width: 14}}
	for _, n := range []string{"Allocated", "Down", "PLND Down", "Idle", "Planned", "Reported", "Over Comm"} {
		table = append(table, format.Field{Name: n, Width: o.amountWidth()})
	}
	table = append(table, format.Field{Name: "TRES Count", Width: 10})
	var rows []map[string]string
	for _, t := range o.tres {
		if row := o.utilizationRow(d, t); row != nil {
			rows = append(rows, row)
		}
	}
	usual := "Cluster,Allocated,Down,PLND Down,Idle,Planned,Reported"
	if o.tresGiven {
		usual = "Cluster,TRES Name,Allocated,Down,PLND Down,Idle,Planned,Reported"
	}
	return o.print(table, usual, rows)
}

// utilizationRow returns the row of a TRES, or nil if the cluster did not exist
// at the time.
func (o *Options) utilizationRow(d *data, tres string) map[string]string {
	var used, waiting int64
	for _, u := range d.Items {
		used += u.TRES[tres]
		if tres == "cpu" {
			waiting += u.Waiting
		}
	}
	total := max(d.available(tres), used)
	if total == 0 && d.available("cpu") == 0 {
		return nil
	}
	down := min(d.Down[tres], total-used)
	planned := min(waiting, total-used-down)
	return map[string]string{
		"Cluster": d.Cluster, "TRES Name": tres, "TRES Count": strconv.FormatInt(d.Capacity[tres], 10),
		"Allocated": o.unit.show(used, total),
		"Down":      o.unit.show(down, total),
		"PLND Down": o.unit.show(0, total),
		"Planned":   o.unit.show(planned, total),
		"Idle":      o.unit.show(total-used-down-planned, total),
		"Reported":  o.unit.show(total, total),
		"Over Comm": o.unit.show(0, total),
	}
}
