package table_test

import (
	"slices"
	"testing"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/queue/table"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/value"
)

// intervals parses a list of tasks.
func intervals(t *testing.T, text string) value.Intervals {
	t.Helper()
	set, err := value.ArrayIntervals(text)
	if err != nil {
		t.Fatal(err)
	}
	return set.Normalize()
}

// TestTasksOfAnArray: an id with tasks selects those that are split off, and the array's
// own row if it represents one of them. Ids of other jobs with tasks select nothing.
func TestTasksOfAnArray(t *testing.T) {
	c, tab := newTable(nil)
	task := func(id int64, index int32) *v1alpha1.BatchJob {
		return batchJob(id, "anna", func(b *v1alpha1.BatchJob) {
			b.Spec.Origin, b.Spec.Task = &v1alpha1.Origin{JobID: 10}, &v1alpha1.ArrayTask{Index: index}
		})
	}
	fake.Feed(c, batchJob(10, "anna", func(b *v1alpha1.BatchJob) { b.Spec.Job.Array = &job.Array{Spec: "1-5"} }),
		task(11, 2), task(12, 4), batchJob(20, "anna", nil))
	for name, tt := range map[string]struct {
		ids   []int64
		tasks map[int64]string
		want  []int64
	}{
		"the array":                  {[]int64{10}, nil, []int64{10, 11, 12}},
		"a task that is split off":   {[]int64{10}, map[int64]string{10: "2"}, []int64{11}},
		"a task that is not":         {[]int64{10}, map[int64]string{10: "3"}, []int64{10}},
		"some of both":               {[]int64{10}, map[int64]string{10: "4-9"}, []int64{10, 12}},
		"no task of it":              {[]int64{10}, map[int64]string{10: "7"}, []int64{}},
		"a task by its own id":       {[]int64{11}, nil, []int64{11}},
		"a task by both":             {[]int64{10, 11}, map[int64]string{10: "4"}, []int64{11, 12}},
		"the array by its own id":    {[]int64{10}, map[int64]string{10: "2"}, []int64{11}},
		"a task of a job":            {[]int64{20}, map[int64]string{20: "2"}, []int64{}},
		"a task of a task":           {[]int64{11}, map[int64]string{11: "2"}, []int64{11}},
		"another job and its number": {[]int64{20, 99}, nil, []int64{20}},
	} {
		q := table.Query{IDs: tt.ids, Tasks: map[int64]value.Intervals{}}
		for id, text := range tt.tasks {
			q.Tasks[id] = intervals(t, text)
		}
		if got := numbers(tab.Select(t.Context(), q)); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
	if got := tab.Get(10).ArrayTaskID; got != "1,3,5" {
		t.Errorf("the array represents %q", got)
	}
	if n := tab.Count(v1alpha1.StatePending) + tab.Count(""); n != 6 {
		t.Errorf("%d jobs are pending, want three tasks of the array, two that are split off, and one job", n)
	}
}

// TestComponents: the id of a heterogeneous job selects its components, and a component's
// id only that one, and only as a component of its own job.
func TestComponents(t *testing.T) {
	c, tab := newTable(nil)
	component := func(id int64, offset int32) *v1alpha1.BatchJob {
		return batchJob(id, "anna", func(b *v1alpha1.BatchJob) {
			b.Spec.Job.Het = &job.Het{Offset: offset}
			if offset > 0 {
				b.Spec.Origin = &v1alpha1.Origin{JobID: 30}
			}
		})
	}
	fake.Feed(c, component(30, 0), component(31, 1), component(32, 2), batchJob(33, "anna", nil))
	for name, tt := range map[string]struct {
		ids     []int64
		leaders map[int64][]int64
		want    []int64
	}{
		"the job":              {[]int64{30}, nil, []int64{30, 31, 32}},
		"30+1":                 {[]int64{31}, map[int64][]int64{31: {30}}, []int64{31}},
		"30+3 is another job":  {[]int64{33}, map[int64][]int64{33: {30}}, []int64{}},
		"31+1 is none":         {[]int64{32}, map[int64][]int64{32: {31}}, []int64{}},
		"31+1 and 30+2":        {[]int64{32}, map[int64][]int64{32: {31, 30}}, []int64{32}},
		"31 by its own number": {[]int64{31}, nil, []int64{31}},
	} {
		q := table.Query{IDs: tt.ids, Leaders: tt.leaders}
		if got := numbers(tab.Select(t.Context(), q)); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

// TestRareFilters: reservation, wckey, licenses, and partitions that are hidden.
func TestRareFilters(t *testing.T) {
	c, tab := newTable(nil)
	fake.Feed(c,
		batchJob(1, "anna", func(b *v1alpha1.BatchJob) {
			b.Spec.Job.Licenses = []job.License{{Name: "matlab", Count: 2}, {Name: "ansys@lic", Count: 1}}
			b.Spec.Job.WCKey = "w"
		}),
		batchJob(2, "anna", func(b *v1alpha1.BatchJob) { b.Spec.Job.Reservation, b.Spec.Job.WCKey = "res", "*w" }),
		batchJob(3, "anna", func(b *v1alpha1.BatchJob) {
			b.Spec.Partition, b.Spec.Job.Partitions = "secret", []string{"secret", "main"}
		}),
		batchJob(4, "anna", func(b *v1alpha1.BatchJob) { b.Spec.Partition = "secret" }),
	)
	for name, tt := range map[string]struct {
		extra table.Extra
		want  []int64
	}{
		"none":                      {table.Extra{}, []int64{1, 2, 3, 4}},
		"license":                   {table.Extra{Licenses: []string{"matlab"}}, []int64{1}},
		"license of a server":       {table.Extra{Licenses: []string{"ansys@lic"}}, []int64{1}},
		"start of a license":        {table.Extra{Licenses: []string{"mat", "ansys"}}, []int64{}},
		"reservation":               {table.Extra{Reservations: []string{"res", "x"}}, []int64{2}},
		"wckey":                     {table.Extra{WCKeys: []string{"w"}}, []int64{1}},
		"hidden":                    {table.Extra{Hidden: []string{"secret"}}, []int64{1, 2, 3}},
		"license and reservation":   {table.Extra{Licenses: []string{"matlab"}, Reservations: []string{"res"}}, []int64{}},
		"every partition is hidden": {table.Extra{Hidden: []string{"secret", "main"}}, []int64{}},
	} {
		q := table.Query{Extra: &tt.extra}
		if got := numbers(tab.Select(t.Context(), q)); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
		f := q.Filter()
		for id := range int64(5) {
			if r := tab.Get(id); r != nil && f.Pass(r) != slices.Contains(tt.want, id) {
				t.Errorf("%s: job %d passes: %v", name, id, f.Pass(r))
			}
		}
	}
	if f := (&table.Query{IDs: []int64{1}}).Filter(); f.Pass(tab.Get(2)) || !f.Pass(tab.Get(1)) {
		t.Error("a filter by id")
	}
}
