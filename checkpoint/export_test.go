package checkpoint

// Encode is a witness as it is written, for the tests beside.
func (w *Witness) Encode() ([]byte, error) { return w.encode() }
