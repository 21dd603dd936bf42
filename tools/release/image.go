package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"io"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// nobody is the user that the image runs as, and that owns /state: the one that the Kubernetes samples name.
const nobody = 65532

// writeImage writes one image for all Linux builds as an OCI image layout, which skopeo, crane, podman and others copy
// to a registry. It holds the program, the usual certificate authorities, and two folders that may be written to;
// there is no shell and no package manager in it.
func (r *release) writeImage(made []product) error {
	var index v1.ImageIndex = mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	count := 0
	for _, p := range made {
		if p.os != "linux" {
			continue
		}
		image, err := r.image(p)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{
			Platform:    &v1.Platform{OS: p.os, Architecture: p.arch},
			Annotations: map[string]string{"org.opencontainers.image.ref.name": r.version},
		}})
		count++
	}
	if count == 0 {
		return nil
	}
	_, err := layout.Write(filepath.Join(r.out, program+"_"+r.version+"_image"), index)
	return err
}

func (r *release) image(p product) (v1.Image, error) {
	content, err := r.layer(p)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil },
		tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	if image, err = mutate.Append(image, mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: r.when}, CreatedBy: program}}); err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = p.os, p.arch, v1.Time{Time: r.when}
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
	return mutate.ConfigFile(image, config)
}

// layer is the image's file system.
func (r *release) layer(p product) ([]byte, error) {
	binary, err := os.ReadFile(p.binary)
	if err != nil {
		return nil, err
	}
	licences, err := named("THIRD-PARTY-LICENCES.txt", p.contents)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	out := tar.NewWriter(&b)
	for _, folder := range []*tar.Header{
		{Name: "etc/", Mode: 0o755},
		{Name: "etc/ssl/", Mode: 0o755},
		{Name: "etc/ssl/certs/", Mode: 0o755},
		{Name: "state/", Mode: 0o700, Uid: nobody, Gid: nobody},
		{Name: "tmp/", Mode: 0o1777},
		{Name: "usr/", Mode: 0o755},
		{Name: "usr/bin/", Mode: 0o755},
	} {
		folder.Typeflag, folder.ModTime, folder.Format = tar.TypeDir, r.when, tar.FormatPAX
		if err := out.WriteHeader(folder); err != nil {
			return nil, err
		}
	}
	for _, f := range []file{
		{name: "etc/ssl/certs/ca-certificates.crt", data: authorities()},
		{name: "usr/bin/" + program, mode: 0o755, data: binary},
		{name: "THIRD-PARTY-LICENCES.txt", data: licences.data},
	} {
		if err := addToTar(out, f.name, f, r.when); err != nil {
			return nil, err
		}
	}
	if err := out.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// authorities are the certificate authorities that browsers trust. Those trusted under conditions, which a file cannot
// state, are left out.
func authorities() []byte {
	var text bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			text.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
		}
	}
	return text.Bytes()
}
