package sacctmgr

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/translate/status"
)

// plan is a command being worked out: the world it changes, and what is shown.
type plan struct {
	world *world
	text  strings.Builder
}

func (p *plan) say(format string, args ...any) { fmt.Fprintf(&p.text, format, args...) }

// unknown is Slurm's refusal of a word.
func unknown(x pair) error {
	return refusal(fmt.Sprintf(" Unknown option: %s\n Use keyword 'where' to modify condition", x.text))
}

// only is the refusal of a value without that of its word, which Slurm adds to
// some entities alone.
func only(err error) error {
	var r refusal
	if !errors.As(err, &r) {
		return err
	}
	text, _, _ := strings.Cut(string(r), "\n Unknown option: ")
	return refusal(text)
}

// objectName is what the name of an account or QOS can be: with "-" for "_", an
// object has it.
var objectName = regexp.MustCompile(`^[a-z0-9]([-_a-z0-9.]*[a-z0-9])?$`)

func checkName(kind, name string) error {
	if len(name) > 253 || !objectName.MatchString(name) {
		return refusal(fmt.Sprintf(" %s '%s' cannot be made: a name has lower-case letters, digits, '_', '-' and '.'", kind, name))
	}
	return nil
}

// halves splits the words of modify at "set" and drops "where".
func halves(list []pair) (where, set []pair) {
	to := &where
	for _, x := range list {
		switch {
		case x.key == "" && strings.EqualFold(x.value, "set"):
			to = &set
		case x.key == "" && strings.EqualFold(x.value, "where"):
			to = &where
		default:
			*to = append(*to, x)
		}
	}
	return where, set
}

const nothingToSet = " You didn't give me anything to set"

// otherCluster tells whether a condition excludes this cluster.
func (p *plan) otherCluster(x pair) bool {
	return !slices.Contains(x.lower(), strings.ToLower(p.world.cluster))
}

// common are the settings that accounts and users share.
type common struct {
	limits         status.Limits
	lines          string
	settings       []pair
	qos            *pair
	defaultQOS     *string
	defaultAccount string
	wckeys         *pair
	defaultWCKey   *string
	partitions     []string
}

// set takes a setting of limits or QOS; known is false for another word.
func (c *common) set(p *plan, x pair) (known bool, err error) {
	switch {
	case oneOf(x.key, "QosLevel", 1):
		for _, q := range x.lower() {
			if !p.world.hasQOS(q) {
				return true, refusal(fmt.Sprintf("sacctmgr: error: You gave a bad qos '%s'. Valid QOS's are %s\n Unknown option: %s\n Use keyword 'where' to modify condition", q, p.world.validQOS(), x.text))
			}
		}
		c.qos = &x
		c.lines += setting("QOS", x.value)
		return true, nil
	case x.is("DefaultQOS") && len(x.key) > 7, strings.EqualFold(x.key, "DefQOS"):
		v := strings.ToLower(x.value)
		if v == "-1" {
			v = ""
		}
		if v != "" && !p.world.hasQOS(v) {
			return true, refusal(fmt.Sprintf("You gave a bad default qos '%s'.  Use 'list qos' to get complete list.", v))
		}
		c.defaultQOS = &v
		c.lines += setting("DefQOS", x.value)
		return true, nil
	}
	line, known, err := setLimit(&c.limits, x)
	if known && err == nil {
		c.lines += line
		c.settings = append(c.settings, x)
	}
	return known, err
}

// hasQOS tells whether there is a QOS of that name; "normal" is there by itself,
// and -1 takes what is set away.
func (w *world) hasQOS(name string) bool {
	return w.qos[name] != nil || name == "normal" || name == "-1"
}

// validQOS lists the names of QOS.
func (w *world) validQOS() string {
	names := sortedNames(w.qos)
	if w.qos["normal"] == nil {
		names = append([]string{"normal"}, names...)
	}
	return strings.Join(names, ",")
}

// apply makes the settings in l.
// inherited is what may be asked for where qos is empty.
func (c *common) apply(l *status.Limits, qos *[]string, defaultQOS *string, inherited ...string) {
	for _, x := range c.settings {
		_, _, _ = setLimit(l, x) // it was right a moment ago
	}
	if c.qos != nil {
		if len(*qos) == 0 {
			*qos = inherited
		}
		*qos = changed(*qos, *c.qos)
	}
	if c.defaultQOS != nil {
		*defaultQOS = *c.defaultQOS
	}
}

func (c *common) any() bool { return len(c.settings) > 0 || c.qos != nil || c.defaultQOS != nil }

// changed is the list after =, += or -=.
func changed(list []string, x pair) []string {
	var out []string
	switch x.op {
	case "=":
		return x.lower()
	case "+":
		out = append(out, list...)
		for _, v := range x.lower() {
			if !slices.Contains(out, v) {
				out = append(out, v)
			}
		}
		return out
	}
	for _, v := range list {
		if !slices.Contains(x.lower(), v) {
			out = append(out, v)
		}
	}
	return out
}

func oneCluster(*plan, []pair) error {
	return refusal(" There is one cluster: its parameters are those of the Cluster object (kubectl edit clusters.berth.hpc)")
}

func modifyCluster(_ *plan, list []pair) error {
	if _, set := halves(list); len(set) == 0 || set[0].key == "" {
		return refusal(nothingToSet)
	}
	return oneCluster(nil, nil)
}
