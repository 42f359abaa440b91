package cli

import (
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

type labels = map[string]string

// manifest is what of one of Kubernetes is looked at.
type manifest struct {
	APIVersion, Kind string
	Metadata         struct{ Name string }
	Data, StringData map[string]string
	Spec             struct {
		Replicas int
		Selector json.RawMessage
		Ports    []struct{ TargetPort string }
		Template struct {
			Metadata struct{ Labels labels }
			Spec     pod
		}
	}
}

type probe struct {
	HTTPGet struct{ Path, Port string }
}

type pod struct {
	Grace      int `json:"terminationGracePeriodSeconds"`
	Containers []struct {
		Image, Command string
		Args           []string
		EnvFrom        []struct{ SecretRef struct{ Name string } }
		Ports          []struct {
			Name          string
			ContainerPort int
		}
		StartupProbe, LivenessProbe, ReadinessProbe probe
		VolumeMounts                                []struct{ Name, MountPath, SubPath string }
	}
	Volumes []struct {
		Name      string
		ConfigMap struct{ Name string }
		Secret    struct{ SecretName string }
		EmptyDir  *struct{ SizeLimit string }
	}
}

// manifests are those that kustomization.yaml names, and the secrets that they need, valid, by kind/name.
func manifests(t *testing.T) (all map[string]manifest, raw map[string]any) {
	t.Helper()
	k := as[struct{ Resources []string }](t, documents(t, contrib+"k8s/kustomization.yaml")[0])
	all, raw = map[string]manifest{}, map[string]any{}
	for _, file := range append(k.Resources, "secret.yaml") {
		for _, doc := range documents(t, contrib+"k8s/"+file) {
			m := as[manifest](t, doc)
			id := m.Kind + "/" + m.Metadata.Name
			if _, twice := all[id]; twice {
				t.Errorf("%s: %s is there twice", file, id)
			}
			all[id], raw[id] = m, doc
			if err := kind(t, m).Validate(doc); err != nil {
				t.Errorf("%s: %s: %v", file, id, err)
			}
		}
	}
	return all, raw
}

// kind is the schema of a manifest.
func kind(t *testing.T, m manifest) *jsonschema.Schema {
	t.Helper()
	group := path.Dir(m.APIVersion)
	if group == "." {
		group = "core"
	}
	return schemaOf(t, "kubernetes.json", "#/definitions/io.k8s.api."+group+"."+path.Base(m.APIVersion)+"."+m.Kind)
}

// The manifests are what Kubernetes takes, fit together, and start what there is.
func TestKubernetesManifests(t *testing.T) {
	t.Parallel()
	all, raw := manifests(t)
	for id, m := range all {
		switch m.Kind {
		case "Deployment":
			m.Spec.Template.Spec.deployed(t, id, all).check(t, id)
			if m.Spec.Replicas < 2 {
				t.Errorf("%s has %d replicas", id, m.Spec.Replicas)
			}
		case "Secret":
			for key, value := range m.StringData {
				if value != "" {
					t.Errorf("%s: %s has a value", id, key)
				}
			}
			continue
		case "ConfigMap":
			continue
		}
		selector := as[labels](t, selects(t, m))
		if !slices.ContainsFunc(slices.Collect(maps.Values(all)), func(d manifest) bool {
			return d.Kind == "Deployment" && covers(d.Spec.Template.Metadata.Labels, selector) && (m.Kind != "Deployment" || d.Metadata.Name == m.Metadata.Name)
		}) {
			t.Errorf("%s selects no pods: %q", id, selector)
		}
		for _, p := range m.Spec.Ports {
			if p.TargetPort != "http" {
				t.Errorf("%s leads to the port %s", id, p.TargetPort)
			}
		}
	}
	for _, id := range []string{"Deployment/tori-serve", "Deployment/tori-worker"} {
		doc := raw[id]
		for _, op := range as[[]patch](t, documents(t, contrib+"k8s/namespaces.yaml")[0]) {
			op.apply(t, doc)
		}
		if err := kind(t, all[id]).Validate(doc); err != nil {
			t.Errorf("%s with namespaces.yaml: %v", id, err)
		}
		doc.(map[string]any)["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)["terminationGracePeriod"] = json.Number("40")
		if kind(t, all[id]).Validate(doc) == nil {
			t.Error("a misspelt key is valid")
		}
	}
}

// selects are the labels that a manifest asks for.
func selects(t *testing.T, m manifest) any {
	t.Helper()
	all := as[map[string]any](t, m.Spec.Selector)
	if match, is := all["matchLabels"]; is {
		return match
	}
	return all
}

func covers(has, asked labels) bool {
	for k, v := range asked {
		if has[k] != v {
			return false
		}
	}
	return len(asked) > 0
}

// deployed is the process of a pod.
func (p pod) deployed(t *testing.T, id string, all map[string]manifest) deployed {
	t.Helper()
	c := p.Containers[0]
	mine := deployed{args: c.Args, files: map[string]string{}, grace: time.Duration(p.Grace) * time.Second}
	for _, e := range c.EnvFrom {
		if _, is := all["Secret/"+e.SecretRef.Name]; !is {
			t.Errorf("%s: there is no secret %s", id, e.SecretRef.Name)
		}
	}
	for _, m := range c.VolumeMounts {
		found := false
		for _, v := range p.Volumes {
			if v.Name != m.Name {
				continue
			}
			found = true
			if v.EmptyDir != nil {
				mine.own = append(mine.own, m.MountPath)
				if v.EmptyDir.SizeLimit == "" {
					t.Errorf("%s: %s may fill the machine", id, v.Name)
				}
			}
			data, secrets := all["ConfigMap/"+v.ConfigMap.Name].Data, all["Secret/"+v.Secret.SecretName].StringData
			if m.SubPath != "" {
				mine.files[m.MountPath] = data[m.SubPath]
				continue
			}
			for name := range secrets {
				mine.files[path.Join(m.MountPath, name)] = ""
			}
		}
		if !found {
			t.Errorf("%s: there is no volume %s", id, m.Name)
		}
	}
	for _, probe := range []probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
		for _, port := range c.Ports {
			if port.Name == probe.HTTPGet.Port {
				mine.asked = append(mine.asked, strconv.Itoa(port.ContainerPort)+probe.HTTPGet.Path)
			}
		}
	}
	if len(mine.asked) != 3 {
		t.Errorf("%s has probes at %q", id, mine.asked)
	}
	return mine
}

// patch is an operation of RFC 6902.
type patch struct {
	Op, Path string
	Value    any
}

func (o patch) apply(t *testing.T, doc any) {
	t.Helper()
	steps := strings.Split(strings.TrimPrefix(o.Path, "/"), "/")
	last := steps[len(steps)-1]
	for _, s := range steps[:len(steps)-1] {
		switch at := doc.(type) {
		case map[string]any:
			doc = at[s]
		case []any:
			i, err := strconv.Atoi(s)
			if err != nil || i >= len(at) {
				t.Fatalf("%s: %s", o.Path, s)
			}
			doc = at[i]
		}
	}
	at, is := doc.(map[string]any)
	if _, there := at[last]; !is || there != (o.Op == "replace") {
		t.Fatalf("%s %s of %v", o.Op, o.Path, doc)
	}
	at[last] = plain(t, o.Value)
}
