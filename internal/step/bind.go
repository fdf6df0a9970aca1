package step

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/translate/value"
)

// Bind is --cpu-bind, read.
type Bind struct {
	Verbose bool   `json:"verbose,omitempty"`
	Kind    string `json:"kind,omitempty"` // BindAuto, ...
	// List is what the kinds with a list name, for each local task in turn.
	List []string `json:"list,omitempty"`
	// OneThread leaves all but one thread of each core alone.
	OneThread bool `json:"oneThread,omitempty"`
}

// Kinds of Bind, as --cpu-bind has them.
const (
	BindAuto       = ""     // each task to its share of the step's CPUs
	BindNone       = "none" // not at all
	BindThreads    = "threads"
	BindCores      = "cores"
	BindSockets    = "sockets"
	BindDomains    = "ldoms"     // NUMA nodes
	BindRank       = "rank"      // local task i to the step's CPU i
	BindRankDomain = "rank_ldom" // or NUMA node i
	BindMap        = "map_cpu"   // to the CPUs named
	BindMask       = "mask_cpu"  // to the masks named
	BindMapDomain  = "map_ldom"  // as BindMap, NUMA nodes
	BindMaskDomain = "mask_ldom" // as BindMask, NUMA nodes
)

// Kinds of MemBind beside BindNone and BindRank.
const (
	BindLocal      = "local" // near the task's CPUs
	BindMapMemory  = "map_mem"
	BindMaskMemory = "mask_mem"
)

// bindWords are the words of --cpu-bind by what they mean.
var bindWords = map[string]string{
	"no": BindNone, "none": BindNone, "rank": BindRank, "rank_ldom": BindRankDomain, "map_cpu": BindMap, "mapcpu": BindMap,
	"mask_cpu": BindMask, "maskcpu": BindMask, "map_ldom": BindMapDomain, "mask_ldom": BindMaskDomain,
	"thread": BindThreads, "threads": BindThreads, "core": BindCores, "cores": BindCores, "socket": BindSockets, "sockets": BindSockets,
	"ldom": BindDomains, "ldoms": BindDomains,
}

var errBind = errors.New("no binding")

// ParseBind reads --cpu-bind (srun(1)). The error has no text for users.
func ParseBind(text string) (b Bind, err error) {
	for _, part := range value.BindWords(text) {
		name, list, has := strings.Cut(part, ":")
		name = strings.ToLower(name)
		switch kind, known := bindWords[name]; {
		case known:
			b.Kind, b.List = kind, nil
		case name == "v" || name == "verbose":
			b.Verbose = true
		case name == "q" || name == "quiet":
			b.Verbose = false
		case name == "one_thread":
			b.OneThread = true
		case name != "":
			return b, errBind
		}
		if has {
			if b.List, err = bindList(b.Kind, list); err != nil {
				return b, err
			}
		}
	}
	if strings.HasPrefix(b.Kind, "ma") == (len(b.List) == 0) {
		return b, errBind
	}
	return b, nil
}

// bindList reads the entries of a list, each as often as it says (*N).
func bindList(kind, text string) ([]string, error) {
	list, err := value.BindList(kind, text)
	if err != nil {
		return nil, err
	}
	for _, item := range list {
		if strings.HasPrefix(kind, "mask") {
			_, err = MaskCPUs(item)
		} else {
			_, err = strconv.ParseUint(item, 10, 16)
		}
		if err != nil {
			return nil, errBind
		}
	}
	return list, nil
}

// Named is what the list says for local task number local: the numbers of CPUs
// or NUMA nodes.
func (b *Bind) Named(local int) []int { return named(b.Kind, b.List, local) }

func named(kind string, list []string, local int) []int {
	if len(list) == 0 {
		return nil
	}
	item := list[local%len(list)]
	if strings.HasPrefix(kind, "mask") {
		ids, _ := MaskCPUs(item) // it was read before
		return ids
	}
	n, err := strconv.ParseUint(item, 10, 16)
	if err != nil {
		return nil
	}
	return []int{int(n)}
}

// MemBind is --mem-bind, read.
type MemBind struct {
	Given   string   `json:"given,omitempty"` // empty: there was none
	Verbose bool     `json:"verbose,omitempty"`
	Prefer  bool     `json:"prefer,omitempty"`
	Sort    bool     `json:"sort,omitempty"`
	Kind    string   `json:"kind,omitempty"`
	List    []string `json:"list,omitempty"`
}

// ParseMemBind reads --mem-bind in the form in which Slurm shows it (package
// value). The error has no text for users.
func ParseMemBind(text string) (b MemBind, err error) {
	b.Given = text
	for _, part := range value.BindWords(text) {
		name, list, has := strings.Cut(part, ":")
		switch name {
		case "", "unset", "quiet", "nosort":
		case "verbose":
			b.Verbose = true
		case "prefer":
			b.Prefer = true
		case "sort":
			b.Sort = true
		case BindNone, BindRank, BindLocal, BindMapMemory, BindMaskMemory:
			b.Kind = name
		default:
			return b, errBind
		}
		if has {
			if b.List, err = bindList(b.Kind, list); err != nil {
				return b, err
			}
		}
	}
	return b, nil
}

// Named is what the list says for local task number local: NUMA nodes.
func (b *MemBind) Named(local int) []int { return named(b.Kind, b.List, local) }

// MaskCPUs reads a mask in hexadecimal.
func MaskCPUs(text string) ([]int, error) {
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

// Mask writes CPUs as a mask in hexadecimal, as Slurm does.
func Mask(ids []int) string {
	n := new(big.Int)
	for _, i := range ids {
		n.SetBit(n, i, 1)
	}
	return fmt.Sprintf("0x%X", n)
}
