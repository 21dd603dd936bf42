package main

import (
	"bytes"
	"encoding/pem"
	"io"
	"os"
	"path/filepath"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"

	"leadferry/tools/must"
)

// nobody is the user that runs the image and owns /state. The Kubernetes samples name the same user.
const nobody = 65532

// writeImage writes one image for all Linux builds, as an OCI image layout that skopeo, crane and podman copy to a
// registry. It holds the program, certificate authorities and two writable folders, but no shell and no packages.
func (r *release) writeImage(made []product) {
	var index v1.ImageIndex = mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	made = slices.DeleteFunc(slices.Clone(made), func(p product) bool { return p.os != "linux" })
	for _, p := range made {
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: r.image(p), Descriptor: v1.Descriptor{
			Platform:    &v1.Platform{OS: p.os, Architecture: p.arch},
			Annotations: map[string]string{"org.opencontainers.image.ref.name": r.version},
		}})
	}
	if len(made) > 0 {
		must.Get(layout.Write(filepath.Join(r.out, program+"_"+r.version+"_image"), index))
	}
}

func (r *release) image(p product) v1.Image {
	var content bytes.Buffer
	writeTar(&content, "", []file{
		{name: "etc/", mode: 0o755},
		{name: "etc/ssl/", mode: 0o755},
		{name: "etc/ssl/certs/", mode: 0o755},
		{name: "state/", mode: 0o700, user: nobody},
		{name: "tmp/", mode: 0o1777},
		{name: "usr/", mode: 0o755},
		{name: "usr/bin/", mode: 0o755},
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, data: authorities()},
		{name: "usr/bin/" + program, mode: 0o755, data: must.Get(os.ReadFile(p.binary))},
		{name: "THIRD-PARTY-LICENCES.txt", mode: 0o644, data: r.licences(p.binary)},
	}, r.when)
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content.Bytes())), nil }
	when := v1.Time{Time: r.when}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image = must.Get(mutate.Append(image, mutate.Addendum{
		Layer:   must.Get(tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))),
		History: v1.History{Created: when, CreatedBy: program},
	}))
	config := must.Get(image.ConfigFile()).DeepCopy()
	config.OS, config.Architecture, config.Created = p.os, p.arch, when
	config.Config = v1.Config{
		Entrypoint: []string{"/usr/bin/" + program},
		User:       "65532:65532",
		WorkingDir: "/state",
		Env:        []string{"PATH=/usr/bin", "HOME=/state", "XDG_STATE_HOME=/state", "TMPDIR=/tmp"},
		Labels: map[string]string{
			"org.opencontainers.image.title": program, "org.opencontainers.image.version": r.version,
			"org.opencontainers.image.revision": r.commit,
		},
	}
	return must.Get(mutate.ConfigFile(image, config))
}

// authorities returns the authorities that browsers trust without conditions: a file cannot state conditions.
func authorities() []byte {
	var text bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			text.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
		}
	}
	return text.Bytes()
}
