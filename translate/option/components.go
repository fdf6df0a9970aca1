package option

// Components parts a command line at its colons: one part for each component
// of a heterogeneous job, or of a step in several of them.
func Components(args []string) [][]string {
	parts := [][]string{nil}
	for _, a := range args {
		if a == ":" {
			parts = append(parts, nil)
			continue
		}
		last := len(parts) - 1
		parts[last] = append(parts[last], a)
	}
	return parts
}

// Following reads the part of a command line behind p's, for a further
// component with the environment env. What p was told on the command line
// holds for it as well, but for the options that are a component's own.
func (p *Parsed) Following(args, env []string) (*Parsed, error) {
	next := New(p.Command)
	next.Lenient = p.Lenient
	if err := next.Environment(env); err != nil {
		return nil, err
	}
	if err := next.handOn(p, FromCommandLine); err != nil {
		return nil, err
	}
	if err := next.CommandLine(args); err != nil {
		return nil, err
	}
	return next, nil
}

// handOn applies what p was told by from (0: by anybody) and is not only for
// p's component.
func (p *Parsed) handOn(before *Parsed, from Source) error {
	for _, s := range before.said {
		if ofComponent[s.option.Name] || from != 0 && s.from != from {
			continue
		}
		p.from = s.from
		if err := p.apply(s.occurrence); err != nil {
			return err
		}
	}
	p.Warnings = nil // they were said
	return nil
}
