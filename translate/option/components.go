package option

// Components splits a command line at its colons: one part for each component of
// a heterogeneous job, or of a step in several of them.
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

// ParseNextComponent parses the part of a command line after p's, for the next
// component, with the environment env. Options of p's command line apply to it
// too, except those that are specific to a component.
func (p *Parsed) ParseNextComponent(args, env []string) (*Parsed, error) {
	next := New(p.Command)
	next.Lenient, next.NotRoot = p.Lenient, p.NotRoot
	if err := next.Environment(env); err != nil {
		return nil, err
	}
	if err := next.inherit(p, FromCommandLine); err != nil {
		return nil, err
	}
	if err := next.CommandLine(args); err != nil {
		return nil, p.Corrected(next.Corrected(err, false), false)
	}
	return next, nil
}

// inherit applies the options of the previous component that came from the given
// source (0: any) and are not specific to it.
func (p *Parsed) inherit(previous *Parsed, from Source) error {
	for _, s := range previous.applied {
		if componentOptions[s.option.Name] || from != 0 && s.from != from {
			continue
		}
		p.from = s.from
		if err := p.apply(s.occurrence); err != nil {
			return err
		}
	}
	p.Warnings = nil // the previous component has them
	return nil
}
