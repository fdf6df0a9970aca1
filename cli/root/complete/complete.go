// Package complete implements berth __complete, which the completion functions of shells
// (completions/) run when the user presses TAB. It has a short time limit. On errors it
// prints nothing and exits with 0.
//
//	berth __complete bash LINE-UP-TO-THE-CURSOR COMP_WORDBREAKS COMP_TYPE
//	berth __complete zsh|fish WORD... WORD-AT-THE-CURSOR
//
// The first line of the output has directives for the shell (see header). The others are
// words, each with a tab and a description for zsh and fish. Words for bash are quoted.
package complete

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/translate/completion"
	"github.com/berth-hpc/berth/translate/option"
)

// usualPatience is the default time limit, including the start of this process.
const usualPatience = 450 * time.Millisecond

// patience returns the time limit, which envTimeout may set for distant clusters.
func patience(p *stdio.Process) time.Duration {
	if d, err := time.ParseDuration(p.Env(envTimeout)); err == nil && d > 0 {
		return d
	}
	return usualPatience
}

const envTimeout = "BERTH_COMP_TIMEOUT"

// OwnCompleter completes the command line of berth itself. words are the words after its
// name; the last one is at the cursor.
type OwnCompleter func(words []string) []completion.Item

// Run handles one request. slurm reports whether a name is a command of Slurm; own may be
// nil.
func Run(
	p *stdio.Process,
	args []string,
	connect func(*stdio.Process) (Cluster, error),
	slurm func(string) bool,
	own OwnCompleter,
) {
	if len(args) == 0 {
		return
	}
	// The shell shows no errors and cannot answer prompts.
	silent := *p
	silent.In, silent.Err = bytes.NewReader(nil), io.Discard
	ctx, cancel := context.WithTimeout(context.Background(), patience(p))
	defer cancel()
	done := make(chan string, 1)
	go func() {
		defer func() { _ = recover() }()
		q := &query{p: &silent, lists: &lists{p: &silent, connect: connect}, slurm: slurm, own: own}
		done <- q.answer(ctx, args[0], args[1:])
	}()
	select {
	case text := <-done:
		fmt.Fprint(p.Out, text)
	case <-ctx.Done():
	}
}

type query struct {
	p     *stdio.Process
	lists *lists
	slurm func(string) bool
	own   OwnCompleter
}

func (q *query) answer(ctx context.Context, shell string, args []string) string {
	switch shell {
	case "bash":
		if len(args) == 3 {
			return q.bash(ctx, args[0], args[1], args[2])
		}
	case "zsh":
		if len(args) > 1 {
			return q.plain(ctx, args)
		}
	case "fish":
		if len(args) > 1 {
			args[len(args)-1] = completion.Unquote(args[len(args)-1])
			return q.plain(ctx, args)
		}
	}
	return ""
}

// complete completes a command line, of which the last word is at the cursor. skipped is
// the number of words before the command's name.
func (q *query) complete(ctx context.Context, words []string) (a completion.Answer, skipped int) {
	name := path.Base(words[0])
	if !q.slurm(name) {
		file, rest := kubeconfig(words[1:])
		if file != "" {
			q.lists.kubeconfig = file
		}
		if len(rest) < 2 || !q.slurm(rest[0]) {
			if q.own != nil {
				a.Items = q.own(words[1:])
			}
			return a, 0
		}
		skipped, words, name = len(words)-len(rest), rest, rest[0]
	}
	r := completion.Request{Name: name, Words: words[1 : len(words)-1], Current: words[len(words)-1]}
	a = completion.Complete(r, func(k option.Kind) []completion.Item { return q.lists.get(ctx, k) })
	a.From += skipped + 1
	return a, skipped
}

// kubeconfig removes --kubeconfig from the front of berth's command line.
func kubeconfig(args []string) (file string, rest []string) {
	for len(args) > 1 {
		if f, ok := strings.CutPrefix(args[0], "--kubeconfig="); ok {
			file, args = f, args[1:]
		} else if args[0] == "--kubeconfig" && len(args) > 2 {
			file, args = args[1], args[2:]
		} else {
			break
		}
	}
	return file, args
}

var fallbacks = map[completion.Fallback]string{
	completion.Files: "files", completion.Directories: "directories", completion.Commands: "commands",
	completion.Command: "command",
}

// header returns the first line of the output: directives and then, each after a tab,
// the part of the word at the cursor that is not a file name, and the index of the word
// at which another command starts.
func header(a *completion.Answer) string {
	words := []string{"berth"}
	if a.List {
		words = append(words, "list")
	}
	if a.Open || len(a.Items) == 1 && strings.IndexByte("=:[", last(a.Items[0].Text)) >= 0 {
		words = append(words, "nospace")
	}
	if f := fallbacks[a.Fallback]; f != "" {
		words = append(words, f)
	}
	return fmt.Sprintf("%s\t%s\t%d\n", strings.Join(words, " "), a.Prefix, a.From)
}

func last(s string) byte { return s[len(s)-1] }

// plain prints the output for zsh and fish, which quote words themselves.
func (q *query) plain(ctx context.Context, words []string) string {
	a, _ := q.complete(ctx, words)
	var b strings.Builder
	b.WriteString(header(&a))
	for _, i := range a.Items {
		b.WriteString(i.Text + "\t" + i.Help + "\n")
	}
	return b.String()
}

// bash prints the output for bash, which inserts it unchanged. With COMP_TYPE 63 and 33
// bash shows a list and inserts only the common prefix, so descriptions are possible.
func (q *query) bash(ctx context.Context, line, breaks, kind string) string {
	l := completion.SplitBash(line, breaks)
	words := l.Words
	for len(words) > 1 && assignment(words[0]) {
		words = words[1:]
	}
	if len(words) < 2 {
		return ""
	}
	a, _ := q.complete(ctx, words)
	describe := a.Describe && (kind == "63" || kind == "33") && len(a.Items) > 1
	var replies []string
	kept := a.Items[:0]
	width := 0
	for _, i := range a.Items {
		if text, ok := l.Reply(i.Text); ok {
			replies, kept = append(replies, text), append(kept, i)
			width = max(width, utf8.RuneCountInString(text))
		}
	}
	a.Items = kept
	var b strings.Builder
	b.WriteString(header(&a))
	for n, i := range a.Items {
		if describe && i.Help != "" && len(replies) > 1 {
			fmt.Fprintf(&b, "%-*s  (%s)\n", width, replies[n], i.Help)
			continue
		}
		b.WriteString(replies[n] + "\n")
	}
	return b.String()
}

// assignment reports whether a word before the command sets a variable.
func assignment(word string) bool {
	name, _, ok := strings.Cut(word, "=")
	return ok && name != "" &&
		strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
}
