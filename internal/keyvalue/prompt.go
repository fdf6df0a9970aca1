package keyvalue

import (
	"bufio"
	"errors"
	"io"
	"strings"
)

// Prompt is a session in which commands are typed, one on a line.
type Prompt struct {
	Text  string             // printed before each line
	In    *bufio.Reader      // commands may read answers from it as well
	Print func(string) error // writes the prompt
	// Echo prints what is read, as readline does where no terminal shows what is typed.
	Echo bool
	// Run carries out a command of at least one word; done ends the session.
	Run func(words []string) (done bool)
}

// Loop reads and runs commands until one ends the session or the input ends. The line
// "!!" repeats the one before it. The error is that of the input or of writing the prompt.
func (p *Prompt) Loop() error {
	last := ""
	for {
		if err := p.Print(p.Text); err != nil {
			return err
		}
		line, err := p.In.ReadString('\n')
		if p.Echo {
			if err := p.Print(strings.TrimSuffix(line, "\n") + "\n"); err != nil {
				return err
			}
		}
		command := line
		if strings.HasPrefix(line, "!!") {
			command = last
		}
		last = command
		if words := Fields(command); len(words) > 0 && p.Run(words) {
			return nil
		}
		switch {
		case errors.Is(err, io.EOF) && line == "":
			return nil
		case err != nil && !errors.Is(err, io.EOF):
			return err
		}
	}
}
