package definitions

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// yamlLine matches the position of the line number in a message of the YAML library.
var yamlLine = regexp.MustCompile(`^(?:line (\d+): )?(?:found character that cannot start any token|found a tab character)`)

// YAMLError converts an error of the YAML library for text into one for people. It begins
// with the line, if known.
func YAMLError(text []byte, err error) error {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	if found := yamlLine.FindStringSubmatch(message); found != nil {
		// The library returns the line of the tab, or an earlier line.
		from, _ := strconv.Atoi(found[1])
		for i, line := range strings.Split(string(text), "\n") {
			if i+1 >= from && i <= max(from, 1) && strings.HasPrefix(strings.TrimLeft(line, " "), "\t") && strings.TrimSpace(line) != "" {
				return fmt.Errorf("line %d: a tab begins the line; YAML is indented by spaces alone", i+1)
			}
		}
	}
	return errors.New(message)
}
