package e2e

import (
	"errors"
	"io"
	"os/exec"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"
)

// The part of the published types that the sample uses; any other field is refused,
// so that a misspelt or misplaced one is found.
type (
	meta struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Metadata   struct{ Name string }
	}
	claim struct {
		meta `yaml:",inline"`
		Spec struct {
			AccessModes []string `yaml:"accessModes"`
			Resources   resources
		}
	}
	resources struct{ Requests, Limits map[string]string }
	cronJob   struct {
		meta `yaml:",inline"`
		Spec struct {
			Schedule                   string
			TimeZone                   string `yaml:"timeZone"`
			ConcurrencyPolicy          string `yaml:"concurrencyPolicy"`
			StartingDeadlineSeconds    int    `yaml:"startingDeadlineSeconds"`
			SuccessfulJobsHistoryLimit int    `yaml:"successfulJobsHistoryLimit"`
			FailedJobsHistoryLimit     int    `yaml:"failedJobsHistoryLimit"`
			JobTemplate                struct {
				Spec struct {
					BackoffLimit          *int `yaml:"backoffLimit"`
					ActiveDeadlineSeconds int  `yaml:"activeDeadlineSeconds"`
					Template              struct{ Spec pod }
				}
			} `yaml:"jobTemplate"`
		}
	}
	pod struct {
		RestartPolicy                 string `yaml:"restartPolicy"`
		TerminationGracePeriodSeconds int    `yaml:"terminationGracePeriodSeconds"`
		AutomountServiceAccountToken  bool   `yaml:"automountServiceAccountToken"`
		EnableServiceLinks            bool   `yaml:"enableServiceLinks"`
		SecurityContext               struct {
			RunAsNonRoot        bool              `yaml:"runAsNonRoot"`
			RunAsUser           int               `yaml:"runAsUser"`
			RunAsGroup          int               `yaml:"runAsGroup"`
			FSGroup             int               `yaml:"fsGroup"`
			FSGroupChangePolicy string            `yaml:"fsGroupChangePolicy"`
			SeccompProfile      map[string]string `yaml:"seccompProfile"`
		} `yaml:"securityContext"`
		Containers []container
		Volumes    []volume
	}
	container struct {
		Name, Image     string
		WorkingDir      string `yaml:"workingDir"`
		Command, Args   []string
		Env             []variable
		Resources       resources
		SecurityContext struct {
			AllowPrivilegeEscalation bool `yaml:"allowPrivilegeEscalation"`
			ReadOnlyRootFilesystem   bool `yaml:"readOnlyRootFilesystem"`
			Capabilities             struct{ Drop []string }
		} `yaml:"securityContext"`
		VolumeMounts []struct {
			Name      string
			MountPath string `yaml:"mountPath"`
			ReadOnly  bool   `yaml:"readOnly"`
		} `yaml:"volumeMounts"`
	}
	variable struct {
		Name, Value string
		ValueFrom   struct {
			SecretKeyRef struct{ Name, Key string } `yaml:"secretKeyRef"`
		} `yaml:"valueFrom"`
	}
	volume struct {
		Name                  string
		PersistentVolumeClaim struct {
			ClaimName string `yaml:"claimName"`
			ReadOnly  bool   `yaml:"readOnly"`
		} `yaml:"persistentVolumeClaim"`
		ConfigMap struct{ Name string } `yaml:"configMap"`
	}
)

// manifests are the objects of the samples: the claim, and the jobs of the sync and of the reconciliation.
func manifests(t *testing.T) (c claim, jobs map[string]*cronJob) {
	t.Helper()
	jobs = map[string]*cronJob{"sync": {}, "reconcile": {}}
	for name, all := range map[string][]any{"leadferry-cronjob.yaml": {&c, jobs["sync"]}, "leadferry-reconcile-cronjob.yaml": {jobs["reconcile"]}} {
		d := yaml.NewDecoder(strings.NewReader(sampleText(t, name)))
		d.KnownFields(true)
		for _, into := range all {
			if err := d.Decode(into); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if err := d.Decode(&meta{}); !errors.Is(err, io.EOF) {
			t.Errorf("%s: after the CronJob: %v", name, err)
		}
	}
	return c, jobs
}

// TestTheCronJobIsSound: it never runs twice, leaves a run its time, and has no secret
// that its user cannot read alone.
func TestTheCronJobIsSound(t *testing.T) {
	t.Parallel()
	c, jobs := manifests(t)
	for command, j := range jobs {
		t.Run(command, func(t *testing.T) { sound(t, command, &c, j) })
	}
}

func sound(t *testing.T, command string, c *claim, j *cronJob) {
	job := j.Spec.JobTemplate.Spec
	p := job.Template.Spec
	main := p.Containers[0]
	orderly(t, main.Args, time.Duration(job.ActiveDeadlineSeconds)*time.Second, time.Duration(p.TerminationGracePeriodSeconds)*time.Second)
	for rule, kept := range map[string]bool{
		"a claim":        c.Kind == "PersistentVolumeClaim" && c.APIVersion == "v1" && slices.Equal(c.Spec.AccessModes, []string{"ReadWriteOncePod"}),
		"a cron job":     j.Kind == "CronJob" && j.APIVersion == "batch/v1" && len(strings.Fields(j.Spec.Schedule)) == 5,
		"one at a time":  j.Spec.ConcurrencyPolicy == "Forbid",
		"no second try":  p.RestartPolicy == "Never" && job.BackoffLimit != nil && *job.BackoffLimit == 0,
		"not as root":    p.SecurityContext.RunAsNonRoot && p.SecurityContext.RunAsUser > 0 && p.SecurityContext.FSGroup == p.SecurityContext.RunAsGroup,
		"modes are kept": p.SecurityContext.FSGroupChangePolicy == "OnRootMismatch",
		"no privileges":  !main.SecurityContext.AllowPrivilegeEscalation && slices.Equal(main.SecurityContext.Capabilities.Drop, []string{"ALL"}),
		"its command":    main.Args[0] == command && j.Metadata.Name == "leadferry-"+command,
		"the same image": main.Image == "registry.example.com/leadferry:0.1.0",
		"its own claim":  p.Volumes[0].PersistentVolumeClaim.ClaimName == c.Metadata.Name,
	} {
		if !kept {
			t.Errorf("not so: %s", rule)
		}
	}
	mounted := mounts(t, p)
	for _, a := range main.Args {
		_, value, _ := strings.Cut(a, "=")
		if name := pathOf(a, value); name != "" && !under(mounted, name, strings.HasPrefix(a, "--checkpoint")) {
			t.Errorf("%s lies on no volume that serves it", a)
		}
	}
	if main.SecurityContext.ReadOnlyRootFilesystem && !under(mounted, main.WorkingDir+"/leadferry-runs", true) {
		t.Error("the runs' folders cannot be written")
	}
}

func pathOf(arg, value string) string {
	for _, s := range []string{arg, value} {
		if strings.HasPrefix(s, "/") {
			return s
		}
	}
	return ""
}

// mounts are the folders of the container that lie on a volume, with whether they can be written.
func mounts(t *testing.T, p pod) map[string]bool {
	t.Helper()
	writable := map[string]bool{}
	for _, m := range p.Containers[0].VolumeMounts {
		if !slices.ContainsFunc(p.Volumes, func(v volume) bool { return v.Name == m.Name }) {
			t.Errorf("there is no volume %s", m.Name)
		}
		writable[m.MountPath] = !m.ReadOnly
	}
	return writable
}

func under(mounted map[string]bool, name string, write bool) bool {
	for dir := path.Dir(name); dir != "/"; dir = path.Dir(dir) {
		if writable, ok := mounted[dir]; ok {
			return writable || !write
		}
	}
	return false
}

// TestTheCronJobRuns: its very arguments and variables, against an imitation.
func TestTheCronJobRuns(t *testing.T) {
	t.Parallel()
	_, jobs := manifests(t)
	m := newMachine(t)
	for _, v := range jobs["sync"].Spec.JobTemplate.Spec.Template.Spec.Containers[0].Env {
		m.setting(v.Name, v.Value)
	}
	m.imports("/state/leads.db")
	for _, command := range []string{"sync", "reconcile"} {
		main := jobs[command].Spec.JobTemplate.Spec.Template.Spec.Containers[0]
		if command == "reconcile" && !reflect.DeepEqual(main.Env, jobs["sync"].Spec.JobTemplate.Spec.Template.Spec.Containers[0].Env) {
			t.Error("the reconciliation has other settings than the sync")
		}
		c := exec.Command(binary(), strings.Split(m.here(strings.Join(main.Args, "\n")), "\n")...)
		c.Dir = m.here(main.WorkingDir)
		out, told := m.night(c)
		lines := objects(t, told)
		if len(lines) != 1 || lines[0]["exit_code"] != 1.0 || out != "" {
			t.Errorf("the pod's log has %q and %q", out, told)
		} else if sample, ok := lines[0]["sample"].(map[string]any); ok != (command == "reconcile") || ok && sample["high"] == nil {
			t.Errorf("%s: the sample is told so: %v", command, lines[0])
		}
	}
}
