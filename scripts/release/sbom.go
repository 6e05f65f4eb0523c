package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The parts of a CycloneDX document that are used here.
type (
	document struct {
		Format       string       `json:"bomFormat"`
		Spec         string       `json:"specVersion"`
		Serial       string       `json:"serialNumber"`
		Version      int          `json:"version"`
		Metadata     metadata     `json:"metadata"`
		Components   []component  `json:"components"`
		Dependencies []dependency `json:"dependencies"`
	}
	metadata struct {
		Component component `json:"component"`
	}
	component struct {
		Type       string     `json:"type"`
		Ref        string     `json:"bom-ref"`
		Name       string     `json:"name"`
		Version    string     `json:"version,omitempty"`
		Hashes     []hash     `json:"hashes,omitempty"`
		Licenses   []licensed `json:"licenses,omitempty"`
		URL        string     `json:"purl,omitempty"`
		Properties []property `json:"properties,omitempty"`
	}
	hash struct {
		Algorithm string `json:"alg"`
		Content   string `json:"content"`
	}
	licensed struct {
		License struct {
			ID string `json:"id"`
		} `json:"license"`
	}
	property struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	dependency struct {
		Ref string   `json:"ref"`
		On  []string `json:"dependsOn"`
	}
)

// sbomOf is the document of a program, from what Go has written into it: the same program gives the
// same document. A module's h1 is a hash of the hashes of its files, and no hash of one file.
func sbomOf(program string) ([]byte, error) {
	about, err := buildinfo.ReadFile(program)
	if err != nil {
		return nil, err
	}
	content, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	packages, err := listed([]string{about.Path})
	if err != nil {
		return nil, err
	}
	found, err := licences(packages)
	if err != nil {
		return nil, err
	}
	names := map[string][]licensed{}
	for _, l := range found {
		for _, name := range l.names {
			var one licensed
			one.License.ID = name
			if name == "LGPL-3.0" {
				one.License.ID += "-only"
			}
			names[l.module] = appendNew(names[l.module], one)
		}
	}
	sum := sha256.Sum256(content)
	serial := sum[:16]
	serial[6], serial[8] = serial[6]&0x0f|0x40, serial[8]&0x3f|0x80
	self := component{Type: "application", Ref: filepath.Base(about.Path), Name: filepath.Base(about.Path),
		Version: about.Main.Version, Hashes: []hash{{"SHA-256", fmt.Sprintf("%x", sha256.Sum256(content))}}}
	for _, s := range about.Settings {
		self.Properties = append(self.Properties, property{"go:" + s.Key, s.Value})
	}
	d := document{Format: "CycloneDX", Spec: "1.6", Version: 1, Metadata: metadata{self},
		Serial: fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", serial[:4], serial[4:6], serial[6:8], serial[8:10],
			serial[10:])}
	on := dependency{Ref: self.Ref, On: []string{}}
	add := func(c component) {
		d.Components = append(d.Components, c)
		on.On = append(on.On, c.Ref)
	}
	std := component{Type: "library", Name: "std", Version: strings.TrimPrefix(about.GoVersion, "go")}
	std.URL = "pkg:golang/std@" + std.Version
	std.Ref = std.URL
	add(std)
	for _, m := range about.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		url := "pkg:golang/" + strings.ReplaceAll(m.Path, "~", "%7E") + "@" + strings.ReplaceAll(m.Version,
			"+", "%2B")
		add(component{Type: "library", Ref: url, Name: m.Path, Version: m.Version, URL: url,
			Licenses: names[m.Path], Properties: []property{{"go:h1", m.Sum}}})
	}
	d.Dependencies = []dependency{on}
	text, err := json.MarshalIndent(&d, "", "  ")
	return append(text, '\n'), err
}

func appendNew(list []licensed, one licensed) []licensed {
	for _, l := range list {
		if l == one {
			return list
		}
	}
	return append(list, one)
}
