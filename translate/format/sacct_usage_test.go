package format

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/status"
)

// measuredStep is a step of four tasks on two nodes, with the amounts that Slurm 22.05.8
// measured.
func measuredStep() *wire.StepRecord {
	measure := func(total int64, most, least wire.Extreme) wire.Measure {
		return wire.Measure{Total: total, Max: most, Min: least}
	}
	return &wire.StepRecord{
		ID: 0, Nodes: []string{"n1", "n2"}, Tasks: 4, State: "RUNNING", Start: 1e9,
		Usage: wire.Usage{
			UserCPU: 5_901_033, SystemCPU: 85_024,
			CPU:       measure(5_910_000, wire.Extreme{Amount: 3_000_000, Node: 1, Task: 3}, wire.Extreme{}),
			RSS:       measure(36016128, wire.Extreme{Amount: 13950976, Node: 1, Task: 3}, wire.Extreme{Amount: 3194880}),
			VMSize:    measure(49688576, wire.Extreme{Amount: 17694720, Node: 1, Task: 3}, wire.Extreme{Amount: 5644288}),
			DiskRead:  measure(48806260, wire.Extreme{Amount: 24347293, Node: 1, Task: 3}, wire.Extreme{Amount: 55837}),
			DiskWrite: measure(30819524, wire.Extreme{Amount: 15366993, Node: 1, Task: 3}, wire.Extreme{Amount: 10001}),
		},
	}
}

// The values are those of sacct and sstat 22.05.8 for the same step.
func TestUsageOfAStep(t *testing.T) {
	row := ReportedStep(measuredStep())
	for _, tt := range []struct{ fields, sacct, sstat string }{
		{"MaxVMSize,MaxVMSizeNode,MaxVMSizeTask,AveVMSize", "17280K|n2|3|12131K", ""},
		{"MaxRSS,MaxRSSNode,MaxRSSTask,AveRSS", "13624K|n2|3|8793K", ""},
		{"MaxPages,MaxPagesNode,MaxPagesTask,AvePages", "0|n1|0|0", ""},
		{"MinCPU,MinCPUNode,MinCPUTask,AveCPU", "00:00:00|n1|0|00:00:01", ""},
		{"MaxDiskRead,MaxDiskReadNode,MaxDiskReadTask,AveDiskRead", "23.22M|n2|3|11.64M", "24347293|n2|3|12201565"},
		{"MaxDiskWrite,MaxDiskWriteNode,MaxDiskWriteTask,AveDiskWrite", "14.66M|n2|3|7.35M", "15366993|n2|3|7704881"},
		{"TRESUsageInAve", "cpu=00:00:01,energy=0,fs/disk=12201565,mem=8793K,pages=0,vmem=12131K", ""},
		{"TRESUsageInMax", "cpu=00:00:03,energy=0,fs/disk=24347293,mem=13624K,pages=0,vmem=17280K", ""},
		{"TRESUsageInMaxNode", "cpu=n2,energy=n1,fs/disk=n2,mem=n2,pages=n1,vmem=n2", ""},
		{
			"TRESUsageInMaxTask", "cpu=3,fs/disk=3,mem=3,pages=0,vmem=3",
			"cpu=00:00:00,fs/disk=3,mem=3,pages=0,vmem=3",
		},
		{"TRESUsageInMin", "cpu=00:00:00,energy=0,fs/disk=55837,mem=3120K,pages=0,vmem=5512K", ""},
		{"TRESUsageInMinNode", "cpu=n1,energy=n1,fs/disk=n1,mem=n1,pages=n1,vmem=n1", ""},
		{
			"TRESUsageInMinTask", "cpu=0,fs/disk=0,mem=0,pages=0,vmem=0",
			"cpu=00:00:00,fs/disk=0,mem=0,pages=0,vmem=0",
		},
		{"TRESUsageInTot", "cpu=00:00:05,energy=0,fs/disk=48806260,mem=35172K,pages=0,vmem=48524K", ""},
		{"TRESUsageOutAve,TRESUsageOutMax", "energy=0,fs/disk=7704881|energy=0,fs/disk=15366993", ""},
		{"TRESUsageOutMaxNode,TRESUsageOutMaxTask", "energy=n1,fs/disk=n2|fs/disk=3", ""},
		{"TRESUsageOutMin,TRESUsageOutMinNode", "energy=0,fs/disk=10001|energy=n1,fs/disk=n1", ""},
		{"TRESUsageOutMinTask,TRESUsageOutTot", "fs/disk=0|energy=0,fs/disk=30819524", ""},
		{"ConsumedEnergy,ConsumedEnergyRaw,ReqCPUFreqMin", "0|0|Unknown", ""},
	} {
		if tt.sstat == "" {
			tt.sstat = tt.sacct
		}
		for _, sstat := range []bool{false, true} {
			want := map[bool]string{false: tt.sacct, true: tt.sstat}[sstat]
			if got := acctValues(&row, tt.fields, &AcctSettings{Sstat: sstat}); got != want {
				t.Errorf("%s (sstat: %t):\ngot  %s\nwant %s", tt.fields, sstat, got, want)
			}
		}
	}
}

func acctValues(p *status.StepRecord, fields string, s *AcctSettings) string {
	var values []string
	for name := range strings.SplitSeq(fields, ",") {
		values = append(values, AcctValue(name, &AcctRow{Job: &status.Record{}, Step: p}, s))
	}
	return strings.Join(values, "|")
}

// In Slurm 22.05.8, a step that ended before it was measured has only energy, and one that
// runs nothing.
func TestUsageThatWasNotMeasured(t *testing.T) {
	const fields = "TRESUsageInAve,TRESUsageInTot,TRESUsageOutAve,TRESUsageOutTot,TRESUsageInMax,MaxRSS,AveCPU"
	for end, want := range map[int64]string{5: "energy=0|energy=0|energy=0|energy=0|||", 0: "||||||"} {
		if got := acctValues(&status.StepRecord{Step: "0", End: end}, fields, &AcctSettings{}); got != want {
			t.Errorf("end %d: %s, want %s", end, got, want)
		}
	}
}

// The amounts are those of a step with one task in Slurm 22.05.8: MaxDiskWrite, and the disk in
// TRESUsageOutMax.
func TestAmountsOfDiskTraffic(t *testing.T) {
	for _, tt := range []struct {
		bytes        int64
		settings     AcctSettings
		column, list string
	}{
		{0, AcctSettings{}, "0", "0"},
		{1, AcctSettings{}, "0.00M", "1"},
		{28309, AcctSettings{}, "0.03M", "28309"},
		{1 << 20, AcctSettings{}, "1.00M", "1M"},
		{1<<20 + 1, AcctSettings{}, "1.00M", "1048577"},
		{10 << 20, AcctSettings{}, "10M", "10M"},
		{4195840, AcctSettings{}, "4.00M", "4097.50K"},
		{5767168, AcctSettings{}, "5.50M", "5.50M"},
		{1<<30 + 1, AcctSettings{}, "1.00G", "1073741825"},
		{1<<30 + 1, AcctSettings{Settings: Settings{NoConvert: true}}, "1024.00M", "1073741825"},
		{6 << 20, AcctSettings{Settings: Settings{NoConvert: true}}, "6M", "6291456"},
		{131073, AcctSettings{Unit: 'K'}, "0.13M", "128.00K"},
		{4196352, AcctSettings{Unit: 'K'}, "4098K", "4098K"},
		{4195303, AcctSettings{Unit: 'K'}, "4096.98K", "4096.98K"},
		{1<<30 + 1, AcctSettings{Unit: 'G'}, "1.00G", "1.00G"},
		{10 << 20, AcctSettings{Unit: 'G', Settings: Settings{NoConvert: true}}, "0.01G", "0.01G"},
		{0, AcctSettings{Sstat: true}, "0", "0"},
		{1, AcctSettings{Sstat: true}, "1.00M", "1"},
		{1, AcctSettings{Sstat: true, Settings: Settings{NoConvert: true}}, "1.00M", "1"},
		{2, AcctSettings{Sstat: true}, "2", "2"},
		{512, AcctSettings{Sstat: true}, "512", "512"},
		{1024, AcctSettings{Sstat: true}, "1K", "1K"},
		{1536, AcctSettings{Sstat: true}, "1.50K", "1.50K"},
		{1536, AcctSettings{Sstat: true, Settings: Settings{NoConvert: true}}, "1536", "1536"},
		{1 << 20, AcctSettings{Sstat: true}, "1M", "1M"},
		{15366993, AcctSettings{Sstat: true}, "15366993", "15366993"},
	} {
		at := status.Extreme{Amount: tt.bytes}
		p := &status.StepRecord{
			Tasks: 1, Nodes: 1, NodeList: "n1", Measured: true,
			DiskWrite: status.Measure{Total: tt.bytes, Max: at, Min: at},
		}
		want := tt.column + "|" + tt.column + "|energy=0,fs/disk=" + tt.list
		if got := acctValues(p, "MaxDiskWrite,AveDiskWrite,TRESUsageOutMax", &tt.settings); got != want {
			t.Errorf("%d with %+v: %s, want %s", tt.bytes, tt.settings, got, want)
		}
	}
}

// The amounts are those of sacct 22.05.8.
func TestAmountsOfMemory(t *testing.T) {
	for _, tt := range []struct {
		bytes    int64
		settings AcctSettings
		want     string
	}{
		{5401258, AcctSettings{}, "5401258"}, // an average of three tasks
		{9482240, AcctSettings{}, "9260K"},
		{9482240, AcctSettings{Settings: Settings{NoConvert: true}}, "9482240"},
		{5401258, AcctSettings{Unit: 'K'}, "5274.67K"},
		{9482240, AcctSettings{Unit: 'M'}, "9.04M"},
		{200916992, AcctSettings{Unit: 'G'}, "0.19G"},
	} {
		p := &status.StepRecord{Measured: true, RSS: status.Measure{Max: status.Extreme{Amount: tt.bytes}}}
		if got := acctValues(p, "MaxRSS", &tt.settings); got != tt.want {
			t.Errorf("%d with %+v: %s, want %s", tt.bytes, tt.settings, got, tt.want)
		}
	}
	if got := memText(1536, &AcctSettings{}); got != "1.50G" {
		t.Errorf("1536 MiB are %s", got)
	}
}

// The entries are those of sacct --json 22.05.8 for the same step.
func TestDocumentOfUsage(t *testing.T) {
	row := ReportedStep(measuredStep())
	row.End = 26
	d := &acctDoc{}
	for _, tt := range []struct {
		list []usedTRES
		want string
	}{
		{tresIn, `{"max":[{"type":"cpu","name":null,"id":1,"count":3000,"task":3,"node":"n2"},` +
			`{"type":"mem","name":null,"id":2,"count":13950976,"task":3,"node":"n2"},` +
			`{"type":"energy","name":null,"id":3,"count":0,"task":0,"node":"n1"},` +
			`{"type":"fs","name":"disk","id":6,"count":24347293,"task":3,"node":"n2"},` +
			`{"type":"vmem","name":null,"id":7,"count":17694720,"task":3,"node":"n2"},`},
		{tresOut, `{"max":[{"type":"energy","name":null,"id":3,"count":0,"task":0,"node":"n1"},` +
			`{"type":"fs","name":"disk","id":6,"count":15366993,"task":3,"node":"n2"}],` +
			`"min":[{"type":"energy","name":null,"id":3,"count":0,"task":0,"node":"n1"},` +
			`{"type":"fs","name":"disk","id":6,"count":10001,"task":0,"node":"n1"}],` +
			`"average":[{"type":"energy","name":null,"id":3,"count":0},` +
			`{"type":"fs","name":"disk","id":6,"count":7704881}],` +
			`"total":[{"type":"energy","name":null,"id":3,"count":0},` +
			`{"type":"fs","name":"disk","id":6,"count":30819524}]}`},
	} {
		got, err := json.Marshal(d.usageObject(&row, tt.list))
		if err != nil || !strings.HasPrefix(string(got), tt.want) {
			t.Errorf("%v\ngot  %s\nwant %s", err, got, tt.want)
		}
	}
}
