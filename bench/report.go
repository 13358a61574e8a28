package main

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"text/tabwriter"
	"time"
)

// Report is the result of a run.
type Report struct {
	Machine  Machine         `json:"machine"`
	Date     time.Time       `json:"date"`
	Profiles []ProfileReport `json:"profiles"`
}

// Machine describes the machine of a run.
type Machine struct {
	OS    string `json:"os"`
	Arch  string `json:"arch"`
	Cores int    `json:"cores"`
	Go    string `json:"go"`
	// Files is the type of the folders' file system. It determines the time of a
	// durable write.
	Files string `json:"files"`
}

// thisMachine describes this machine, with files in dir.
func thisMachine(dir string) Machine {
	return Machine{
		OS: runtime.GOOS, Arch: runtime.GOARCH, Cores: runtime.NumCPU(), Go: runtime.Version(),
		Files: fileSystem(dir),
	}
}

// ProfileReport is the part of one profile.
type ProfileReport struct {
	profile                 profile
	refreshes               int
	syncer, bare, incumbent figures
	incumbentMeasured       bool // in this run
}

// Row is a line of a table. Nil means that a figure was not measured or has no
// goal.
type Row struct {
	Figure    figure   `json:"figure"`
	Unit      string   `json:"unit,omitempty"`
	Measured  *float64 `json:"measured"`
	Bare      *float64 `json:"bareClient"`
	Incumbent *float64 `json:"incumbent"`
	Reach     *float64 `json:"reach"`
	Reached   *bool    `json:"reached"`

	decimals int
}

// Rows returns the lines with at least one value.
func (p ProfileReport) Rows() (rows []Row) {
	get := func(from figures, f figure) *float64 {
		if v, ok := from[f]; ok {
			return &v
		}
		return nil
	}
	for _, s := range scales() {
		row := Row{
			Figure: s.figure, Unit: s.unit, decimals: s.decimals, Measured: get(p.syncer, s.figure),
			Bare: get(p.bare, s.figure), Incumbent: get(p.incumbent, s.figure), Reach: get(p.profile.reach, s.figure),
		}
		if row.Measured == nil {
			continue
		}
		if row.Reach != nil {
			reached := *row.Measured <= *row.Reach
			row.Reached = &reached
		}
		rows = append(rows, row)
	}
	return rows
}

// MarshalJSON implements json.Marshaler.
func (p ProfileReport) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Profile           string `json:"profile"`
		Groups            int    `json:"groups"`
		Variables         int    `json:"variables"`
		Refreshes         int    `json:"refreshes"`
		IncumbentMeasured bool   `json:"incumbentMeasuredInThisRun"`
		Rows              []Row  `json:"rows"`
	}{p.profile.name, p.profile.groups, p.profile.count(), p.refreshes, p.incumbentMeasured, p.Rows()})
}

// WriteJSON writes the report as JSON.
func (r *Report) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

// WriteText writes a table for each profile.
func (r *Report) WriteText(w io.Writer) error {
	fmt.Fprintf(w, "%s/%s, %d cores, %s, files on %s, %s\n",
		r.Machine.OS, r.Machine.Arch, r.Machine.Cores, r.Machine.Go, r.Machine.Files,
		r.Date.UTC().Format("2006-01-02 15:04 UTC"))
	for _, p := range r.Profiles {
		fmt.Fprintf(w, "\n%s, %d unchanged refreshes\n\n", p.profile, p.refreshes)
		if err := p.writeTable(w); err != nil {
			return err
		}
	}
	return nil
}

func (p ProfileReport) writeTable(w io.Writer) error {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	old := "\tincumbent 1.9 (measured once, not in this run)"
	switch {
	case p.incumbentMeasured:
		old = "\tincumbent"
	case p.incumbent == nil:
		old = ""
	}
	fmt.Fprintf(tab, "figure\tmeasured\tbare client%s\tto reach\t\n", old)
	for _, row := range p.Rows() {
		fmt.Fprintf(tab, "%s\t%s\t%s", row.Figure, row.text(row.Measured, row.decimals), row.text(row.Bare, row.decimals))
		if old != "" {
			decimals := -1 // all decimals
			if p.incumbentMeasured {
				decimals = row.decimals
			}
			fmt.Fprintf(tab, "\t%s", row.text(row.Incumbent, decimals))
		}
		verdict := ""
		if row.Reached != nil {
			verdict = "missed"
			if *row.Reached {
				verdict = "reached"
			}
		}
		fmt.Fprintf(tab, "\t%s\t%s\n", row.text(row.Reach, -1), verdict)
	}
	return tab.Flush()
}

// text formats a value with its unit. -1 keeps all its decimals.
func (r Row) text(v *float64, decimals int) string {
	if v == nil {
		return "–"
	}
	text := strconv.FormatFloat(*v, 'f', decimals, 64)
	if r.Unit != "" {
		text += " " + r.Unit
	}
	return text
}
