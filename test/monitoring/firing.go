package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/tsdb"
)

// interval is the time between two scrapes.
const interval = time.Minute

// firing prints the names of the alerts in the file whose expressions are true after the
// scrapes.
func firing(file string, scrapes []string) error {
	groups, errs := parseRules(file)
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	dir, err := os.MkdirTemp("", "monitoring-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	db, err := tsdb.Open(dir, slog.New(slog.DiscardHandler), nil, tsdb.DefaultOptions(), nil)
	if err != nil {
		return err
	}
	defer db.Close()
	at := time.Unix(1_000_000_000, 0)
	for i, name := range scrapes {
		if i > 0 {
			at = at.Add(interval)
		}
		if err := store(db, name, at); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute, Parser: parser.NewParser(parser.Options{})})
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			q, err := engine.NewInstantQuery(context.Background(), db, nil, r.Expr, at)
			if err != nil {
				return fmt.Errorf("%s: %w", r.Alert, err)
			}
			result := q.Exec(context.Background())
			vector, err := result.Vector()
			if err != nil {
				return fmt.Errorf("%s: %w", r.Alert, err)
			}
			if len(vector) > 0 {
				fmt.Println(r.Alert)
			}
			q.Close()
		}
	}
	return nil
}

// store adds the samples of a scrape.
func store(db *tsdb.DB, name string, at time.Time) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	p := textparse.NewPromParser(text, labels.NewSymbolTable(), false)
	app := db.Appender(context.Background())
	for {
		kind, err := p.Next()
		if errors.Is(err, io.EOF) {
			return app.Commit()
		}
		if err != nil {
			return errors.Join(err, app.Rollback())
		}
		if kind != textparse.EntrySeries {
			continue
		}
		_, _, value := p.Series()
		var l labels.Labels
		p.Labels(&l)
		if _, err := app.Append(0, l, at.UnixMilli(), value); err != nil {
			return errors.Join(err, app.Rollback())
		}
	}
}
