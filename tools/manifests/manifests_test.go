// Package manifests checks the samples for Kubernetes against the types that Kubernetes publishes. It belongs to the
// tools because these types need more modules than the program itself.
package manifests

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// kinds are the types of objects that samples may contain.
var kinds = map[string]func() any{
	"batch/v1 CronJob":         func() any { return new(batch.CronJob) },
	"batch/v1 Job":             func() any { return new(batch.Job) },
	"v1 PersistentVolumeClaim": func() any { return new(core.PersistentVolumeClaim) },
	"v1 ConfigMap":             func() any { return new(core.ConfigMap) },
	"v1 Secret":                func() any { return new(core.Secret) },
}

// mistakesIn returns errors for fields that are unknown, of a wrong type, or duplicate, and the number of objects read.
func mistakesIn(text []byte) (errs []error, read int) {
	for _, document := range bytes.Split(text, []byte("\n---\n")) {
		var kind meta.TypeMeta
		if err := yaml.Unmarshal(document, &kind); err != nil {
			return append(errs, err), read
		}
		if kind == (meta.TypeMeta{}) {
			continue // comments only
		}
		to := kinds[kind.APIVersion+" "+kind.Kind]
		if to == nil {
			errs = append(errs, fmt.Errorf("an object of the kind %q, which samples may not contain", kind.Kind))
			continue
		}
		read++
		if err := yaml.UnmarshalStrict(document, to()); err != nil {
			errs = append(errs, err)
		}
	}
	return errs, read
}

func sample(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "samples", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestSamplesFitThePublishedTypes(t *testing.T) {
	for name, test := range map[string]struct {
		objects  int
		mistakes map[string]string
	}{
		"leadferry-cronjob.yaml": {2, map[string]string{
			"concurrencyPolicy: Forbid": "concurencyPolicy: Forbid",
			"kind: CronJob":             "kind: CronJobs",
			"schedule: ":                "backoffLimit: 0\n  schedule: ", // of a job, not of a CronJob
		}},
		"leadferry-reconcile-cronjob.yaml": {1, map[string]string{"concurrencyPolicy: Forbid": "concurencyPolicy: Forbid", "kind: CronJob": "kind: CronJobs"}},
		"leadferry-cronjob-postgres.yaml":  {1, map[string]string{"secretName: ": "secret: "}},
		"leadferry-migration-job.yaml": {1, map[string]string{
			"backoffLimitPerIndex: 3": "backoffLimitPerIndex: many",
			"podReplacementPolicy: ":  "podReplacement: ",
			"onExitCodes: ":           "exitCodes: ",
			"values: [6]":             "values: 6",
		}},
	} {
		text := sample(t, name)
		errs, read := mistakesIn(text)
		for _, err := range errs {
			t.Errorf("%s: %v", name, err)
		}
		if read != test.objects {
			t.Errorf("%s: %d objects", name, read)
		}
		for old, wrong := range test.mistakes {
			if !bytes.Contains(text, []byte(old)) {
				t.Errorf("%s has no %q to put a mistake in", name, old)
			}
			if errs, _ := mistakesIn(bytes.Replace(text, []byte(old), []byte(wrong), 1)); len(errs) == 0 {
				t.Errorf("%s: %q for %q is not noticed", name, wrong, old)
			}
		}
	}
}

// end is how a pod ended: its exit code, and whether its node evicted it.
type end struct {
	code      int32
	disrupted bool
}

// controller simulates the job controller of Kubernetes for an Indexed job and its policies, as the comments of
// PodFailurePolicyRule and JobSpec describe them. It runs one index after another.
type controller struct {
	spec     batch.JobSpec
	pods     map[int]int // number of pods started, by index
	finished []int
	failed   []int
	stopped  bool // the job as a whole has failed
}

// run starts pods until the job has ended. how says how the n-th pod of an index ends, from 0.
func (c *controller) run(how func(index, n int) end) {
	c.pods = map[int]int{}
	for index := range int(*c.spec.Completions) {
		for counted, going := int32(0), true; going && !c.stopped; {
			e := how(index, c.pods[index])
			c.pods[index]++
			if e.code == 0 && !e.disrupted {
				c.finished = append(c.finished, index)
				break
			}
			switch c.action(e) {
			case batch.PodFailurePolicyActionFailJob:
				c.stopped = true
			case batch.PodFailurePolicyActionFailIndex:
				going = false
			case batch.PodFailurePolicyActionIgnore:
			default:
				counted++
				going = counted <= *c.spec.BackoffLimitPerIndex
			}
			if !going {
				c.failed = append(c.failed, index)
			}
		}
	}
}

// action returns the action of the first rule that matches.
func (c *controller) action(e end) batch.PodFailurePolicyAction {
	for _, r := range c.spec.PodFailurePolicy.Rules {
		if on := r.OnExitCodes; on != nil && e.code != 0 {
			if slices.Contains(on.Values, e.code) == (on.Operator == batch.PodFailurePolicyOnExitCodesOpIn) {
				return r.Action
			}
		}
		for _, on := range r.OnPodConditions {
			if e.disrupted && on.Type == core.DisruptionTarget && on.Status == core.ConditionTrue {
				return r.Action
			}
		}
	}
	return batch.PodFailurePolicyActionCount
}

func migration(t *testing.T) batch.JobSpec {
	t.Helper()
	var job batch.Job
	if err := yaml.UnmarshalStrict(sample(t, "leadferry-migration-job.yaml"), &job); err != nil {
		t.Fatal(err)
	}
	return job.Spec
}

// For each way in which a worker may end, the job starts a new pod, or gives up the index or the whole job.
func TestMigrationJobReactsToEachEndOfAPod(t *testing.T) {
	spec := migration(t)
	for _, test := range []struct {
		name string
		pods string // exit codes of the pods of index 1, with d if the node evicted it; later pods end as the last one
		want string // number of pods of index 1, and how the index or the job ended
	}{
		{"done", "0", "1 pod, finished"},
		{"rows need attention", "1", "1 pod, failed"},
		{"rows in doubt", "5", "1 pod, failed"},
		{"wrong command", "2", "1 pod, job failed"},
		{"a ledger that lost commits", "3 4", "2 pods, job failed"},
		{"a service that comes back", "3 3 3 0", "4 pods, finished"},
		{"a service that does not", "3", "4 pods, failed"},
		{"killed", "137 0", "2 pods, finished"},
		{"out of memory for ever", "137", "4 pods, failed"},
		{"replaced while it ran", "6 6 6 6 6 6 0", "7 pods, finished"},
		{"drained again and again", "d130 d130 d143 d137 d130 d3 d2 0", "8 pods, finished"},
		{"drained with rows in doubt", "d5 0", "2 pods, finished"},
		{"interrupted by nobody", "130", "4 pods, failed"},
	} {
		ways := strings.Fields(test.pods)
		c := &controller{spec: spec}
		c.run(func(index, n int) (e end) {
			if index != 1 {
				return e
			}
			way := ways[min(n, len(ways)-1)]
			code, disrupted := strings.CutPrefix(way, "d")
			e.disrupted = disrupted
			if _, err := fmt.Sscan(code, &e.code); err != nil {
				t.Fatal(err)
			}
			return e
		})
		got := fmt.Sprintf("%d pods", c.pods[1])
		if c.pods[1] == 1 {
			got = "1 pod"
		}
		switch {
		case c.stopped:
			got += ", job failed"
		case slices.Contains(c.failed, 1):
			got += ", failed"
		case slices.Contains(c.finished, 1):
			got += ", finished"
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
		if !c.stopped && len(c.finished)+len(c.failed) != int(*spec.Completions) {
			t.Errorf("%s: not every index came to an end", test.name)
		}
	}
}

// The job follows the rules of Kubernetes, has what the program needs, and shows no secret.
func TestMigrationJobKeepsTheRules(t *testing.T) {
	spec := migration(t)
	pod := spec.Template.Spec
	main, fetch := pod.Containers[0], pod.InitContainers[0]
	env := map[string]core.EnvVar{}
	for _, e := range main.Env {
		env[e.Name] = e
	}
	var fleet string
	if from := env["LEADFERRY_FLEET"].ValueFrom; from != nil && from.FieldRef != nil {
		fleet = from.FieldRef.FieldPath
	}
	for rule, kept := range map[string]bool{
		"indexed":             spec.CompletionMode != nil && *spec.CompletionMode == batch.IndexedCompletion,
		"replaced once ended": spec.PodReplacementPolicy != nil && *spec.PodReplacementPolicy == batch.Failed,
		"never restarted":     pod.RestartPolicy == core.RestartPolicyNever,
		"as many as shards":   env["LEADFERRY_SHARDS"].Value == fmt.Sprint(*spec.Completions) && *spec.Parallelism == *spec.Completions,
		"fleet by UID":        fleet == "metadata.labels['batch.kubernetes.io/controller-uid']",
		"read-only root":      *main.SecurityContext.ReadOnlyRootFilesystem && !*main.SecurityContext.AllowPrivilegeEscalation,
		"not as root":         *pod.SecurityContext.RunAsNonRoot && !*pod.AutomountServiceAccountToken,
		"resources":           main.Resources.Requests.Cpu().MilliValue() > 0 && main.Resources.Limits.Memory().Value() > 64<<20,
		"time to settle":      *pod.TerminationGracePeriodSeconds >= 60,
		"the input is secret": len(fetch.Env) == 1 && fetch.Env[0].ValueFrom != nil && slices.Contains(fetch.Command, "$("+fetch.Env[0].Name+")"),
		"what was downloaded": slices.Contains(fetch.Command, main.Args[len(main.Args)-1]) && *fetch.SecurityContext.ReadOnlyRootFilesystem,
	} {
		if !kept {
			t.Errorf("rule broken: %s", rule)
		}
	}
	for _, r := range spec.PodFailurePolicy.Rules {
		if r.OnExitCodes != nil && (len(r.OnPodConditions) > 0 || slices.Contains(r.OnExitCodes.Values, 0) || *r.OnExitCodes.ContainerName != main.Name) {
			t.Errorf("a rule that Kubernetes refuses or that never matches: %+v", r)
		}
	}
	for _, e := range main.Env {
		if low := strings.ToLower(e.Name); (strings.Contains(low, "secret") || strings.Contains(low, "password")) && e.Value != "" {
			t.Errorf("the manifest contains the value of %s", e.Name)
		}
	}
}

// Nightly jobs never run at once or twice, run without privileges, and write only to their volume.
func TestCronJobsKeepTheRules(t *testing.T) {
	for name, state := range map[string]string{"leadferry-cronjob.yaml": "/state", "leadferry-reconcile-cronjob.yaml": "/state", "leadferry-cronjob-postgres.yaml": "/run/leadferry"} {
		text := string(sample(t, name))
		var job batch.CronJob
		if err := yaml.UnmarshalStrict([]byte(text[strings.LastIndex(text, "apiVersion: batch/v1"):]), &job); err != nil {
			t.Fatal(err)
		}
		spec := job.Spec.JobTemplate.Spec
		pod := spec.Template.Spec
		main, writable := pod.Containers[0], map[string]bool{}
		for _, m := range main.VolumeMounts {
			writable[m.MountPath] = !m.ReadOnly
		}
		checkpoint := slices.ContainsFunc(main.Args, func(a string) bool {
			return strings.HasPrefix(a, "--checkpoint="+state+"/") || strings.HasPrefix(a, "--checkpoint=postgres:")
		})
		for rule, kept := range map[string]bool{
			"one at a time":  job.Spec.ConcurrencyPolicy == batch.ForbidConcurrent && len(strings.Fields(job.Spec.Schedule)) == 5,
			"no second try":  pod.RestartPolicy == core.RestartPolicyNever && *spec.BackoffLimit == 0,
			"not as root":    *pod.SecurityContext.RunAsNonRoot && *pod.SecurityContext.RunAsUser > 0 && *pod.SecurityContext.FSGroup == *pod.SecurityContext.RunAsGroup,
			"modes are kept": state != "/state" || *pod.SecurityContext.FSGroupChangePolicy == core.FSGroupChangeOnRootMismatch,
			"no privileges":  !*main.SecurityContext.AllowPrivilegeEscalation && main.SecurityContext.Capabilities.Drop[0] == "ALL",
			"its name":       job.Name == "leadferry-"+main.Args[0],
			"a place":        writable[state] && main.WorkingDir == state && checkpoint,
			"its inputs":     !writable["/srv/crm"] && !writable["/etc/leadferry"],
		} {
			if !kept {
				t.Errorf("%s, rule broken: %s", name, rule)
			}
		}
	}
}
