//go:build !race

package fleet

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// plotWindow is the number of seconds that one point of the plot averages.
const plotWindow = 10

// plot writes the requests per second as SVG. It is readable on light and dark pages.
func (s *server) plot(t *testing.T, path string) {
	const width, height, left, top = 1000.0, 260.0, 45.0, 190.0
	s.mu.Lock()
	defer s.mu.Unlock()
	most := 0.0
	series := func(of func(second) int) (points []float64) {
		for at := 0; at+plotWindow <= len(s.seconds); at += plotWindow {
			sum := 0
			for _, c := range s.seconds[at : at+plotWindow] {
				sum += of(c)
			}
			points = append(points, float64(sum)/plotWindow)
			most = max(most, points[len(points)-1])
		}
		return points
	}
	all, logIns := series(func(c second) int { return c.requests }), series(func(c second) int { return c.logIns })
	x := func(at time.Duration) float64 { return left + at.Seconds()/float64(len(s.seconds))*width }
	y := func(rate float64) float64 { return top + height*(1-rate/most) }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" font-family="sans-serif" font-size="12">
<title>Requests and log-ins per second over virtual time</title>
<style>svg{--ink:#333;--all:#0969da;--in:#bc4c00;--line:#ccc}@media(prefers-color-scheme:dark){svg{--ink:#ddd;--all:#58a6ff;--in:#f0883e;--line:#444}}text{fill:var(--ink)}polyline{fill:none;stroke-width:1.3}line{stroke:var(--line)}</style>
`, left+width+140, top+height+40) // the last label reaches beyond the plot
	for _, rate := range []float64{0, most / 2, most} {
		fmt.Fprintf(&b, `<line x1="%.0f" x2="%.0f" y1="%.0f" y2="%[3]f"/><text x="%.0f" y="%.0f" text-anchor="end">%.0f</text>`+"\n", left, left+width, y(rate), left-5, y(rate)+4, rate)
	}
	for _, p := range s.phases {
		at := x(p.at.Sub(s.began))
		fmt.Fprintf(&b, `<line x1="%.1f" x2="%[1]f" y1="%.0f" y2="%.0f"/><text transform="translate(%[1]f,%[2]f) rotate(-45)">%[4]s</text>`+"\n", at, top-5, top+height, p.name)
	}
	for hour := time.Duration(0); hour.Seconds() < float64(len(s.seconds)); hour += time.Hour {
		fmt.Fprintf(&b, `<text x="%.1f" y="%.0f" text-anchor="middle">%.0f h</text>`+"\n", x(hour), top+height+16, hour.Hours())
	}
	for n, points := range [][]float64{all, logIns} {
		fmt.Fprintf(&b, `<text x="%.0f" y="%.0f" style="fill:var(--%[3]s)">%[4]s</text><polyline style="stroke:var(--%[3]s)" points="`,
			left+200+float64(n)*160, top+height+35, []string{"all", "in"}[n], []string{"requests per second", "of them log-ins"}[n])
		for i, rate := range points {
			fmt.Fprintf(&b, "%.1f,%.1f ", x(time.Duration(i)*plotWindow*time.Second), y(rate))
		}
		b.WriteString("\"/>\n")
	}
	b.WriteString("</svg>\n")
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
