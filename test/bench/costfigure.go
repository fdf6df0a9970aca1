package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// The suite "cost" draws the table of docs/sim.md about nodes on demand: cost against wait. It
// measures nothing, so that the figure always shows the numbers of the table.
const (
	costTable  = "| trace | nodes | SuspendTime |"
	costFigure = "sim-cost.svg"
)

// costPoint is a row of the table.
type costPoint struct {
	trace, nodes, idle string
	hours, wait        float64
}

func drawCost(page string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	points, err := costPoints(string(text))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(filepath.Dir(page), costFigure), []byte(costSVG(points)), 0o644)
}

// costPoints reads the rows of the table. A row without a trace belongs to that of the row
// above.
func costPoints(text string) (points []costPoint, err error) {
	_, rows, ok := strings.Cut(text, costTable)
	if !ok {
		return nil, fmt.Errorf("no table %q", costTable)
	}
	var trace, nodes string
	for i, line := range strings.Split(rows, "\n") {
		if i < 2 { // the rest of the head, and the line below it
			continue
		}
		f := strings.Split(line, "|")
		if len(f) < 9 {
			break
		}
		for i := range f {
			f[i] = strings.Trim(f[i], " `")
		}
		p := costPoint{trace: f[1], nodes: strings.ReplaceAll(f[2], "`", ""), idle: f[3]}
		if p.trace == "" {
			p.trace = trace
		} else {
			nodes = ""
		}
		if p.nodes == "" {
			p.nodes = nodes
		}
		trace, nodes = p.trace, p.nodes
		if p.hours, err = number(f[4]); err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		if p.wait, err = number(f[6]); err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		points = append(points, p)
	}
	return points, nil
}

// number parses a number of the table, such as "7,069 s".
func number(s string) (float64, error) {
	return strconv.ParseFloat(strings.ReplaceAll(strings.TrimSuffix(s, " s"), ",", ""), 64)
}

// Size of a trace's diagram, in SVG user units.
const (
	costWidth, costHeight = 420, 300
	costLeft, costTop     = 20, 40
	costLegend            = 250 // right of the diagram
)

// costSVG draws a diagram for each trace, with logarithmic waits.
func costSVG(points []costPoint) string {
	var traces []string
	of := map[string][]costPoint{}
	for _, p := range points {
		if of[p.trace] == nil {
			traces = append(traces, p.trace)
		}
		of[p.trace] = append(of[p.trace], p)
	}
	b := &strings.Builder{}
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="11">`+"\n",
		len(traces)*(costWidth+costLeft+costLegend), costTop+costHeight+50)
	b.WriteString(`<rect width="100%" height="100%" fill="#fff"/>` + "\n")
	for i, t := range traces {
		drawTrace(b, i*(costWidth+costLeft+costLegend)+costLeft, t, of[t])
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func drawTrace(b *strings.Builder, left int, trace string, points []costPoint) {
	low, high := points[0], points[0]
	for _, p := range points {
		low.hours, high.hours = min(low.hours, p.hours), max(high.hours, p.hours)
		low.wait, high.wait = min(low.wait, p.wait), max(high.wait, p.wait)
	}
	x := func(h float64) float64 {
		return float64(left) + 20 + (h-low.hours)/(high.hours-low.hours)*(costWidth-40)
	}
	y := func(w float64) float64 {
		part := math.Log(w/low.wait) / math.Log(high.wait/low.wait)
		return costTop + costHeight - 20 - part*(costHeight-40)
	}
	fmt.Fprintf(b, `<rect x="%d" y="%d" width="%d" height="%d" fill="none" stroke="#888"/>`+"\n",
		left, costTop, costWidth, costHeight)
	fmt.Fprintf(b, `<text x="%d" y="%d" font-size="14">%s</text>`+"\n", left, costTop-12, trace)
	fmt.Fprintf(b, `<text x="%d" y="%d">node-hours: %.0f to %.0f</text>`+"\n",
		left, costTop+costHeight+18, low.hours, high.hours)
	fmt.Fprintf(b, `<text x="%d" y="%d">mean wait (log): %.0f s to %.0f s, lower is better</text>`+"\n",
		left, costTop+costHeight+34, low.wait, high.wait)
	colours := map[string]string{"planned": "#1a6", "eager": "#d60", "always": "#36c"}
	for i, p := range points {
		colour, ok := colours[p.nodes]
		if !ok {
			colour = "#a2a"
		}
		name := strings.TrimSpace(p.nodes + " " + p.idle)
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="4" fill="%s"><title>%s: %.0f node-hours, %.0f s</title></circle>`+"\n",
			x(p.hours), y(p.wait), colour, name, p.hours, p.wait)
		ly := costTop + 16 + 14*i
		fmt.Fprintf(b, `<circle cx="%d" cy="%d" r="4" fill="%s"/>`+"\n", left+costWidth+14, ly, colour)
		fmt.Fprintf(b, `<text x="%d" y="%d">%s: %.0f h, %.0f s</text>`+"\n",
			left+costWidth+22, ly+4, name, p.hours, p.wait)
	}
}
