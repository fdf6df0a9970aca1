package sacctmgr

import (
	"errors"
	"fmt"
	"strings"

	"github.com/berth-hpc/berth/internal/keyvalue"
)

// refusal is why a command changes nothing, in Slurm's words. It is printed
// without the command's name in front.
type refusal struct {
	text     string
	option   string // the word of the command line that Slurm calls unknown; "": none
	hint     bool   // the hint about "where" follows the option
	toStdout bool   // Slurm prints it to standard output
}

func (r *refusal) Error() string {
	var lines []string
	if r.text != "" {
		lines = append(lines, r.text)
	}
	if r.option != "" {
		lines = append(lines, " Unknown option: "+r.option)
	}
	if r.hint {
		lines = append(lines, " Use keyword 'where' to modify condition")
	}
	return strings.Join(lines, "\n")
}

func refusef(format string, args ...any) error { return &refusal{text: fmt.Sprintf(format, args...)} }

// nothing returns the refusal of a command that has no effect: "modified",
// "deleted" or "new added.". Slurm prints it to standard output.
func nothing(done string) error { return &refusal{text: " Nothing " + done, toStdout: true} }

// unknownOption returns Slurm's refusal of a word.
func unknownOption(p keyvalue.Pair) error { return &refusal{option: p.Text, hint: true} }

// unknownCondition returns Slurm's refusal of a word after "where".
func unknownCondition(p keyvalue.Pair) error {
	return refusef(" Unknown condition: %s\n Use keyword 'set' to modify value", p.Text)
}

// invalidOption returns the refusal of a word with a reason in front of it.
func invalidOption(p keyvalue.Pair, format string, args ...any) error {
	return &refusal{text: fmt.Sprintf(format, args...), option: p.Text, hint: true}
}

// invalidValue returns Slurm's refusal of a value, followed by that of the word.
func invalidValue(name string, p keyvalue.Pair) error {
	return invalidOption(p, "sacctmgr: error: Invalid value for %s (%s)", name, p.Value)
}

// withoutOption returns err without the refusal of the word, which Slurm prints
// for some entities alone.
func withoutOption(err error) error {
	var r *refusal
	if !errors.As(err, &r) {
		return err
	}
	return &refusal{text: r.text, toStdout: r.toStdout}
}

// withoutHint returns err with the refusal of the word, but without the hint.
func withoutHint(err error, p keyvalue.Pair) error {
	var r *refusal
	if !errors.As(err, &r) {
		return err
	}
	return &refusal{text: r.text, option: p.Text, toStdout: r.toStdout}
}
