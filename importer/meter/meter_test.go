package meter

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"leadferry/importer/report"
)

func timelineOf(m *Meter) []report.Bucket {
	var s report.Summary
	m.Report(&s)
	return s.Timeline
}

// Whatever happens when, a timeline loses nothing, stays within its size and has no gaps.
func TestTimelineAddsUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		line := New(began)
		now, rows, calls, retries := began, 0, 0, 0
		var paused time.Duration
		for range rapid.IntRange(0, 300).Draw(t, "steps") {
			step := time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "later"))
			now = now.Add(step)
			switch rapid.IntRange(0, 2).Draw(t, "what") {
			case 0:
				before := line.sampled
				waits := rapid.Bool().Draw(t, "waits")
				rows += rapid.IntRange(0, 10_000).Draw(t, "rows")
				line.Sample(now, rows, waits)
				if waits {
					paused += now.Sub(before)
				}
			case 1:
				calls++
				line.at(now.Add(-time.Second)).count(time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "took")))
			case 2:
				retries++
				line.at(now).retries++
			}
		}
		line.Sample(now, rows, false)
		list := timelineOf(line)
		if len(list) > report.MostBuckets {
			t.Fatalf("%d buckets", len(list))
		}
		var all report.Bucket
		for i, b := range list {
			all.Rows, all.Requests, all.Retries, all.Paused = all.Rows+b.Rows, all.Requests+b.Requests, all.Retries+b.Retries, all.Paused+b.Paused
			if !b.Time.Equal(began.Add(time.Duration(i)*line.width)) || b.Rows < 0 || b.P50 > b.P95 || b.P95 > b.P99 {
				t.Fatalf("bucket %d of %s is %+v", i, line.width, b)
			}
		}
		if all.Rows != rows || all.Requests != calls || all.Retries != retries || sum(line.spans).requests != calls {
			t.Fatalf("%+v, want %d rows, %d calls, %d retries", all, rows, calls, retries)
		}
		if off := all.Paused - paused.Seconds(); off < -0.5 || off > 0.5 {
			t.Fatalf("paused for %v s, want %s", all.Paused, paused)
		}
	})
}
