package frontproxy

// Forget makes a verify every certificate again.
func Forget(a *Authenticator) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.verified = nil
}
