package source

import "errors"

// jsonLines reads one JSON object a line.
type jsonLines struct {
	in      *window
	objects *jsonObjects
}

// next reads the next line that is not blank.
func (j *jsonLines) next(r *Row) error {
	line, err := j.in.first()
	long := errors.Is(err, errTooLong)
	if long {
		line, err = j.in.bytes(j.in.max), nil
	}
	if err != nil {
		return err
	}
	r.Line = j.in.number
	r.Raw = string(body(line))
	r.Problem = j.problem(line, long, r)
	j.in.pass(len(line))
	if long {
		j.in.passLine()
	}
	return nil
}

// problem makes the row of a line, or tells why it is none.
func (j *jsonLines) problem(line []byte, long bool, r *Row) *Problem {
	if long {
		return tooLong(j.in.max)
	}
	if p := j.in.badText(len(line)); p != nil {
		return j.in.hinted(p, len(line))
	}
	if err := j.objects.row(body(line), r); err != nil {
		return badJSON("line", err)
	}
	return nil
}
