// Package joined takes joined errors apart, so that each problem is reported separately.
package joined

// Errors returns the errors that err joins, in order, however deeply. An error that joins
// none is returned alone; nil has none.
func Errors(err error) (all []error) {
	joins, ok := err.(interface{ Unwrap() []error })
	switch {
	case err == nil:
		return nil
	case !ok:
		return []error{err}
	}
	for _, e := range joins.Unwrap() {
		all = append(all, Errors(e)...)
	}
	return all
}
