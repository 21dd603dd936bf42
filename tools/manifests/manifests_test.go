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

func TestSamplesFitThePublishedTypes(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join("..", "..", "samples", "*-cronjob.yaml"))
	if err != nil || len(paths) != 2 {
		t.Fatalf("%q: %v", paths, err)
	}
	least := map[string]int{"leadferry-cronjob.yaml": 2, "leadferry-reconcile-cronjob.yaml": 1}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) { fits(t, path, least[filepath.Base(path)]) })
	}
}

// fits fails the test unless a sample holds at least so many objects, all of them as they are published, and mistakes
// in it are noticed.
func fits(t *testing.T, path string, least int) {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	errs, read := unknown(text)
	for _, err := range errs {
		t.Errorf("%s: %v", path, err)
	}
	if read < least {
		t.Errorf("%d objects read of %s", read, path)
	}
	for old, wrong := range map[string]string{
		"concurrencyPolicy: Forbid": "concurencyPolicy: Forbid",
		"kind: CronJob":             "kind: CronJobs",
		"schedule: ":                "backoffLimit: 0\n  schedule: ", // of a job, not of a CronJob
	} {
		if !bytes.Contains(text, []byte(old)) {
			t.Errorf("the sample has no %q to put a mistake in", old)
		}
		if errs, _ := unknown(bytes.Replace(text, []byte(old), []byte(wrong), 1)); len(errs) == 0 {
			t.Errorf("%q for %q is not noticed", wrong, old)
		}
	}
}
