package xmlscan

// NextChild goes on to the next element inside the present one, if there is one more, over the text between.
func (s *Scanner) NextChild() (more bool, err error) {
	for {
		switch kind, err := s.Next(); {
		case err != nil:
			return false, err
		case kind != Text:
			return kind == Start, nil
		}
	}
}

// Children calls visit for each element inside the present one. It reads or skips it.
func (s *Scanner) Children(visit func() error) error {
	for {
		more, err := s.NextChild()
		if more && err == nil {
			err = visit()
		}
		if !more || err != nil {
			return err
		}
	}
}

// Skip passes over the rest of the present element.
func (s *Scanner) Skip() error {
	for depth := 1; depth > 0; {
		switch kind, err := s.Next(); {
		case err != nil:
			return err
		case kind == Start:
			depth++
		case kind == End:
			depth--
		}
	}
	return nil
}

// Characters gives the text of the present element to gather, piece by piece, without that of elements inside it.
func (s *Scanner) Characters(gather func([]byte) error) error {
	for {
		kind, err := s.Next()
		switch {
		case err != nil:
		case kind == Text:
			err = gather(s.text)
		case kind == Start:
			err = s.Skip()
		default:
			return nil
		}
		if err != nil {
			return err
		}
	}
}
