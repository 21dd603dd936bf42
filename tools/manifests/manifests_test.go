// Package manifests holds the samples for Kubernetes against the types that Kubernetes publishes. It stands among the
// tools because those types bring more modules with them than the program itself needs.
package manifests

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// kinds are the types of the objects that samples may hold.
var kinds = map[string]func() any{
	"batch/v1 CronJob":         func() any { return new(batch.CronJob) },
	"batch/v1 Job":             func() any { return new(batch.Job) },
	"v1 PersistentVolumeClaim": func() any { return new(core.PersistentVolumeClaim) },
	"v1 ConfigMap":             func() any { return new(core.ConfigMap) },
	"v1 Secret":                func() any { return new(core.Secret) },
}

// unknown gives the errors of a text's documents: a field that the published type lacks, one of another type, one that
// stands twice.
func unknown(text []byte) (errs []error, read int) {
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
			errs = append(errs, fmt.Errorf("an object of the kind %q, which samples do not hold", kind.Kind))
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
		errs, read := unknown(text)
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
			if errs, _ := unknown(bytes.Replace(text, []byte(old), []byte(wrong), 1)); len(errs) == 0 {
				t.Errorf("%s: %q for %q is not noticed", name, wrong, old)
			}
		}
	}
}
