package pages

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// shown is what the DOM of a page says about rows.
type shown struct {
	Rows map[string]string // by outcome
}

const readBack = `({
	rows: Object.fromEntries([...document.querySelectorAll('#rows tr')].map(r => [r.querySelector('th span').textContent, r.querySelector('.num')?.textContent ?? '0']))})`

// Page, terminal, summary and results show the same numbers, after faults, limits and interruptions, too.
func TestNumbersAgree(t *testing.T) {
	t.Parallel()
	b := open(t)
	for i := range 8 {
		d := newDesk(t)
		seed := uint64(i) + uint64(time.Now().UnixNano())
		random := rand.New(rand.NewPCG(seed, 1))
		faults := []string{"create.422/7", "create.422/9,429/20,retry-after=0", "create.drop-stored/40", "create.503/3", "create.500-stored/60", "token.500/2"}
		_, settings := d.start("sandbox", "--addr", "127.0.0.1:0", "--web", "--latency", "2ms", "--faults", faults[random.IntN(len(faults))])
		d.take(settings)
		d.write("leads.yaml", crmMapping)
		d.write("leads.csv", crm(400, 0))
		args := []string{"import", "-m", "leads.yaml", "leads.csv", "--out", "run", "-c", strconv.Itoa(1 + random.IntN(8)), "--retries", "1"}
		args = append(args, [][]string{nil, {"--limit", "150"}, {"--max-rejects", "5"}, {"--max-duration", "300ms"}, {"--max-creates", "77"}}[random.IntN(5)]...)
		c := d.command(args...)
		var said strings.Builder
		c.Stdout = &said
		must(t, c.Start())
		stop := time.AfterFunc(time.Duration(random.IntN(3000))*time.Millisecond, func() { _ = c.Process.Signal(os.Interrupt) })
		_ = c.Wait() // any exit code is right
		stop.Stop()
		if _, err := os.Stat(d.path("run/summary.json")); err != nil {
			continue // interrupted before the run began
		}
		s := d.summary("run/summary.json")
		rows := map[string]int{}
		for name, n := range s["rows"].(map[string]any) {
			rows[name] = int(n.(float64))
		}
		what := fmt.Sprintf("seed %d, %v: ", seed, args)
		for name, n := range resultsOf(t, filepath.Join(d.folder, "run/results.csv")) {
			if rows[name] != n {
				t.Errorf("%s%d rows %s in the results, %d in the summary", what, n, name, rows[name])
			}
		}
		page := b.read(t, d.onDisk("run/report.html"))
		for name, n := range rows {
			printed := regexp.MustCompile(`(?m)^ *([0-9,]+)  ` + name + `( |$)`).FindStringSubmatch(said.String())
			switch {
			case n == 0 && page.Rows[name] == "":
			case number(page.Rows[name]) != n:
				t.Errorf("%spage: %q rows %s, summary: %d", what, page.Rows[name], name, n)
			case printed == nil || number(printed[1]) != n:
				t.Errorf("%sterminal: %q rows %s, summary: %d\n%s", what, printed, name, n, &said)
			}
		}
	}
}

func number(figure string) int {
	n, _ := strconv.Atoi(strings.ReplaceAll(figure, ",", ""))
	return n
}

func (b *browser) read(t *testing.T, address string) (s shown) {
	t.Helper()
	ctx, _, shut := b.tab(t, looks()[0], address)
	defer shut()
	must(t, chromedp.Do(ctx, chromedp.Navigate(address)))
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string]("JSON.stringify("+readBack+")"))
	must(t, err)
	must(t, json.Unmarshal([]byte(text), &s))
	return s
}

// resultsOf counts rows of a results file by outcome.
func resultsOf(t *testing.T, path string) map[string]int {
	t.Helper()
	f, err := os.Open(path)
	must(t, err)
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	must(t, err)
	counts := map[string]int{}
	for _, line := range lines[1:] {
		counts[line[4]]++
	}
	return counts
}

// TestPictures makes the pictures of docs: PAGES_PICTURES=../../docs/pictures go test ./pages -run TestPictures
func TestPictures(t *testing.T) {
	folder := os.Getenv("PAGES_PICTURES")
	if folder == "" {
		t.Skip("PAGES_PICTURES names no folder")
	}
	b := open(t)
	d := newDesk(t)
	samples, err := filepath.Abs("../../samples")
	must(t, err)
	must(t, os.CopyFS(d.path("samples"), os.DirFS(samples)))
	_, settings := d.start("sandbox", "--addr", "127.0.0.1:0", "--web", "--latency", "40ms", "--faults", "create.drop-stored/90,429/40,retry-after=0")
	d.take(settings)
	d.run(1, "validate", "-m", "samples/leads.yaml", "samples/leads-with-mistakes.csv", "--out", "validate")
	d.run(5, "import", "-m", "samples/leads.yaml", "samples/leads.csv", "--out", "import", "--yes", "--rate", "50")
	_ = d.command("sync", "-m", "samples/crm.yaml", "samples/crm-export.csv", "--out", "sync", "--reopen", "hold").Run()
	_ = d.command("reconcile", "-m", "samples/crm.yaml", "samples/crm-export.csv", "--out", "reconcile").Run()
	must(t, os.MkdirAll(folder, 0o755))
	for _, name := range []string{"validate", "import", "sync", "reconcile"} {
		address := d.onDisk(name + "/report.html")
		ctx, _, shut := b.tab(t, look{name: name, width: 1000, scheme: "light"}, address)
		must(t, chromedp.Do(ctx, chromedp.Navigate(address)))
		_, err := chromedp.Run(ctx, chromedp.Evaluate[int](fmt.Sprintf( // hides this machine's folder
			`[...document.querySelectorAll('pre, td, p')].map(e => e.innerHTML = e.innerHTML.replaceAll(%q, '/home/ann')).length`, d.folder)))
		must(t, err)
		png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
		shut()
		must(t, err)
		must(t, os.WriteFile(filepath.Join(folder, name+".png"), png, 0o644))
	}
}
