package gen

import (
	"strings"

	"github.com/spf13/pflag"
)

// Server is a program for administrators, or one that runs as a service. Its page is in
// section 8 of the manual.
type Server struct {
	Program string // the name of its file
	Summary string
	Text    []string // paragraphs
	Flags   *pflag.FlagSet
	Exits   string
	See     []string
}

// serverPages returns the pages of servers.
func serverPages(servers []Server) []page {
	var pages []page
	for _, s := range servers {
		p := page{
			name:     "berth-" + s.Program,
			program:  s.Program,
			number:   8,
			summary:  s.Summary,
			synopsis: []string{"[OPTIONS]"},
			see:      s.See,
		}
		p.sections = append(p.sections, section{title: "DESCRIPTION", text: s.Text})
		if items := flags(s.Flags); len(items) > 0 {
			p.sections = append(p.sections, section{title: "OPTIONS", items: items})
		}
		p.sections = append(p.sections, section{title: "EXIT STATUS", text: []string{strings.TrimSpace(s.Exits)}})
		pages = append(pages, p)
	}
	return pages
}
