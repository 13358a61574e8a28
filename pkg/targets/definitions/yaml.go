package definitions

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// yamlLine is where a message of the YAML library has its line, if it has one.
var yamlLine = regexp.MustCompile(`^(?:line (\d+): )?(?:found character that cannot start any token|found a tab character)`)

// YAMLError makes an error of the YAML library, for text, one that people
// understand. Its text begins with the line, as far as that is known.
func YAMLError(text []byte, err error) error {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	if found := yamlLine.FindStringSubmatch(message); found != nil {
		// The library's line is the tab's, or one before it.
		from, _ := strconv.Atoi(found[1])
		for i, line := range strings.Split(string(text), "\n") {
			if i+1 >= from && i <= max(from, 1) && strings.HasPrefix(strings.TrimLeft(line, " "), "\t") && strings.TrimSpace(line) != "" {
				return fmt.Errorf("line %d: a tab begins the line; YAML is indented by spaces alone", i+1)
			}
		}
	}
	return errors.New(message)
}
