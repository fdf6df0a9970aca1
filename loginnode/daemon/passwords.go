package daemon

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/berth-hpc/berth/loginnode"
)

// config has passwords verified by a directory; nil: there are none.
func (w *Passwords) config(c *loginnode.Config, p Peers) error {
	if w == nil {
		return nil
	}
	if p.Passwords == nil || len(w.LDAP) == 0 {
		return errors.New("passwords: set ldap")
	}
	text, err := json.Marshal(w.LDAP)
	if err != nil {
		return err
	}
	if c.Password, err = p.Passwords(text); err != nil {
		return fmt.Errorf("passwords: %w", err)
	}
	c.Prompts, c.PasswordRate = w.Prompts, w.Rate.rate()
	if c.PasswordRate.PerSecond < 0 || c.PasswordRate.Burst < 0 {
		return errors.New("passwords: a rate must not be negative")
	}
	return nil
}
