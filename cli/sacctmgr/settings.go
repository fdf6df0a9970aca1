package sacctmgr

import (
	"strings"

	"github.com/berth-hpc/berth/internal/keyvalue"
	"github.com/berth-hpc/berth/translate/status"
)

// settings are what a command sets of associations: limits and QOS. They are
// parsed once and applied to each association.
type settings struct {
	state      *state
	shown      strings.Builder
	limits     []keyvalue.Pair
	qos        *keyvalue.Pair
	defaultQOS *string
}

// associationSettings are the settings of an association beside its limits.
var associationSettings = keyvalue.Table[*settings]{
	{Name: "QosLevel", Least: 1, Set: (*settings).setQOS},
	{Name: "DefaultQOS", Least: 8, Set: (*settings).setDefaultQOS},
	{Name: "DefQOS", Set: (*settings).setDefaultQOS},
}

// parse parses a setting; known is false for a word that is none.
func (c *settings) parse(p keyvalue.Pair) (known bool, err error) {
	if known, err = associationSettings.Set(c, p); known {
		return known, err
	}
	line, known, err := setLimit(&status.Limits{}, p)
	if known && err == nil {
		c.shown.WriteString(line)
		c.limits = append(c.limits, p)
	}
	return known, err
}

// parseOrRefuse parses a setting and refuses a word that is none.
func (c *settings) parseOrRefuse(p keyvalue.Pair) error {
	known, err := c.parse(p)
	if err == nil && !known {
		err = unknownOption(p)
	}
	return err
}

func (c *settings) setQOS(p keyvalue.Pair) error {
	for _, q := range p.LowerList() {
		if !c.state.acceptsQOS(q) {
			return invalidOption(p, "sacctmgr: error: You gave a bad qos '%s'. Valid QOS's are %s", q,
				c.state.validQOS())
		}
	}
	c.qos = &p
	c.shown.WriteString(settingLine("QOS", p.Value))
	return nil
}

func (c *settings) setDefaultQOS(p keyvalue.Pair) error {
	name := strings.ToLower(p.Value)
	if name == "-1" {
		name = ""
	}
	if name != "" && !c.state.acceptsQOS(name) {
		return refusef("You gave a bad default qos '%s'.  Use 'list qos' to get complete list.", name)
	}
	c.defaultQOS = &name
	c.shown.WriteString(settingLine("DefQOS", p.Value))
	return nil
}

// apply applies the settings to an association. inherited is the list of QOS
// that += and -= start from where the association has none.
func (c *settings) apply(l *status.Limits, qos *[]string, defaultQOS *string, inherited ...string) {
	for _, p := range c.limits {
		_, _, _ = setLimit(l, p) // parse has checked it
	}
	if c.qos != nil {
		if len(*qos) == 0 {
			*qos = inherited
		}
		*qos = keyvalue.Change(*qos, c.qos.Op, c.qos.LowerList())
	}
	if c.defaultQOS != nil {
		*defaultQOS = *c.defaultQOS
	}
}

// empty reports whether the command sets nothing of associations.
func (c *settings) empty() bool { return len(c.limits) == 0 && c.qos == nil && c.defaultQOS == nil }
