package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"fmt"
	"net/url"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/uuid"
)

// bill is the bill of materials of a binary in CycloneDX's form: the modules that it says it was linked from, and Go.
func (b *builder) bill(binary string) ([]byte, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	sum, err := sumOf(binary)
	if err != nil {
		return nil, err
	}
	whole := cdx.Component{
		BOMRef: program, Type: cdx.ComponentTypeApplication, Name: program, Version: b.version,
		Hashes:     &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: sum}},
		Properties: &[]cdx.Property{{Name: "vcs.revision", Value: b.commit}},
	}
	std := packageURL("std", info.GoVersion)
	parts := []cdx.Component{{BOMRef: std, Type: cdx.ComponentTypeLibrary, Name: "std", Version: info.GoVersion, PackageURL: std}}
	for _, m := range info.Deps {
		ref := packageURL(m.Path, m.Version)
		parts = append(parts, cdx.Component{
			BOMRef: ref, Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, PackageURL: ref,
			Properties: &[]cdx.Property{{Name: "go.sum", Value: m.Sum}}, // a hash of names and hashes, no hash of a file
		})
	}
	refs := make([]string, len(parts))
	for i, p := range parts {
		refs[i] = p.BOMRef
	}
	doc := cdx.NewBOM()
	// The same binary has the same bill, its number included.
	doc.SerialNumber = uuid.NewHash(sha256.New(), uuid.Nil, []byte(sum), 8).URN()
	doc.Metadata = &cdx.Metadata{Timestamp: b.when.Format(time.RFC3339), Component: &whole}
	doc.Components = &parts
	doc.Dependencies = &[]cdx.Dependency{{Ref: program, Dependencies: &refs}}
	var text bytes.Buffer
	err = cdx.NewBOMEncoder(&text, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(doc, cdx.SpecVersion1_6)
	return text.Bytes(), err
}

// packageURL is a module's address in the form of package URLs; its slashes stay.
func packageURL(path, version string) string {
	return fmt.Sprintf("pkg:golang/%s@%s", path, url.QueryEscape(version))
}
