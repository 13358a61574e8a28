package definitions

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/targets"
)

func equalTexts(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// wantEach expects as many texts as there are beginnings, each with its own.
func wantEach(t *testing.T, what string, faults []targets.Fault, begins ...string) {
	t.Helper()
	got := targets.Texts(faults)
	ok := len(got) == len(begins)
	for i := 0; ok && i < len(got); i++ {
		ok = strings.HasPrefix(got[i], begins[i])
	}
	if !ok {
		t.Errorf("%s:\n%s\nwant what begins with\n%s", what, strings.Join(got, "\n"), strings.Join(begins, "\n"))
	}
}

func keysOf(t *targets.Target) (keys []string) {
	for _, e := range t.Entries {
		keys = append(keys, e.Alias)
	}
	for _, g := range t.Secret.Groups {
		keys = append(keys, g.Group)
	}
	return keys
}

func TestFromSecret(t *testing.T) {
	got := FromSecret(SecretDefinition{
		Namespace: "shop", Name: "db", Map: "user: p/user\nkey: {id: acct:variable:p/key, content-type: base64}", HasMap: true, Account: "acct",
		Annotations: map[string]string{
			groupSecrets + "cfg": "- u: p/user", groupConfigMap + "cfg": "templates",
			groupSecrets + "env": "- u: p/user", groupFormat + "env": "dotenv",
			restartWorkloads: "deployment/app",
		},
	})
	user := []targets.Entry{{Alias: "u", Variable: "p/user", ContentType: targets.ContentText}}
	want := &targets.Target{
		Key: "secret/shop/db", Entries: []targets.Entry{{Alias: "user", Variable: "p/user", ContentType: targets.ContentText}, {Alias: "key", Variable: "p/key", ContentType: targets.ContentBase64}},
		Secret: &targets.Secret{Namespace: "shop", Name: "db", Restart: []string{"deployment/app"}, Groups: []*targets.Target{
			{Group: "cfg", Entries: user, Format: targets.FormatTemplate, Template: targets.Template{ConfigMap: targets.ConfigMapKey{Namespace: "shop", Name: "templates", Key: "cfg.tpl"}}},
			{Group: "env", Entries: user, Format: targets.FormatDotenv},
		}},
	}
	want.Secret.Size = got.Secret.Size
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v %+v\nwant %+v %+v", got, got.Secret, want, want.Secret)
	}
	if ids := got.Variables(); !slices.Equal(ids, []string{"p/user", "p/key"}) {
		t.Errorf("variables %q, want each once", ids)
	}
}

// What is faulty is told and keeps nothing else from being delivered; what it
// names stays as it is.
func TestFromAPoisonousSecret(t *testing.T) {
	long := strings.Repeat("k", 1500)
	got := FromSecret(SecretDefinition{
		Namespace: "ns", Name: "poison", HasMap: true,
		Map: "good: p/a\nnumber: 5\n" + long + ": p/b\nconjur-map: p/c\nbase: {content-type: base64}\ntwice: p/d\ntwice: p/e\n\"a b\": p/f",
		Annotations: map[string]string{
			groupSecrets + "fine": "- p/a", groupFormat + "fine": "json",
			groupSecrets + "toml": "- p/a", groupFormat + "toml": "toml",
			groupSecrets + "both": "- p/a", groupTemplate + "both": "x", groupConfigMap + "both": "cm/key",
			groupSecrets + "far": "- p/a", groupConfigMap + "far": "other/cm/key",
			groupSecrets + "list": "{a: [", groupFormat + "list": "json",
			groupSecrets + "skipped":   "- p/a",
			groupTemplate + "stray":    "x",
			groupSecrets + "good":      "- p/a", // as a data key of the map
			groupFormat + "good":       "json",
			restartWorkloads:           "pod/app, deployment/app,statefulset/Bad_Name",
			"conjur.org/from-tomorrow": "whatever",
		},
	})
	equalTexts(t, "what is delivered", keysOf(got), "good", "twice", "fine")
	wantEach(t, "faults", got.Secret.Faults,
		`conjur-map: line 2: the variable of "number"`,
		`conjur-map: line 3: the data key "kkkkkkkk`,
		`conjur-map: line 4: the data key "conjur-map" is that of the map itself`,
		`conjur-map: line 5: "base" has no id`,
		`conjur-map: line 7: the data key "twice"`,
		`conjur-map: line 8: the data key "a b"`,
		`conjur.org/secret-file-template-configmap.both: the group has a template in conjur.org/secret-file-template.both too`,
		`conjur.org/secret-file-template-configmap.far: "other/cm/key" has more than one slash`,
		`conjur.org/conjur-secrets.good: the data key "good" is also in conjur-map`,
		`conjur.org/conjur-secrets.list: not valid YAML`,
		`conjur.org/secret-file-format.toml: unknown format`,
		`conjur.org/restart-workloads: "pod/app" is not a workload`,
		`conjur.org/restart-workloads: "statefulset/Bad_Name" is not a workload`,
	)
	equalTexts(t, "what stays", got.Secret.Hold, "a b", "base", "both", "conjur-map", "far", "good", long[:1000], "list", "number", "skipped", "stray", "toml", "twice")
	if got.Secret.HoldAll {
		t.Error("all is held, though it is known what the faults are about")
	}
	equalTexts(t, "workloads", got.Secret.Restart, "deployment/app")
	for _, fault := range got.Secret.Faults {
		if len(fault.Why) > 500 {
			t.Errorf("a fault has %d bytes: %.80s…", len(fault.Why), fault.Why)
		}
	}
}

// A key that is too long for YAML is one faulty key, in every form of a map.
func TestALongKeyIsOneFault(t *testing.T) {
	long := strings.Repeat("k", 1500)
	for _, text := range []string{
		"good: p/a\n" + long + ": p/b\nmore: p/c",
		"good: p/a\n\"" + long + "\": p/b\nmore: p/c",
		"good: p/a\n'" + long + "':\n  id: p/b\nmore: p/c",
		`{"good":"p/a","` + long + `":"p/b","more":{"id":"p/c"}}`,
		`{"good": "p/a", "` + long + `" : "p/b", "more": "p/c"}`,
	} {
		entries, _, err := readMap(text, "")
		if len(entries) != 2 || err == nil || !strings.Contains(err.Error(), "longer than 253 bytes") || len(err.Error()) > 400 {
			t.Errorf("%.40s…: %v, %v; want two entries and one error", text, entries, err)
		}
	}
	if got := clipKeys("a: " + long + "\n" + long); got != "a: "+long+"\n"+long {
		t.Error("something that is no key was shortened")
	}
	id := "p/" + strings.Repeat("x/", 800) + "y" // a long id is none
	if entries, _, err := readMap("a: "+id+"\n"+long+": p/b", ""); len(entries) != 1 || entries[0].Variable != id || err == nil {
		t.Errorf("%d entries, %v; want the one with the long id", len(entries), err)
	}
}

func TestVeryManyFaultsAreCounted(t *testing.T) {
	var text strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&text, "k%03d: 5\n", i)
	}
	got := FromSecret(SecretDefinition{Namespace: "ns", Name: "s", HasMap: true, Map: text.String()})
	if n := len(got.Secret.Faults); n != 101 || got.Secret.Faults[100].String() != "conjur-map: and 900 more" || len(got.Secret.Hold) != 1000 {
		t.Errorf("%d faults, the last %q, and %d keys held", n, got.Secret.Faults[n-1], len(got.Secret.Hold))
	}
}

// Where it is not known which keys a fault is about, nothing goes; and nothing
// is taken away for a definition that is not there.
func TestWhatCannotBeReadHoldsAll(t *testing.T) {
	group := map[string]string{groupSecrets + "cfg": "- p/a", groupFormat + "cfg": "json"}
	for name, c := range map[string]struct {
		text        string
		hasMap      bool
		annotations map[string]string
		hold        bool
	}{
		"no YAML":             {text: "a: p/a\n\tb", hasMap: true, hold: true},
		"a list":              {text: "- a: p/a", hasMap: true, hold: true},
		"two documents":       {text: "a: p/a\n---\nb: p/b", hasMap: true, hold: true},
		"a key without text":  {text: "a: p/a\n[x]: p/b", hasMap: true, hold: true},
		"a key of nothing":    {text: "a: p/a\n~: p/b", hasMap: true, hold: true},
		"all, but how":        {text: "a: p/a\n'*': {id: p/}", hasMap: true, hold: true},
		"an empty text":       {text: "", hasMap: true, hold: true},
		"only a comment":      {text: "# a: p/a", hasMap: true, hold: true},
		"no map and no group": {hold: true},
		"an empty map":        {text: "{}", hasMap: true},
		"a fault in one item": {text: "a: p/a\nb: 5", hasMap: true},
		"a group alone":       {annotations: group},
		"a group and a fault": {text: "a: [", hasMap: true, annotations: group, hold: true},
	} {
		got := FromSecret(SecretDefinition{Namespace: "ns", Name: "s", Map: c.text, HasMap: c.hasMap, Annotations: c.annotations})
		if got.Secret.HoldAll != c.hold {
			t.Errorf("%s: HoldAll is %v", name, got.Secret.HoldAll)
		}
	}
}

func TestASecretThatDefinesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		def             SecretDefinition
		faults, warning []string
	}{
		"found by its label, without a map": {SecretDefinition{}, nil, []string{"conjur-map: there is neither"}},
		"found by its label, empty":         {SecretDefinition{HasMap: true}, nil, []string{"conjur-map: the map is empty"}},
		"found by its label, {}":            {SecretDefinition{HasMap: true, Map: "{}"}, nil, nil},
		"named, without a map":              {SecretDefinition{Named: true}, []string{"conjur-map: there is neither"}, nil},
		"named, empty":                      {SecretDefinition{Named: true, HasMap: true}, []string{"conjur-map: the map is empty"}, nil},
		"named, {}":                         {SecretDefinition{Named: true, HasMap: true, Map: "{}"}, []string{"conjur-map: the map is empty; add"}, nil},
		"named, faulty":                     {SecretDefinition{Named: true, HasMap: true, Map: "5"}, []string{"conjur-map: line 1: a map"}, nil},
		"missing":                           {SecretDefinition{Named: true, Missing: true}, nil, nil},
	} {
		got := FromSecret(c.def)
		wantEach(t, name+": faults", got.Secret.Faults, c.faults...)
		wantEach(t, name+": warnings", got.Secret.Warnings, c.warning...)
		if got.Secret.Missing != c.def.Missing {
			t.Errorf("%s: Missing is %v", name, got.Secret.Missing)
		}
	}
}

// TestUnknownAnnotationsAreWarnings: those that look like Syncer's, and no others.
func TestUnknownAnnotationsAreWarnings(t *testing.T) {
	got := FromSecret(SecretDefinition{Namespace: "ns", Name: "s", HasMap: true, Map: "a: p/a", Annotations: map[string]string{
		"conjur.org/restart-workload": "deployment/shop", targets.ManagedLabel: "true", restartWorkloads: "deployment/shop",
		pullSecretFor: "default", targets.RevisionAnnotation: "1", targets.RotationAnnotation: "x", "other.org/x": "y",
		groupSecrets + "g": "- a: p/a", groupFormat + "g": "json",
	}})
	wantEach(t, "warnings", got.Secret.Warnings, "conjur.org/managed-by-provider: not an annotation but a label", "conjur.org/restart-workload: not an annotation of a Secret")
}

func TestTheConfigurationWinsOverTheSecret(t *testing.T) {
	configured := &targets.Target{
		Entries: []targets.Entry{{Alias: "a", Variable: "q/a", ContentType: targets.ContentText}, {Alias: "cfg", Variable: "q/cfg", ContentType: targets.ContentText}, {Alias: "broken", Variable: "q/broken", ContentType: targets.ContentText}},
		Secret: &targets.Secret{
			Groups: []*targets.Target{{Group: "m", Format: targets.FormatJSON}}, Create: true, Type: "kubernetes.io/tls",
			Restart: []string{"deployment/a", "deployment/b"}, Faults: []targets.Fault{{Place: "secrets.yaml:3", Why: "no"}},
		},
	}
	got := FromSecret(SecretDefinition{
		Namespace: "ns", Name: "s", HasMap: true, Map: "a: p/a\nb: p/b\nm: p/m\nbroken: 5", Configured: configured,
		Annotations: map[string]string{
			groupSecrets + "cfg": "- p/a", groupFormat + "cfg": "yaml", groupSecrets + "x": "- p/a", groupFormat + "x": "yaml",
			restartWorkloads: "deployment/b,daemonset/c",
		},
	})
	equalTexts(t, "data keys", keysOf(got), "a", "cfg", "broken", "b", "m", "x")
	if got.Entries[0].Variable != "q/a" || got.Secret.Groups[0].Format != targets.FormatJSON {
		t.Errorf("%+v, want what the configuration says", got)
	}
	if !got.Secret.Create || got.Secret.Type != "kubernetes.io/tls" {
		t.Errorf("Create %v and Type %q", got.Secret.Create, got.Secret.Type)
	}
	equalTexts(t, "workloads", got.Secret.Restart, "deployment/a", "deployment/b", "daemonset/c")
	wantEach(t, "faults", got.Secret.Faults, "secrets.yaml:3: no", `conjur-map: line 4`)
	equalTexts(t, "what stays", got.Secret.Hold)
	wantEach(t, "warnings", got.Secret.Warnings, "conjur-map: not used", "conjur-map: not used", "conjur.org/conjur-secrets.cfg: not used")
	if len(configured.Entries) != 3 || len(configured.Secret.Groups) != 1 {
		t.Error("the configuration itself was changed")
	}
}

// One Secret's definition gives one target, whatever the order of annotations.
func TestFromSecretIsTheSameEachTime(t *testing.T) {
	def := SecretDefinition{Namespace: "ns", Name: "s", Annotations: map[string]string{}}
	for i := range 20 {
		def.Annotations[fmt.Sprint(groupSecrets, "g", i)], def.Annotations[fmt.Sprint(groupFormat, "g", i)] = "- a/", "json"
	}
	first := FromSecret(def)
	for range 20 {
		if again := FromSecret(def); !reflect.DeepEqual(first, again) {
			t.Fatal("differs")
		}
	}
}
