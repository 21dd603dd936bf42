package leadapi

import (
	"bytes"
	"net"
	"runtime"
	"strconv"
	"testing"
)

// inFlight is how many requests the benchmarks keep in inFlight at least.
const inFlight = 64

// BenchmarkCreate measures creates of ten content keys by 64 workers. The service's
// side runs in this process and does as little as it can, but it is measured, too.
func BenchmarkCreate(b *testing.B) {
	content := make([]ContentField, 0, 10)
	for i := range 10 {
		content = append(content, ContentField{Key: "field" + strconv.Itoa(i), Value: "a value of twenty-five."})
	}
	lead := &CreateRequest{
		OrganizationID: "0b1c2d3e-0000-4000-8000-000000000001", Content: content,
		TypeKey: "contact-form", TypeLabel: "Contact form", Status: "inProgress",
	}
	body := `{"leadID":"5f1d7a2c-0b6e-4c3e-9a58-1f2e3d4c5b6a","assignedOrganizationID":"org-1","assignedLocationName":""}`
	benchCalls(b, answerText(201, body), func(c *Client) error {
		_, err := c.Create(b.Context(), lead)
		return err
	})
}

// BenchmarkUpdate measures links: updates of the ExternalID, answered with the Lead.
func BenchmarkUpdate(b *testing.B) {
	external := "crm-000000042"
	link := &UpdateRequest{ExternalID: &external}
	body := `{"ID":"lead-1","ReadOnly":false,"CreatedAt":"2026-03-01T08:00:00.000000Z","UpdatedAt":"2026-03-01T08:00:01.000000Z",` +
		`"OwnerID":"org-1","Content":{"name":"Ann Lee","email":"ann@example.com","phone":"+15550100"},"Impressions":0,"IsTestLead":false,` +
		`"Location":{"Name":"","Address":""},"RequestMeta":{"ContentType":"application/json","Host":"","IP":"","Locale":"","URL":"","UserAgent":""},` +
		`"Source":"lead-collector","Status":"open","Stage":"lead","TypeKey":"form","TypeLabel":"Form","Views":0,"ExternalID":"crm-000000042","DisplayName":""}`
	benchCalls(b, answerText(200, body), func(c *Client) error {
		_, err := c.Update(b.Context(), "lead-1", link)
		return err
	})
}

func benchCalls(b *testing.B, answer string, call func(*Client) error) {
	whole := []byte(answer)
	p := listen(b, func(_ *peer, c net.Conn) { echo(c, whole) })
	each := (inFlight + runtime.GOMAXPROCS(0) - 1) / runtime.GOMAXPROCS(0)
	config := config(p.address())
	config.Concurrency = each * runtime.GOMAXPROCS(0)
	client := signedIn(b, config)
	b.SetParallelism(each)
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := call(client); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
}

// echo gives the same answer to every request of a connection, but no create the lead of the one before. A request comes whole in
// one read as a rule; what is missing is waited for.
func echo(c net.Conn, answer []byte) {
	buf, other := make([]byte, 16<<10), bytes.Replace(answer, []byte(`"leadID":"5`), []byte(`"leadID":"6`), 1)
	for have := 0; ; answer, other = other, answer {
		n, err := c.Read(buf[have:])
		if err != nil {
			return
		}
		for have += n; have < length(buf[:have]) && err == nil; have += n {
			n, err = c.Read(buf[have:])
		}
		have = 0
		if _, err := c.Write(answer); err != nil {
			return
		}
	}
}

// length is how long the request is that b begins with; more than b has while its head
// is not whole.
func length(b []byte) int {
	head := bytes.Index(b, []byte("\r\n\r\n"))
	if head < 0 {
		return len(b) + 1
	}
	_, rest, _ := bytes.Cut(b[:head+2], []byte("Content-Length: "))
	digits, _, _ := bytes.Cut(rest, []byte("\r\n"))
	n, _ := strconv.Atoi(string(digits)) // 0 where there is no body
	return head + len("\r\n\r\n") + n
}
