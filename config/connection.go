package config

// LoadConnection reads from the environment alone how Conjur is reached, for
// commands that need no more. Problems are reported as by Load.
func LoadConnection(getenv func(string) string) (Conjur, []Problem, error) {
	l := &loader{src: Sources{Getenv: getenv}, values: newValues()}
	l.addEnvironment(getenv, &l.report)
	var cfg Config
	fill(l.table, l.process, subject{Config: &cfg, conjur: &cfg.Conjur})
	l.conjur(&cfg.Conjur)
	if len(l.problems) > 0 {
		return Conjur{}, l.warnings, &InvalidError{l.problems}
	}
	return cfg.Conjur, l.warnings, nil
}
