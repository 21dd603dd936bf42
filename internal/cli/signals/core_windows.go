package signals

// noCore does nothing: Windows writes images of the memory only on request.
func noCore() {}
