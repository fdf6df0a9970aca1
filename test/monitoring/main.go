// Command monitoring parses a file with Prometheus rules and a Grafana dashboard with
// Prometheus' own parser, and prints the name of every metric that they use, one per line.
// It fails if a rule or an expression is invalid.
//
// With "firing RULES SCRAPE..." it prints the names of the alerts that are true after the
// scrapes, which are a minute apart. Each SCRAPE is a file in Prometheus' text format.
package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

func main() {
	if len(os.Args) > 3 && os.Args[1] == "firing" {
		if err := firing(os.Args[2], os.Args[3:]); err != nil {
			fmt.Fprintln(os.Stderr, "monitoring: error:", err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: monitoring RULES DASHBOARD\n       monitoring firing RULES SCRAPE...")
		os.Exit(2)
	}
	used := names{}
	if err := errors.Join(used.rules(os.Args[1]), used.dashboard(os.Args[2])); err != nil {
		fmt.Fprintln(os.Stderr, "monitoring: error:", err)
		os.Exit(1)
	}
	for _, n := range used.sorted() {
		fmt.Println(n)
	}
}

// names are the names of the metrics that expressions use.
type names map[string]bool

func (n names) sorted() []string {
	var list []string
	for name := range n {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// add adds the names in an expression. where says in an error where the expression is.
func (n names) add(where, text string) error {
	e, err := parser.NewParser(parser.Options{}).ParseExpr(text)
	if err != nil {
		return fmt.Errorf("%s: %s: %w", where, text, err)
	}
	parser.Inspect(e, func(node parser.Node, _ []parser.Node) error {
		if v, ok := node.(*parser.VectorSelector); ok {
			n[v.Name] = true
		}
		return nil
	})
	return nil
}

// rules adds the names in the expressions of a file with rules.
func (n names) rules(file string) error {
	groups, errs := parseRules(file)
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			errs = append(errs, n.add(file+": "+cmp.Or(r.Alert, r.Record), r.Expr))
		}
	}
	return errors.Join(errs...)
}

func parseRules(file string) (*rulefmt.RuleGroups, []error) {
	return rulefmt.ParseFile(
		file, false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.Default(),
	)
}

// dashboard adds the names in the expressions of a file with a dashboard.
func (n names) dashboard(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var all any
	if err := json.Unmarshal(data, &all); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return n.within(file, all)
}

// within adds the names in the fields "expr" of decoded JSON, at any depth.
func (n names) within(where string, v any) error {
	var errs []error
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			errs = append(errs, n.within(where, e))
		}
	case map[string]any:
		for key, e := range v {
			if text, ok := e.(string); ok && key == "expr" {
				errs = append(errs, n.add(where, text))
			} else {
				errs = append(errs, n.within(where, e))
			}
		}
	}
	return errors.Join(errs...)
}
