package main

import (
	"fmt"
	"time"
)

// interval is the refresh interval of every subject.
const interval = time.Second

// figure names one measured quantity.
type figure string

// The figures. The figures of refreshes are means over the unchanged ones.
const (
	cpuPerRefresh  figure = "CPU per refresh"
	cpuDearest     figure = "CPU of the dearest refresh"
	dataRequests   figure = "data requests per refresh"
	authentication figure = "authentications per refresh"
	connections    figure = "new connections per refresh"
	secretBytes    figure = "secret bytes per refresh"
	peakRSS        figure = "peak RSS"
	peakAnon       figure = "peak RSS, anonymous part"
	startMedian    figure = "start to all files, median"
	startMax       figure = "start to all files, max"
	startRequests  figure = "data requests at start"
	changeMedian   figure = "change to file, median"
	changeMax      figure = "change to file, max"
)

// figures are measured values. A missing figure was not measured.
type figures map[figure]float64

// scale describes how to display a figure.
type scale struct {
	figure   figure
	unit     string
	decimals int
}

// scales lists the figures in the order of the table.
func scales() []scale {
	return []scale{
		{cpuPerRefresh, "ms", 2}, {cpuDearest, "ms", 2},
		{dataRequests, "", 2}, {authentication, "", 2}, {connections, "", 2}, {secretBytes, "B", 0},
		{peakRSS, "MiB", 1}, {peakAnon, "MiB", 1},
		{startMedian, "ms", 0}, {startMax, "ms", 0}, {startRequests, "", 0},
		{changeMedian, "ms", 0}, {changeMax, "ms", 0},
	}
}

// profile is an application to measure with.
type profile struct {
	name             string
	groups, perGroup int
	// nodes is the number of nodes with node-specific variables, including this
	// one. 0 means that there are none.
	nodes  int
	starts int     // number of measured starts
	reach  figures // the maximum of each figure
	// incumbent holds earlier measurements of the Secrets Provider 1.9 on a similar
	// machine. Nil means that it cannot serve the profile, because it requests all
	// variables in one request line.
	incumbent figures
}

func profiles() []profile {
	return []profile{
		{
			name: "small", groups: 5, perGroup: 5, starts: 7,
			reach: figures{
				cpuPerRefresh: 1.5, dataRequests: 1, authentication: 0, connections: 0, secretBytes: 0,
				peakRSS: 40, peakAnon: 16, startMedian: 40, changeMax: 1.2 * milliseconds(interval),
			},
			incumbent: figures{
				cpuPerRefresh: 560, dataRequests: 1, authentication: 1, connections: 2, secretBytes: 2151,
				peakRSS: 39, startMedian: 330,
			},
		},
		{
			name: "large", groups: 400, perGroup: 5, starts: 3,
			reach: figures{
				cpuPerRefresh: 10, dataRequests: 10, peakRSS: 48, startMedian: 1000, startRequests: 20,
			},
		},
		{
			name: "node", groups: 4, perGroup: 5, nodes: 300, starts: 3,
			reach: figures{cpuPerRefresh: 2.5, dataRequests: 1, secretBytes: 0},
		},
	}
}

func (p profile) String() string {
	if p.nodes > 0 {
		return fmt.Sprintf("%s: %d groups × %d variables of this node's own, of %d that nodes have, TLS, interval %s",
			p.name, p.groups, p.perGroup, p.nodes*p.count(), interval)
	}
	return fmt.Sprintf("%s: %d groups × %d variables of %d–%d bytes, TLS, interval %s",
		p.name, p.groups, p.perGroup, shortest, longest, interval)
}

// shortest and longest bound a value's length.
const shortest, longest = 10, 100

// valueLength distributes the lengths evenly.
func valueLength(variable int) int { return shortest + variable*37%(longest-shortest+1) }

// variable returns the id of the i-th variable, counted from 0. It is node-specific
// if the profile has nodes.
func (p profile) variable(i int) string {
	if p.nodes > 0 {
		return p.override(0, i)
	}
	return policyPath + "/" + variableName(i)
}

// override returns the id of a node-specific variable. Node 0 is this one.
func (p profile) override(node, i int) string {
	return fmt.Sprintf("node/%s/%s/%s", nodeName(node), policyPath, variableName(i))
}

func nodeName(i int) string { return fmt.Sprintf("node%03d", i) }

func variableName(i int) string { return fmt.Sprintf("var%04d", i+1) }

func (p profile) count() int { return p.groups * p.perGroup }

// group is one secret group of a profile. Its variables are [first, end).
type group struct {
	name, format string
	first, end   int
}

func (p profile) group(i int) group {
	formats := [...]string{"yaml", "json", "dotenv", "bash", "template"}
	return group{
		name: fmt.Sprintf("group%03d", i+1), format: formats[i%len(formats)],
		first: i * p.perGroup, end: (i + 1) * p.perGroup,
	}
}

func (g group) file() string { return g.name + ".conf" }

// milliseconds converts d to the unit of the figures.
func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
