package daemon

// collectRarely makes the collector of garbage see so many bytes more than there
// are: they are reserved and never touched, so they take no memory. Package ssh
// allocates each packet that it reads; with the few MB that a server of few
// sessions holds, the collector would run each few MB of an upload, and take a
// third of its processor time. Where there are many sessions it changes little.
//
// The caller keeps what is returned for as long as it is to have an effect.
func collectRarely() []byte { return make([]byte, 16<<20) }
