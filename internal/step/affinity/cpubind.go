// Package affinity parses how the tasks of a step are bound to CPUs, NUMA nodes
// and GPUs (--cpu-bind, --mem-bind, --gpu-bind), and lists and masks of CPUs.
package affinity

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/translate/value"
)

// CPUBind is the parsed value of --cpu-bind.
type CPUBind struct {
	Verbose bool   `json:"verbose,omitempty"`
	Kind    string `json:"kind,omitempty"` // Auto, ...
	// List contains the entries of a kind with a list, for the local tasks in
	// turn.
	List []string `json:"list,omitempty"`
	// OneThread uses only one thread of each core.
	OneThread bool `json:"oneThread,omitempty"`
}

// Kinds of CPUBind, in the words of --cpu-bind.
const (
	Auto       = ""     // each task to its share of the step's CPUs
	None       = "none" // no binding
	Threads    = "threads"
	Cores      = "cores"
	Sockets    = "sockets"
	Domains    = "ldoms"     // NUMA nodes
	Rank       = "rank"      // local task i to the step's CPU i
	RankDomain = "rank_ldom" // local task i to NUMA node i
	MapCPU     = "map_cpu"   // to the listed CPUs
	MaskCPU    = "mask_cpu"  // to the listed masks
	MapDomain  = "map_ldom"  // to the listed NUMA nodes
	MaskDomain = "mask_ldom" // to the listed masks of NUMA nodes
)

// Kinds of MemBind beside None and Rank.
const (
	Local   = "local" // near the task's CPUs
	MapMem  = "map_mem"
	MaskMem = "mask_mem"
)

// cpuBindKinds maps the words of --cpu-bind to kinds.
var cpuBindKinds = map[string]string{
	"no": None, "none": None, "rank": Rank, "rank_ldom": RankDomain, "map_cpu": MapCPU, "mapcpu": MapCPU,
	"mask_cpu": MaskCPU, "maskcpu": MaskCPU, "map_ldom": MapDomain, "mask_ldom": MaskDomain,
	"thread": Threads, "threads": Threads, "core": Cores, "cores": Cores, "socket": Sockets, "sockets": Sockets,
	"ldom": Domains, "ldoms": Domains,
}

var errInvalid = errors.New("invalid binding")

// ParseCPUBind parses --cpu-bind (srun(1)). Callers print a message of their own for the
// error.
func ParseCPUBind(text string) (b CPUBind, err error) {
	for _, part := range value.BindWords(text) {
		name, list, hasList := strings.Cut(part, ":")
		name = strings.ToLower(name)
		switch kind, known := cpuBindKinds[name]; {
		case known:
			b.Kind, b.List = kind, nil
		case name == "v" || name == "verbose":
			b.Verbose = true
		case name == "q" || name == "quiet":
			b.Verbose = false
		case name == "one_thread":
			b.OneThread = true
		case name != "":
			return b, errInvalid
		}
		if hasList {
			if b.List, err = parseList(b.Kind, list); err != nil {
				return b, err
			}
		}
	}
	if strings.HasPrefix(b.Kind, "ma") == (len(b.List) == 0) {
		return b, errInvalid
	}
	return b, nil
}

// parseList parses the list of a kind. An entry with *N is repeated N times.
func parseList(kind, text string) ([]string, error) {
	list, err := value.BindList(kind, text)
	if err != nil {
		return nil, err
	}
	for _, item := range list {
		if strings.HasPrefix(kind, "mask") {
			_, err = ParseMask(item)
		} else {
			_, err = strconv.ParseUint(item, 10, 16)
		}
		if err != nil {
			return nil, errInvalid
		}
	}
	return list, nil
}

// Listed returns the CPUs or NUMA nodes that the list gives the local task (counted from
// 0 on its node), or nil if there is no list.
func (b *CPUBind) Listed(local int) []int { return listed(b.Kind, b.List, local) }

func listed(kind string, list []string, local int) []int {
	if len(list) == 0 {
		return nil
	}
	item := list[local%len(list)]
	if strings.HasPrefix(kind, "mask") {
		ids, _ := ParseMask(item) // parseList has checked it
		return ids
	}
	n, err := strconv.ParseUint(item, 10, 16)
	if err != nil {
		return nil
	}
	return []int{int(n)}
}

// MemBind is the parsed value of --mem-bind.
type MemBind struct {
	Given   string   `json:"given,omitempty"` // the option's value; empty: not given
	Verbose bool     `json:"verbose,omitempty"`
	Prefer  bool     `json:"prefer,omitempty"`
	Sort    bool     `json:"sort,omitempty"`
	Kind    string   `json:"kind,omitempty"`
	List    []string `json:"list,omitempty"`
}

// ParseMemBind parses --mem-bind in the form in which Slurm shows it (package
// value). Callers print a message of their own for the error.
func ParseMemBind(text string) (b MemBind, err error) {
	b.Given = text
	for _, part := range value.BindWords(text) {
		name, list, hasList := strings.Cut(part, ":")
		switch name {
		case "", "unset", "quiet", "nosort":
		case "verbose":
			b.Verbose = true
		case "prefer":
			b.Prefer = true
		case "sort":
			b.Sort = true
		case None, Rank, Local, MapMem, MaskMem:
			b.Kind = name
		default:
			return b, errInvalid
		}
		if hasList {
			if b.List, err = parseList(b.Kind, list); err != nil {
				return b, err
			}
		}
	}
	return b, nil
}

// Listed returns the NUMA nodes that the list gives the local task (counted from 0 on its
// node), or nil if there is no list.
func (b *MemBind) Listed(local int) []int { return listed(b.Kind, b.List, local) }

// ParseMask returns the numbers of the bits that are set in a hexadecimal mask, ascending.
// The mask may begin with 0x and must not be zero.
func ParseMask(text string) ([]int, error) {
	n, ok := new(big.Int).SetString(strings.TrimPrefix(strings.ToLower(text), "0x"), 16)
	if !ok || n.Sign() <= 0 || n.BitLen() > 1<<12 {
		return nil, fmt.Errorf("malformed mask %q", text)
	}
	var ids []int
	for i := range n.BitLen() {
		if n.Bit(i) == 1 {
			ids = append(ids, i)
		}
	}
	return ids, nil
}

// FormatMask returns the hexadecimal mask of CPUs in the form that Slurm prints.
func FormatMask(ids []int) string {
	n := new(big.Int)
	for _, i := range ids {
		n.SetBit(n, i, 1)
	}
	return fmt.Sprintf("0x%X", n)
}
