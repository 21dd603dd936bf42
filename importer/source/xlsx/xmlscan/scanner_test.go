package xmlscan

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// scan writes the tokens of a document, up to its end or its first error.
func scan(in io.Reader) (tokens []string, err error) {
	s := New(in)
	for {
		kind, err := s.Next()
		switch {
		case errors.Is(err, io.EOF):
			return tokens, nil
		case err != nil:
			return tokens, err
		case kind == Text:
			tokens = append(tokens, fmt.Sprintf("%q", s.Text()))
		case kind == End:
			tokens = append(tokens, "/")
		default:
			tag := fmt.Sprintf("<%s", s.Name())
			for _, a := range s.Attributes() {
				tag += fmt.Sprintf(" %s=%q", a.Name, a.Value)
			}
			tokens = append(tokens, tag)
		}
	}
}

// byLibrary does the same by encoding/xml, with elements that have to be closed as they were opened.
func byLibrary(text string) (tokens []string, err error) {
	d := xml.NewDecoder(strings.NewReader(text))
	var open []xml.Name
	for {
		token, err := d.RawToken()
		if errors.Is(err, io.EOF) && len(open) == 0 {
			return tokens, nil
		}
		if err != nil {
			return tokens, err
		}
		switch t := token.(type) {
		case xml.CharData:
			tokens = append(tokens, fmt.Sprintf("%q", []byte(t)))
		case xml.StartElement:
			tag := "<" + t.Name.Local
			for _, a := range t.Attr {
				tag += fmt.Sprintf(" %s=%q", a.Name.Local, a.Value)
			}
			tokens, open = append(tokens, tag), append(open, t.Name)
			if len(open) > maxNest {
				return tokens, ErrNest
			}
		case xml.EndElement:
			last := len(open) - 1
			if last < 0 || open[last] != t.Name {
				return tokens, ErrSyntax
			}
			tokens, open = append(tokens, "/"), open[:last]
		case xml.Directive:
			return tokens, ErrDoctype
		}
	}
}

// documents are the beginnings of all that XML can do, and of what it cannot.
var documents = []string{
	``, ` `, `<a/>`, `<a></a>`, `<a b="1" c='2'/>`, `<a b = "1"c="2"></a >`, `<x:a y:b="1"></x:a>`, `<a><b/>t</a>`, "\uFEFF<a/>",
	`<?xml version="1.0" encoding="UTF-8" standalone="yes"?><a/>`, `<?xml version="1.1"?><a/>`, `<?xml encoding="latin1"?><a/>`, `<?xml encoding="?><a/>`,
	`<a>&lt;&gt;&amp;&apos;&quot;&#65;&#x41;&#10;</a>`, `<a b="&lt;&#13;"/>`, `<a>&nbsp;</a>`, `<a>&#0;</a>`, `<a>&#xD800;</a>`, `<a>&#xFFFF;</a>`, `<a>&#1114112;</a>`, `<a>&amp</a>`, `<a>&</a>`, `<a>&#;</a>`,
	"<a>1\r\n2\r3\n</a>", "<a b='\r\n'/>", "<a>\r&#10;</a>", "<a><![CDATA[\r\n<&>]]]]></a>", "<a>]]></a>", "<a>]]&gt;</a>", `<a b="]]>"/>`, `<a><![CDATA[x</a>`, `<a><![cdata[]]></a>`, `<![CDATA[]]>`,
	`<!-- c --><a/>`, `<!-- -- --><a/>`, `<!--><a/>`, `<!---->`, `<!--->`, `<!- x>`, `<!DOCTYPE a><a/>`, `<!ENTITY x "y">`, `<![`, `<!`, `<?x?>`, `<??>`, `<?x`, `<? x?>`, `<?a::b?>`, `<a::b/>`, `<a b:c:d="1"/>`,
	`<a`, `<a b`, `<a b=`, `<a b=1>`, `<a b="1`, `<a b="<"/>`, `<a b=">"/>`, `<a / >`, `<a/b>`, `< a>`, `<1a/>`, `<-a/>`, `<a:b:c/>`, `<:a/>`, `<a:/>`, `<a.b-c_d/>`, `<a =""/>`,
	`</a>`, `<a></b>`, `<a></x:a>`, `<a></a b>`, `<a></ a>`, `<a><b></a></b>`, `<a>`, `text`, `<a/>text`, `<a/><b/>`, "<a>\x00</a>", "<a>\x1f</a>", "<a>\x7f</a>", "<a>\xff</a>", "<a>\uFFFE</a>", "<a>é中😀</a>", "<a>\xc3&#x80;</a>",
	"<a>" + strings.Repeat("<b>", 70), `<a b="'" c='"'/>`, "<a\tb='1'\n/>",
}

// Whatever encoding/xml reads is read as it does, and the rest is refused.
func TestReadsAsTheLibraryDoes(t *testing.T) {
	for _, text := range documents {
		compare(t, text)
	}
}

func FuzzScanner(f *testing.F) {
	for _, text := range documents {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { compare(t, text) })
}

func compare(t *testing.T, text string) {
	t.Helper()
	want, wantErr := byLibrary(text)
	got, err := scan(strings.NewReader(text))
	if foreignName := wantErr != nil && strings.Contains(wantErr.Error(), "invalid XML name"); foreignName {
		return
	}
	if (err != nil) != (wantErr != nil) {
		t.Fatalf("%q: %v instead of %v", text, err, wantErr)
	}
	if err == nil && !cmp.Equal(want, got) {
		t.Fatalf("%q: %s", text, cmp.Diff(want, got))
	}
	slowly, slowErr := scan(iotest.OneByteReader(strings.NewReader(text)))
	if !errors.Is(slowErr, err) || !cmp.Equal(got, slowly) {
		t.Fatalf("%q, byte by byte: %v, %s", text, slowErr, cmp.Diff(got, slowly))
	}
}

func TestLongTokens(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want error
	}{
		"text of many reads":    {"<a>" + strings.Repeat("x", 150<<10) + "</a>", nil},
		"tag of many reads":     {`<a b="` + strings.Repeat("x", 150<<10) + `"/>`, nil},
		"comment of many reads": {"<a><!--" + strings.Repeat("x", 150<<10) + "--></a>", nil},
		"text":                  {"<a>" + strings.Repeat("x", MaxToken+1) + "</a>", ErrLong},
		"tag":                   {`<a b="` + strings.Repeat("x", MaxToken+1) + `"/>`, ErrLong},
		"levels":                {strings.Repeat("<a>", maxNest+1), ErrNest},
		"document type":         {"<!DOCTYPE a>", ErrDoctype},
		"cut":                   {"<a><b>", ErrSyntax},
	} {
		if _, err := scan(strings.NewReader(test.text)); !errors.Is(err, test.want) {
			t.Errorf("%s: %v instead of %v", name, err, test.want)
		}
	}
	broken := errors.New("broken disk")
	if _, err := scan(io.MultiReader(strings.NewReader("<a>"), iotest.ErrReader(broken))); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}
