package jobs

import (
	"context"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/translate/status"
)

// Refusal parts the text of a refused submission: before is what Slurm's
// controller says ahead of the reason, with its line ends; mostly there is none.
func Refusal(err error) (before, reason string) {
	text := err.Error()
	i := strings.LastIndexByte(text, '\n') + 1
	return text[:i], text[i:]
}

// unknownGRES is the reason of a refusal that in Slurm comes from the command
// itself, which knows the cluster's kinds of resources.
const unknownGRES = "Invalid generic resource (gres) specification"

// Lister lists the cluster's partitions.
type Lister interface {
	Partitions(ctx context.Context) (*status.PartitionList, error)
}

// Explained is the text of a refused submission, where the command's own words
// for it, such as "Batch job submission failed", are failed.
func Explained(ctx context.Context, c Lister, partitions []string, failed string, err error) string {
	before, reason := Refusal(err)
	text := before + failed + ": " + reason
	if reason == unknownGRES {
		text = before + reason
	}
	if name := unknownPartition(ctx, c, partitions); name != "" {
		text = "invalid partition specified: " + name + "\n" + text
	}
	return text
}

// RefusedTest is the same of --test-only: lines that command writes as they are.
func RefusedTest(ctx context.Context, c Lister, command string, partitions []string, err error) []string {
	_, reason := Refusal(err)
	if reason == unknownGRES {
		return []string{command + ": error: " + reason}
	}
	var lines []string
	if name := unknownPartition(ctx, c, partitions); name != "" {
		lines = append(lines, command+": error: invalid partition specified: "+name)
	}
	return append(lines, "allocation failure: "+reason)
}

// unknownPartition names a partition that was asked for and does not exist.
// Whether one is missing is asked only after a refusal.
func unknownPartition(ctx context.Context, c Lister, partitions []string) string {
	if len(partitions) == 0 {
		return ""
	}
	list, err := c.Partitions(ctx)
	if err != nil {
		return ""
	}
	for _, name := range partitions {
		if !slices.ContainsFunc(list.Items, func(p status.Partition) bool { return p.Name == name }) {
			return name
		}
	}
	return ""
}
