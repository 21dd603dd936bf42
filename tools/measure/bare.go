package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sync/errgroup"

	"leadferry/tools/must"
)

// bare is a fast client that is written by hand: a CSV reader, a mapping in code, and net/http with connections that
// stay open. It remembers nothing: if it dies, nobody knows what it sent.
type bare struct {
	client *http.Client
	url    string
	token  string
	bodies sync.Pool
	made   atomic.Int64
}

func runBare(ctx context.Context, args []string, s streams) (err error) {
	defer must.Catch(&err)
	set := flags("bare", s)
	url := set.String("url", "", "the service")
	workers := set.Int("c", 64, "requests in flight")
	f := openFile(set, args)
	defer f.Close()
	transport := &http.Transport{MaxIdleConnsPerHost: *workers, MaxConnsPerHost: *workers, DisableCompression: true}
	defer transport.CloseIdleConnections()
	b := &bare{client: &http.Client{Transport: transport}, url: *url}
	b.bodies.New = func() any { return new([]byte) }
	var answer struct {
		AccessToken string `json:"access_token"`
	}
	token := b.url + "/v3/oauth2/token?grant_type=client_credentials&client_id=bare&client_secret=bare"
	must.Do(b.post(ctx, token, nil, http.StatusOK, &answer))
	b.token = "Bearer " + answer.AccessToken
	must.Do(b.send(ctx, f, *workers))
	must.Get(fmt.Fprintln(s.out, b.made.Load()))
	return nil
}

// send sends one request for each row. The first error ends it.
func (b *bare) send(ctx context.Context, in io.Reader, workers int) error {
	group, ctx := errgroup.WithContext(ctx)
	ready := make(chan *[]byte, workers)
	for range workers {
		group.Go(func() error {
			for body := range ready {
				if err := b.create(ctx, *body); err != nil {
					return err
				}
				b.bodies.Put(body)
			}
			return nil
		})
	}
	group.Go(func() error {
		defer close(ready)
		return b.read(ctx, in, ready)
	})
	return group.Wait()
}

func (b *bare) read(ctx context.Context, in io.Reader, ready chan<- *[]byte) error {
	r := csv.NewReader(in)
	r.ReuseRecord = true
	if _, err := r.Read(); err != nil {
		return err
	}
	for {
		cells, err := r.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		body := b.bodies.Get().(*[]byte)
		if *body, err = appendBody((*body)[:0], cells); err != nil {
			return err
		}
		select {
		case ready <- body:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// appendBody does in code what mappingFile says.
func appendBody(b []byte, cells []string) ([]byte, error) {
	stage, known := statusOf[cells[colStage]]
	if !known || !strings.Contains(cells[colEmail], "@") {
		return nil, errors.New("a row does not fit")
	}
	b = appendMember(append(b, '{'), "organizationID", cells[colDealer])
	b = append(b, `,"content":{`...)
	b = appendMember(b, "name", cells[colFirst]+" "+cells[colLast])
	for _, m := range [...][2]string{
		{"email", cells[colEmail]},
		{"phone", cells[colPhone]},
		{"postalCode", cells[colZip]},
		{"city", cells[colCity]},
		{"country", "DE"},
		{"model", cells[colModel]},
		{"message", cells[colMessage]},
		{"requestedAt", cells[colRequested]},
		{"source", "website"},
	} {
		b = appendMember(append(b, ','), m[0], m[1])
	}
	b = append(b, `},"typeKey":"contact-form","typeLabel":"Contact form",`...)
	return append(appendMember(b, "status", stage), '}'), nil
}

func appendMember(b []byte, name, value string) []byte {
	b = append(append(append(b, '"'), name...), `":`...)
	b, _ = jsontext.AppendQuote(b, value) // fails only for invalid UTF-8, which the generator does not write
	return b
}

func (b *bare) create(ctx context.Context, body []byte) error {
	var answer struct {
		LeadID string `json:"leadID"`
	}
	if err := b.post(ctx, b.url+"/v1/trunk", body, http.StatusCreated, &answer); err != nil {
		return err
	}
	if answer.LeadID == "" {
		return errors.New("an answer without a lead ID")
	}
	b.made.Add(1)
	return nil
}

// post sends one request and reads its answer to the end, so that the connection stays open.
func (b *bare) post(ctx context.Context, url string, body []byte, want int, answer any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if b.token != "" {
		req.Header.Set("Authorization", b.token)
	}
	res, err := b.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode != want {
		return fmt.Errorf("answered with %s", res.Status)
	}
	return json.Unmarshal(text, answer)
}

// someBody returns the request of the first row of every file.
func someBody() ([]byte, error) {
	var row [columns]string
	leadFile{}.fill(&row, 0, rand.New(rand.NewPCG(1, 0)))
	return appendBody(nil, row[:])
}
