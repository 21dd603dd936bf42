package e2e

import (
	"encoding/xml"
	"io"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// firstNight makes the checkpoint of the target, where a schedule names none, and runs the sync.
func (m *machine) firstNight(args []string) {
	m.t.Helper()
	samples := filepath.Join(root(m.t), "samples")
	m.must(0, "import", "-m", filepath.Join(samples, "leads.yaml"), filepath.Join(samples, "leads.csv"), "--out", "none")
	c := exec.Command(binary(), args...)
	c.Dir = m.here("/var/lib/leadferry")
	out, told := m.night(c)
	if lines := objects(m.t, told); len(lines) != 1 || lines[0]["exit_code"] != 1.0 || out != "" {
		m.t.Errorf("the log has %q and %q", out, told)
	}
	if runs, err := filepath.Glob(filepath.Join(c.Dir, "leadferry-runs", "*-sync-*")); err != nil || len(runs) != 1 {
		m.t.Errorf("runs: %v, %v", runs, err)
	}
}

// TestTheWindowsTask reads what the Task Scheduler does, as far as it decides on a run, and runs its command.
func TestTheWindowsTask(t *testing.T) {
	t.Parallel()
	var task struct {
		XMLName  xml.Name `xml:"http://schemas.microsoft.com/windows/2004/02/mit/task Task"`
		Logon    string   `xml:"Principals>Principal>LogonType"`
		Start    string   `xml:"Triggers>CalendarTrigger>StartBoundary"`
		Days     int      `xml:"Triggers>CalendarTrigger>ScheduleByDay>DaysInterval"`
		Limit    string   `xml:"Settings>ExecutionTimeLimit"`
		Second   string   `xml:"Settings>MultipleInstancesPolicy"`
		Command  string   `xml:"Actions>Exec>Command"`
		Words    string   `xml:"Actions>Exec>Arguments"`
		WorkedIn string   `xml:"Actions>Exec>WorkingDirectory"`
	}
	d := xml.NewDecoder(strings.NewReader(sampleText(t, "leadferry-sync.xml")))
	if err := d.Decode(&task); err != nil {
		t.Fatal(err)
	}
	if _, err := time.Parse("2006-01-02T15:04:05", task.Start); err != nil || task.Days != 1 || task.Logon != "Password" || task.Second != "IgnoreNew" ||
		!strings.HasSuffix(task.Command, `\leadferry.exe`) || task.WorkedIn == "" {
		t.Errorf("%+v, %v", task, err)
	}
	args := strings.Fields(task.Words)
	orderly(t, args, duration(t, strings.ToLower(strings.TrimPrefix(task.Limit, "PT"))), time.Hour) // it gives no word before
	m := newMachine(t)
	words := strings.NewReplacer(" --profile nightly", "", `C:\leadferry\metrics`, "/var/lib/leadferry", `C:\leadferry`, "/etc/leadferry", `C:\Exports`, "/srv/crm", `\`, "/").Replace(task.Words)
	m.firstNight(strings.Fields(m.here(words)))
}

// property is a value of a property list: one text, or the texts in it.
type property []string

// properties are the values of the outermost dict of a property list, by key; those of a dict in it are its keys and values.
func properties(t *testing.T, text string) map[string]property {
	t.Helper()
	values, key, deep := map[string]property{}, "", 0
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
		token, err := d.Token()
		if err == io.EOF {
			return values
		}
		if err != nil {
			t.Fatal(err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			switch e.Name.Local {
			case "dict", "array":
				deep++
				continue
			case "plist":
				continue
			}
			var text string
			if err := d.DecodeElement(&text, &e); err != nil {
				t.Fatal(err)
			}
			if e.Name.Local == "key" && deep == 1 {
				key = text
			} else {
				values[key] = append(values[key], text)
			}
		case xml.EndElement:
			if e.Name.Local != "plist" {
				deep--
			}
		}
	}
}

// TestTheLaunchdAgent reads what launchd does, and runs its command.
func TestTheLaunchdAgent(t *testing.T) {
	t.Parallel()
	p := properties(t, sampleText(t, "leadferry.sync.plist"))
	number := func(name string) int {
		n, err := strconv.Atoi(strings.Join(p[name], " "))
		if err != nil {
			t.Error(name, err)
		}
		return n
	}
	if p["Label"][0] != "leadferry.sync" || number("Umask") != 0o077 || strings.Join(p["StartCalendarInterval"], " ") != "Hour 3 Minute 10" {
		t.Errorf("%v", p)
	}
	args := p["ProgramArguments"][1:]
	orderly(t, args, 24*time.Hour, time.Duration(number("ExitTimeOut"))*time.Second) // launchd ends none by itself
	m := newMachine(t)
	for i := 0; i < len(p["EnvironmentVariables"]); i += 2 {
		if name, value := p["EnvironmentVariables"][i], p["EnvironmentVariables"][i+1]; name != "LEADFERRY_CLIENT_SECRET_COMMAND" { // there is no keychain
			m.setting(name, value)
		} else if !strings.HasPrefix(value, "/usr/bin/security ") {
			t.Error(value)
		}
	}
	var words []string
	for _, a := range args {
		words = append(words, m.here(a))
	}
	m.firstNight(words)
}
