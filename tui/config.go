package tui

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/tui/query"
	"github.com/berth-hpc/berth/tui/queue"
)

// Config is the user's configuration file, $XDG_CONFIG_HOME/berth/tui.yaml.
type Config struct {
	Theme   string                       `json:"theme,omitempty"`
	Themes  map[string]map[string]string `json:"themes,omitempty"`
	Keys    map[string][]string          `json:"keys,omitempty"`
	Filters map[string]string            `json:"filters,omitempty"` // by name
	Columns []string                     `json:"columns,omitempty"`
	Mouse   *bool                        `json:"mouse,omitempty"` // nil: yes
	ASCII   bool                         `json:"ascii,omitempty"`
}

// State is the file in which the program saves its state,
// $XDG_STATE_HOME/berth/tui.json.
type State struct {
	Queue   queue.State         `json:"queue,omitzero"`
	Theme   string              `json:"theme,omitempty"`
	Filters map[string]string   `json:"filters,omitempty"`
	History map[string][]string `json:"history,omitempty"`
}

// maxFileSize bounds the size of either file, in bytes.
const maxFileSize = 1 << 20

// configDir returns berth's directory below the one that the environment variable
// names, or else below the home directory. It returns "" if neither is set.
func configDir(p *stdio.Process, variable, below string) string {
	if dir := p.Env(variable); filepath.IsAbs(dir) {
		return filepath.Join(dir, "berth")
	}
	if home := p.Env("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, below, "berth")
	}
	return ""
}

func configFile(p *stdio.Process) string {
	if dir := configDir(p, "XDG_CONFIG_HOME", ".config"); dir != "" {
		return filepath.Join(dir, "tui.yaml")
	}
	return ""
}

func stateFile(p *stdio.Process) string {
	if dir := configDir(p, "XDG_STATE_HOME", ".local/state"); dir != "" {
		return filepath.Join(dir, "tui.json")
	}
	return ""
}

// readConfigFile parses a file into v. A missing file is not an error.
func readConfigFile(p *stdio.Process, path string, parse func([]byte, any) error, v any) error {
	if path == "" {
		return nil
	}
	text, err := p.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case len(text) > maxFileSize:
		return fmt.Errorf("%s: the file is larger than %d bytes", path, maxFileSize)
	}
	if err := parse(text, v); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// loadConfig reads both files. A file that cannot be parsed counts as missing, a
// filter that cannot be parsed is left out; the errors say which.
func loadConfig(p *stdio.Process) (Config, State, []error) {
	var c Config
	var s State
	var wrong []error
	strict := func(text []byte, v any) error { return yaml.UnmarshalStrict(text, v) }
	if err := readConfigFile(p, configFile(p), strict, &c); err != nil {
		c, wrong = Config{}, append(wrong, err)
	}
	if err := readConfigFile(p, stateFile(p), json.Unmarshal, &s); err != nil {
		s, wrong = State{}, append(wrong, err)
	}
	for name, text := range c.Filters {
		if _, err := query.Parse(text); err != nil {
			wrong = append(wrong, fmt.Errorf("%s: filter %s: %w", configFile(p), name, err))
			delete(c.Filters, name)
		}
	}
	for name, text := range s.Filters {
		if _, err := query.Parse(text); err != nil {
			delete(s.Filters, name)
		}
	}
	return c, s, wrong
}

// writeState replaces the state file atomically.
func writeState(p *stdio.Process, s *State) error {
	path := stateFile(p)
	if path == "" {
		return nil
	}
	text, err := json.MarshalIndent(s, "", "\t")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".tui-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// maxHistory bounds the number of lines in one history.
const maxHistory = 50

// appendHistory returns the history with line as its newest (last) entry. Each
// line occurs once, and the oldest are dropped beyond maxHistory.
func appendHistory(lines []string, line string) []string {
	if line == "" {
		return lines
	}
	lines = slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return l == line })
	lines = append(lines, line)
	return lines[max(0, len(lines)-maxHistory):]
}
