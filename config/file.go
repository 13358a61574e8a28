package config

// ConfigFileVariable names the configuration file when Sources does not.
const ConfigFileVariable = "SYNCER_CONFIG"

// addFile reads the file at path into what no stronger source has set.
func (v *values) addFile(path string, r *report) {
	data, err := readFile(path)
	if err != nil {
		r.fail(path, "the configuration file cannot be read: %v", err)
		return
	}
	v.parseFile(path, data, r)
}

func (v *values) parseFile(name string, data []byte, r *report) {
	f := (&decoder{r, name}).decode(data)
	for _, s := range v.table {
		if s.envOnly || v.process[s.name].set {
			continue
		}
		val := *fieldOf(f, s.name)
		if !val.set {
			continue
		}
		if s.later {
			r.warn(val.key, notYet)
		}
		v.process[s.name] = val
		if s.name == nameK8sSecrets {
			v.secrets = &f.Kubernetes.Secrets
		}
	}
	v.identities = f.Identities
	v.addTargets(f.Targets.items, r)
}

// addTargets takes the file's targets, each of which must have a name that no
// other has.
func (v *values) addTargets(ts []fileTarget, r *report) {
	for i := range ts {
		t := &ts[i]
		name := t.Name
		if !name.set || name.bad {
			continue
		}
		if _, twice := v.groups[name.text]; twice {
			r.fail(name.key, "the name %q is already that of another target or of a group in the annotations", name.text)
			continue
		}
		if !t.Secrets.set { // which is reported
			t.Secrets.value = value{key: name.key, set: true, bad: true}
		}
		for _, s := range v.groupTable {
			if val := *fieldOf(t, s.name); val.set {
				v.put(s.name, &name.text, val)
			}
		}
	}
}
