package archtest

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// avoided are words that the code once had for concepts with a usual name. They must
// not be used as identifiers, nor in comments.
var avoided = map[string]string{
	"afar":      "remote",
	"anew":      "again",
	"bury":      "delete, clean up",
	"crowded":   "throttled",
	"folder":    "directory",
	"goAhead":   "assume",
	"hurdle":    "bound",
	"kin":       "reuse key",
	"lineup":    "pending queue",
	"magnets":   "magnetic reservations",
	"mold":      "hash of the pod template",
	"poke":      "wake",
	"presume":   "assume",
	"provoked":  "caused",
	"sayer":     "notifier",
	"seatRoot":  "ensure the root user",
	"tangled":   "oversubscribed",
	"unlimit":   "clear the time limit",
	"unmade":    "not created yet",
	"wentOn":    "continued",
	"whoever":   "a user who, a client that",
	"whosoever": "a user who, a client that",
}

// avoidedPhrases are phrases that must not be used in comments.
var avoidedPhrases = regexp.MustCompile(
	`(?i)\b(so to say|(?:is|are|was|were) told|at the very|waits no more|what there is|knows of)\b`)

// limit is the number of columns of a line; a tab counts as tabWidth.
const (
	limit    = 120
	tabWidth = 4
	// longText is the length of a string whose line may be longer than limit.
	longText = 75
	// maxLines is the number of lines that a file may have.
	maxLines = 500
)

// ourGoFiles returns the paths of all Go files of this module, without test data.
func ourGoFiles(t *testing.T) []string {
	t.Helper()
	var paths []string
	for _, f := range sources(t) {
		if !inOtherModule(f.pkg) {
			paths = append(paths, filepath.Join("../..", f.name))
		}
	}
	return paths
}

// inOtherModule reports whether the package belongs to a module below this one.
func inOtherModule(pkg string) bool {
	for ; pkg != "."; pkg = filepath.Dir(pkg) {
		if _, err := os.Stat(filepath.Join("../..", pkg, "go.mod")); err == nil {
			return true
		}
	}
	return false
}

// TestAvoidedWordsAreNotUsed checks identifiers and comments.
func TestAvoidedWordsAreNotUsed(t *testing.T) {
	lower := map[string]string{}
	for word, instead := range avoided {
		lower[strings.ToLower(word)] = instead
	}
	words := regexp.MustCompile(`[A-Za-z]+`)
	for _, path := range ourGoFiles(t) {
		if filepath.Base(path) == "language_test.go" {
			continue
		}
		files := token.NewFileSet()
		tree, err := parser.ParseFile(files, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, group := range tree.Comments {
			text := strings.Join(strings.Fields(group.Text()), " ")
			for _, word := range words.FindAllString(text, -1) {
				if instead := lower[strings.ToLower(word)]; instead != "" {
					t.Errorf("%s: %q in a comment; better: %s", files.Position(group.Pos()), word, instead)
				}
			}
			if phrase := avoidedPhrases.FindString(text); phrase != "" {
				t.Errorf("%s: %q in a comment; use the active voice and the usual term", files.Position(group.Pos()), phrase)
			}
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				if instead := lower[strings.ToLower(id.Name)]; instead != "" {
					t.Errorf("%s: %s; better: %s", files.Position(id.Pos()), id.Name, instead)
				}
			}
			return true
		})
	}
}

var generatedFile = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// TestFilesAreShort checks the number of lines of files. Generated ones may be longer.
func TestFilesAreShort(t *testing.T) {
	for _, path := range ourGoFiles(t) {
		src, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(src, []byte("\n")); n > maxLines && !generatedFile.Match(src) {
			t.Errorf("%s has %d lines, at most %d are allowed; divide it by topic", path, n, maxLines)
		}
	}
}

// TestLinesAreShort checks the length of the lines of non-test files. Lines inside raw
// strings, lines with a long string and generated files may be longer.
func TestLinesAreShort(t *testing.T) {
	for _, path := range ourGoFiles(t) {
		src, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(path, "_test.go") || generatedFile.Match(src) {
			continue
		}
		exempt := linesWithLongText(src)
		for i, line := range strings.Split(string(src), "\n") {
			width := utf8.RuneCountInString(line) + (tabWidth-1)*strings.Count(line, "\t")
			if width > limit && !exempt[i+1] && !strings.Contains(line, "//nolint") {
				t.Errorf("%s:%d has %d columns, at most %d are allowed", path, i+1, width, limit)
			}
		}
	}
}

// linesWithLongText returns the numbers of the lines with a long string or a part of a
// raw string. The first line is 1.
func linesWithLongText(src []byte) map[int]bool {
	lines := map[int]bool{}
	files := token.NewFileSet()
	file := files.AddFile("", files.Base(), len(src))
	var s scanner.Scanner
	s.Init(file, src, nil, 0)
	for {
		pos, tok, text := s.Scan()
		if tok == token.EOF {
			return lines
		}
		if tok != token.STRING || len(text) < longText && !strings.Contains(text, "\n") {
			continue
		}
		first := files.Position(pos).Line
		for i := range strings.Count(text, "\n") + 1 {
			lines[first+i] = true
		}
	}
}
