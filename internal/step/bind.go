package step

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// Bind is --cpu-bind, read.
type Bind struct {
	Verbose bool   `json:"verbose,omitempty"`
	Kind    string `json:"kind,omitempty"` // BindAuto, ...
	// List is what map_cpu and mask_cpu name, for each local task in turn.
	List []string `json:"list,omitempty"`
}

// Kinds of Bind.
const (
	BindAuto = ""     // each task to its share of the step's CPUs
	BindNone = "none" // not at all
	BindRank = "rank" // local task i to the step's CPU i
	BindMap  = "map"  // to the CPUs named
	BindMask = "mask" // to the masks named
)

var errBind = errors.New("no --cpu-bind")

// ParseBind reads --cpu-bind (srun(1)). The error has no text for users.
func ParseBind(text string) (b Bind, err error) {
	for part := range strings.SplitSeq(protect(text), ",") {
		name, list, has := strings.Cut(part, ":")
		switch strings.ToLower(name) {
		case "":
		case "v", "verbose":
			b.Verbose = true
		case "q", "quiet":
			b.Verbose = false
		case "no", "none":
			b.Kind = BindNone
		case "rank":
			b.Kind = BindRank
		case "map_cpu", "mapcpu", "map_ldom":
			b.Kind = BindMap
		case "mask_cpu", "maskcpu", "mask_ldom":
			b.Kind = BindMask
		case "cores", "core", "threads", "thread", "sockets", "socket", "ldoms", "ldom", "rank_ldom", "boards", "board",
			"yes", "one_thread", "autobind":
			b.Kind = BindAuto
		default:
			return b, errBind
		}
		if !has {
			continue
		}
		for _, item := range strings.Split(list, "\x00") {
			item, times, many := strings.Cut(item, "*")
			n := 1
			if many {
				if n, err = strconv.Atoi(times); err != nil || n < 1 || n > 1<<16 {
					return b, errBind
				}
			}
			switch b.Kind {
			case BindMap:
				_, err = strconv.ParseUint(item, 0, 16)
			case BindMask:
				_, err = MaskCPUs(item)
			}
			if err != nil {
				return b, errBind
			}
			for range n {
				b.List = append(b.List, item)
			}
		}
	}
	if (b.Kind == BindMap || b.Kind == BindMask) && len(b.List) == 0 {
		return b, errBind
	}
	return b, nil
}

// protect hides the commas of a list from those between the words.
func protect(text string) string {
	head, list, ok := strings.Cut(text, ":")
	if !ok {
		return text
	}
	return head + ":" + strings.ReplaceAll(list, ",", "\x00")
}

// CPUs are the CPUs that local task number local is to be bound to, of those
// of the step on its node; nil: it is not bound. per is CPUs for each task.
func (b *Bind) CPUs(ids []int, local, tasks, per int) []int {
	switch b.Kind {
	case BindNone:
		return nil
	case BindRank:
		if len(ids) == 0 {
			return nil
		}
		return []int{ids[local%len(ids)]}
	case BindMap:
		n, err := strconv.ParseUint(b.List[local%len(b.List)], 0, 16)
		if err != nil {
			return nil
		}
		return []int{int(n)}
	case BindMask:
		cpus, err := MaskCPUs(b.List[local%len(b.List)])
		if err != nil {
			return nil
		}
		return cpus
	}
	if tasks*per <= len(ids) {
		return ids[local*per : (local+1)*per]
	}
	return ids
}

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
