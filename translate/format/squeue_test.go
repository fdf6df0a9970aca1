package format

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/translate/status"
)

// recording is the output of Slurm's squeue for a queue: the value of each column by
// letter.
type recording struct {
	Version string              `json:"version"`
	Now     int64               `json:"now"`
	Rows    []status.Job        `json:"rows"`
	Letters []map[string]string `json:"letters"`
}

func recorded(t testing.TB) *recording {
	t.Helper()
	data, err := os.ReadFile("testdata/squeue.json")
	if err != nil {
		t.Fatal(err)
	}
	r := new(recording)
	if err := json.Unmarshal(data, r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestColumnsAsSlurmPrintsThem(t *testing.T) {
	rec := recorded(t)
	s := &Settings{Now: rec.Now}
	for i := range rec.Rows {
		for letter, want := range rec.Letters[i] {
			l, bad := ParseLetters(JobColumns(), "%"+letter)
			if len(bad) > 0 {
				t.Fatalf("no column %s", letter)
			}
			got := strings.TrimSuffix(string(l.AppendRow(nil, &rec.Rows[i], s)), "\n")
			if got != want {
				t.Errorf("job %d: %%%s is %q, Slurm prints %q", rec.Rows[i].ID, letter, got, want)
			}
		}
	}
}

func TestDefaultListing(t *testing.T) {
	rec := recorded(t)
	// The order of equal jobs is not defined in Slurm. 1286 was the first.
	for i := range rec.Rows {
		if rec.Rows[i].ID == 1286 {
			rec.Rows[i].Priority++
		}
	}
	for _, tt := range []struct{ format, order, file string }{
		{JobDefault, JobOrder, "squeue.txt"},
		{JobLong, JobOrder, "squeue-l.txt"},
	} {
		want, err := os.ReadFile("testdata/" + tt.file)
		if err != nil {
			t.Fatal(err)
		}
		l, _ := ParseLetters(JobColumns(), tt.format)
		got := l.AppendHeader(nil)
		// The recording was made 25 s before that of the columns.
		for _, row := range SortJobs(rec.Rows, tt.order) {
			got = l.AppendRow(got, row, &Settings{Now: rec.Now - 25})
		}
		if string(got) != string(want) {
			t.Errorf("%s:\n%swant\n%s", tt.format, got, want)
		}
	}
}

func TestFormatErrorsStayAsText(t *testing.T) {
	row := &status.Job{ID: 1278, Name: "longrun", User: "refuser", Partition: "debug"}
	for _, tt := range []struct {
		format, want string
		bad          []string
	}{
		{"[%.20j][%20j][%.3j][%3j][%j%u][%.8i %9P]",
			"[             longrun][longrun             ][lon][lon][longrunrefuser][    1278 debug    ]", nil},
		{"[%][%08i]", "[%][1278    ]", []string{"]"}},
		{"%.-10j", "%.-10j", []string{"-"}},
		{"%5.3j", "%5.3j", []string{"."}},
		{"%j%", "longrun", nil},
		{"x%", "x", nil},
		{"a%%j", "alongrun", nil},
		{"%999999999999j|", "longrun |", nil}, // as 22.05 counts, in 32 bits
		{"%5", "%5", []string{""}},
		{"abc", "abc", nil},
	} {
		l, bad := ParseLetters(JobColumns(), tt.format)
		if got := string(l.AppendRow(nil, row, &Settings{})); got != tt.want+"\n" || !slices.Equal(bad, tt.bad) {
			t.Errorf("%q: %q bad %q, want %q bad %q", tt.format, got, bad, tt.want, tt.bad)
		}
	}
}

func TestNames(t *testing.T) {
	row := &status.Job{ID: 1278, Name: "longrun", State: "RUNNING"}
	for _, tt := range []struct {
		format, header, want string
		bad                  []string
	}{
		{"JobID:8|,Name:.12,State", "JOBID   |        NAMESTATE               ",
			"1278    |     longrunRUNNING             ", nil},
		{"jobid,Nosuch", "JOBID               ", "1278                ", []string{"Nosuch"}},
		{"JobID:3xy", "JOBxy", "127xy", nil},
		{"JobID:|,Name:", "JOBID|NAME", "1278|longrun", nil},
		{"JobID:0", "JOBID", "1278", nil},
		{"JobID:-3,Name:.-1x", "JOBID NAME x", "1278 longrun x", nil},
		{"Name:+3,JobID:999999999999", "NAMJOBID ", "lon1278 ", nil},
	} {
		l, bad := ParseNames(JobColumns(), tt.format)
		header, got := string(l.AppendHeader(nil)), string(l.AppendRow(nil, row, &Settings{}))
		if header != tt.header+"\n" || got != tt.want+"\n" || !slices.Equal(bad, tt.bad) {
			t.Errorf("%q: %q %q %q", tt.format, header, got, bad)
		}
	}
}

func TestExpandArrays(t *testing.T) {
	rows := ExpandArrays([]status.Job{
		{ID: 7, ArrayJobID: 7, ArrayTaskID: "0-9:3%2"}, {ID: 9}, {ID: 10, ArrayJobID: 7, ArrayTaskID: "12"},
	})
	var got []string
	for i := range rows {
		got = append(got, JobID(&rows[i]))
	}
	want := []string{"7_0", "7_3", "7_6", "7_9", "9", "7_12"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestSortPutsJobsWithoutStartLast(t *testing.T) {
	rows := []status.Job{{ID: 1}, {ID: 2, Start: 20}, {ID: 3, Start: 10}}
	var got []int64
	for _, r := range SortJobs(rows, JobOrderStart) {
		got = append(got, r.ID)
	}
	if want := []int64{3, 2, 1}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func BenchmarkDefaultListing10000(b *testing.B) {
	rec := recorded(b)
	rows := make([]status.Job, 10000)
	for i := range rows {
		rows[i] = rec.Rows[i%len(rec.Rows)]
		rows[i].ID += int64(i)
	}
	l, _ := ParseLetters(JobColumns(), JobDefault)
	for b.Loop() {
		var out []byte
		for _, row := range SortJobs(rows, JobOrder) {
			out = l.AppendRow(out[:0], row, &Settings{Now: rec.Now})
		}
	}
}
