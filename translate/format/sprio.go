package format

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/berth-hpc/berth/translate/status"
)

// The parts of sprio's formats: the job, columns that options add, and the factors, with
// -l, -n, and both.
const (
	PriorityJob      = "%.15i %9r"
	PriorityCluster  = " %.8c"
	PriorityUser     = " %.8u"
	PriorityLong     = " %.10Y %.10S %.10A %.10B %.10F %.10J %.10P %.10Q %.11N %.20T"
	PriorityNorm     = " %10y %10a %10f %10j %10p %10q"
	PriorityLongNorm = " %10y %10a %10b %10f %10j %10p %10q %20t"
)

// PriorityFactors returns the columns of the factors whose weight is not 0, which sprio
// shows by default.
func PriorityFactors(list *status.PriorityList) string {
	text := " %.10Y %.10S"
	for _, c := range []struct{ weight, letter string }{
		{"age", "A"}, {"assoc", "B"}, {"fairshare", "F"}, {"jobsize", "J"}, {"partition", "P"}, {"qos", "Q"},
	} {
		if list.Weights[c.weight] != 0 {
			text += " %.10" + c.letter
		}
	}
	if len(list.WeightTRES) > 0 {
		text += " %.20T"
	}
	return text
}

type priorityColumn = Column[status.Priority]

// PriorityColumns are the columns of sprio.
var PriorityColumns = sync.OnceValue(func() []Column[status.Priority] {
	return slices.Concat(identityColumns(), factorColumns())
})

func identityColumns() []priorityColumn {
	col := func(letter byte, header string, get func(p *status.Priority) string) priorityColumn {
		return priorityColumn{Letter: letter, Header: header,
			Append: func(b []byte, p *status.Priority, _ *Settings) []byte { return append(b, get(p)...) }}
	}
	return []priorityColumn{
		col('i', "JOBID", PriorityID),
		col('r', "PARTITION", func(p *status.Priority) string { return p.Partition }),
		col('u', "USER", func(p *status.Priority) string { return p.User }),
		{Letter: 'c', Header: "CLUSTER", Append: func(b []byte, _ *status.Priority, s *Settings) []byte {
			return appendOr(b, s.Cluster, "(null)")
		}},
		col('Y', "PRIORITY", func(p *status.Priority) string { return itoa(p.Priority) }),
		col('y', "PRIORITY", func(p *status.Priority) string {
			return strconv.FormatFloat(float64(p.Priority)/math.MaxUint32, 'f', 14, 64)
		}),
		col('S', "SITE", func(p *status.Priority) string { return itoa(p.Site) }),
		col('N', "NICE", func(p *status.Priority) string { return itoa(p.Nice) }),
		col('t', "TRES", func(p *status.Priority) string { return tresFactors(p, false) }),
		col('T', "TRES", func(p *status.Priority) string { return tresFactors(p, true) }),
	}
}

func factorColumns() []priorityColumn {
	var out []priorityColumn
	for _, f := range []struct {
		norm, weighted byte
		header         string
		get            func(p *status.Priority) *status.Factor
	}{
		{'a', 'A', "AGE", func(p *status.Priority) *status.Factor { return &p.Age }},
		{'b', 'B', "ASSOC", func(p *status.Priority) *status.Factor { return &p.Assoc }},
		{'f', 'F', "FAIRSHARE", func(p *status.Priority) *status.Factor { return &p.FairShare }},
		{'j', 'J', "JOBSIZE", func(p *status.Priority) *status.Factor { return &p.JobSize }},
		{'p', 'P', "PARTITION", func(p *status.Priority) *status.Factor { return &p.Part }},
		{'q', 'Q', "QOS", func(p *status.Priority) *status.Factor { return &p.QOSTerm }},
	} {
		out = append(
			out,
			priorityColumn{
				Letter: f.norm,
				Header: f.header,
				Append: func(b []byte, p *status.Priority, _ *Settings) []byte {
					return strconv.AppendFloat(b, f.get(p).Normalized, 'f', 7, 64)
				},
			},
			priorityColumn{
				Letter: f.weighted,
				Header: f.header,
				Append: func(b []byte, p *status.Priority, _ *Settings) []byte {
					return appendInt(b, int64(f.get(p).Weighted))
				},
			},
		)
	}
	return out
}

// tresFactors returns the factors of the TRES: cpu=12,mem=3.
func tresFactors(p *status.Priority, weighted bool) string {
	names := make([]string, 0, len(p.TRES))
	for n := range p.TRES {
		names = append(names, n)
	}
	slices.Sort(names)
	for i, n := range names {
		v := strconv.FormatFloat(p.TRES[n].Normalized, 'f', 2, 64)
		if weighted {
			v = itoa(int64(p.TRES[n].Weighted))
		}
		names[i] = n + "=" + v
	}
	return strings.Join(names, ",")
}

// PriorityID returns the job's id as sprio shows it.
func PriorityID(p *status.Priority) string { return itoa(p.ID) }

// AppendWeights appends the line of sprio -w with the weights of the factors. With normalized
// priorities (-n), Slurm prints nothing about weights of TRES that are not set.
func AppendWeights(b []byte, l Layout[status.Priority], list *status.PriorityList, normalized bool) []byte {
	names := map[string]string{
		"AGE": "age", "ASSOC": "assoc", "FAIRSHARE": "fairshare", "JOBSIZE": "jobsize", "QOS": "qos",
	}
	for i := range l {
		c := &l[i]
		if c.Column != nil {
			text := ""
			switch name := names[c.Column.Header]; {
			case c.Column.Letter == 'i':
				text = "Weights"
			case c.Column.Letter == 'S':
				text = "1"
			case c.Column.Letter == 'p' || c.Column.Letter == 'P':
				text = itoa(int64(list.Weights["partition"]))
			case c.Column.Header == "TRES" && len(list.WeightTRES) == 0:
				text = "(null)"
				if normalized {
					text = "" // in another form of the line
				}
			case name != "":
				text = itoa(int64(list.Weights[name]))
			}
			start := len(b)
			b = append(b, text...)
			b = fit(b, start, c.Width, c.Right)
		}
		b = append(b, c.Text...)
	}
	return append(b, '\n')
}
