package jobs

import (
	"context"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/translate/bounds"
	"github.com/berth-hpc/berth/translate/status"
)

// splitRefusal splits the text of a refused submission. before are the lines that Slurm's
// controller prints before the reason; usually there are none.
func splitRefusal(err error) (before, reason string) {
	text := err.Error()
	i := strings.LastIndexByte(text, '\n') + 1
	return text[:i], text[i:]
}

// unknownGRES is the reason of a refusal that in Slurm comes from the command itself,
// because the command reads the configuration of generic resources.
const unknownGRES = "Invalid generic resource (gres) specification"

// Lister lists the cluster's partitions.
type Lister interface {
	Partitions(ctx context.Context) (*status.PartitionList, error)
}

// RefusalText returns the message for a refused submission. failed is the command's
// own message, such as "Batch job submission failed".
func RefusalText(ctx context.Context, c Lister, partitions []string, failed string, err error) string {
	before, reason := splitRefusal(err)
	text := before + failed + ": " + reason
	if reason == unknownGRES {
		text = before + reason
	}
	if name := unknownPartition(ctx, c, partitions, reason); name != "" {
		text = "invalid partition specified: " + name + "\n" + text
	}
	return text
}

// TestOnlyRefusal returns the lines that command prints for a refused --test-only.
func TestOnlyRefusal(ctx context.Context, c Lister, command string, partitions []string, err error) []string {
	_, reason := splitRefusal(err)
	if reason == unknownGRES {
		return []string{command + ": error: " + reason}
	}
	var lines []string
	if name := unknownPartition(ctx, c, partitions, reason); name != "" {
		lines = append(lines, command+": error: invalid partition specified: "+name)
	}
	return append(lines, "allocation failure: "+reason)
}

// unknownPartition returns the first requested partition that does not exist, or "" if the job
// was refused for another reason. It costs a request, so callers use it only after a refusal.
func unknownPartition(ctx context.Context, c Lister, partitions []string, reason string) string {
	if len(partitions) == 0 || reason != bounds.BadPartition {
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
