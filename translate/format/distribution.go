package format

import "strings"

// Distribution returns the name that Slurm shows for a value of --distribution of a
// step: BCyclic for block:cyclic. An unknown value is returned unchanged.
func Distribution(given string) string {
	levels, pack, _ := strings.Cut(strings.ToLower(given), ",")
	kinds := strings.Split(levels, ":")
	name := ""
	switch first, _, _ := strings.Cut(kinds[0], "="); first {
	case "block", "cyclic":
		name = capital(first)
	case "*", "":
		name = "Block"
	case "plane":
		return "Plane"
	case "arbitrary":
		return "arbitrary task distribution"
	default:
		return given
	}
	if len(kinds) > 1 {
		name = name[:1]
	}
	for _, kind := range kinds[1:] {
		switch kind {
		case "block", "cyclic":
			name += capital(kind)
		case "*":
			name += "Cyclic"
		case "fcyclic":
			name += "FCyclic"
		}
	}
	switch pack {
	case "pack":
		name += ",Pack"
	case "nopack":
		name += ",NoPack"
	}
	return name
}

func capital(word string) string { return strings.ToUpper(word[:1]) + word[1:] }
