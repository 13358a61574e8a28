package render

import (
	"fmt"
	"strconv"
	"text/template/parse"
)

// The functions that harden inserts into a template. A template's text cannot use
// them, because they are undefined when it is parsed.
const (
	stepFunc   = "_step"   // at the start of each list of nodes
	enterFunc  = "_enter"  // the same, for the list of a whole template
	leaveFunc  = "_leave"  // at the end of that list
	emitFunc   = "_emit"   // at the end of each printed pipeline
	truthFunc  = "_truth"  // at the end of each condition, and around those of and, or
	secretFunc = "_secret" // secret with a literal alias; errors may show it
	failFunc   = "_fail"   // fail with a literal message; errors may show it
)

// hardener rewrites parse trees so that their execution can be stopped.
type hardener struct {
	tree *parse.Tree
	used map[string]bool // functions that the text uses
	deep bool            // nesting exceeds maxNesting
}

// harden rewrites the trees of a template and lists the functions that they use.
func harden(name string, trees map[string]*parse.Tree) (used map[string]bool, err error) {
	h := &hardener{used: map[string]bool{}}
	for _, tree := range trees {
		if h.tree = tree; tree.Root == nil {
			continue
		}
		cost := h.hardenList(tree.Root, 0)
		nodes := []parse.Node{h.call(tree.Root.Pos, enterFunc, cost)}
		nodes = append(nodes, tree.Root.Nodes[1:]...)
		tree.Root.Nodes = append(nodes, h.call(tree.Root.Pos, leaveFunc, 0))
	}
	if h.deep {
		return nil, fmt.Errorf("template: %s: more than %d blocks or parentheses within each other", name, maxNesting)
	}
	return h.used, nil
}

// hardenList inserts a step before the nodes. The step counts the nodes and their
// commands.
func (h *hardener) hardenList(list *parse.ListNode, depth int) (cost int) {
	if list == nil || h.tooDeep(depth) {
		return 0
	}
	cost = 1
	for _, node := range list.Nodes {
		cost++
		switch node := node.(type) {
		case *parse.ActionNode:
			cost += h.pipe(node.Pipe, depth)
			if len(node.Pipe.Decl) == 0 {
				node.Pipe.Cmds = append(node.Pipe.Cmds, h.command(node.Pos, emitFunc))
			}
		case *parse.IfNode:
			cost += h.decide(&node.BranchNode, depth)
		case *parse.RangeNode:
			cost += h.branch(&node.BranchNode, depth)
		case *parse.WithNode:
			cost += h.decide(&node.BranchNode, depth)
		case *parse.TemplateNode:
			cost += h.pipe(node.Pipe, depth)
		}
	}
	list.Nodes = append([]parse.Node{h.call(list.Pos, stepFunc, cost)}, list.Nodes...)
	return cost
}

// branch hardens both lists. Their cost is counted when they run.
func (h *hardener) branch(b *parse.BranchNode, depth int) (cost int) {
	h.hardenList(b.List, depth+1)
	h.hardenList(b.ElseList, depth+1)
	return h.pipe(b.Pipe, depth)
}

// decide is branch for a condition.
func (h *hardener) decide(b *parse.BranchNode, depth int) (cost int) {
	cost = h.branch(b, depth)
	if b.Pipe != nil {
		b.Pipe.Cmds = append(b.Pipe.Cmds, h.command(b.Pos, truthFunc))
	}
	return cost
}

func (h *hardener) pipe(pipe *parse.PipeNode, depth int) (cost int) {
	if pipe == nil || h.tooDeep(depth) {
		return 0
	}
	for _, command := range pipe.Cmds {
		h.literal(command)
		cost++
		name, _ := command.Args[0].(*parse.IdentifierNode)
		for i, arg := range command.Args {
			cost += h.argument(arg, depth)
			if i > 0 && name != nil && (name.Ident == "and" || name.Ident == "or") {
				command.Args[i] = h.truth(arg)
			}
		}
	}
	return cost
}

func (h *hardener) argument(arg parse.Node, depth int) (cost int) {
	switch arg := arg.(type) {
	case *parse.PipeNode:
		return h.pipe(arg, depth+1)
	case *parse.ChainNode:
		return 1 + h.argument(arg.Node, depth)
	case *parse.IdentifierNode:
		if arg.Ident != secretFunc && arg.Ident != failFunc {
			h.used[arg.Ident] = true
		}
	}
	return 1
}

// literal marks a call whose only argument is a literal in the template.
func (h *hardener) literal(command *parse.CommandNode) {
	name, ok := command.Args[0].(*parse.IdentifierNode)
	if !ok || len(command.Args) != 2 || command.Args[1].Type() != parse.NodeString {
		return
	}
	switch name.Ident {
	case "secret":
		h.used[name.Ident], name.Ident = true, secretFunc
	case "fail":
		h.used[name.Ident], name.Ident = true, failFunc
	}
}

// truth returns the action (_truth arg).
func (h *hardener) truth(arg parse.Node) parse.Node {
	command := h.command(arg.Position(), truthFunc)
	command.Args = append(command.Args, arg)
	return &parse.PipeNode{NodeType: parse.NodePipe, Pos: arg.Position(), Cmds: []*parse.CommandNode{command}}
}

func (h *hardener) tooDeep(depth int) bool {
	h.deep = h.deep || depth > maxNesting
	return h.deep
}

// call returns the action {{name cost}}.
func (h *hardener) call(pos parse.Pos, name string, cost int) parse.Node {
	command := h.command(pos, name)
	command.Args = append(command.Args, &parse.NumberNode{
		NodeType: parse.NodeNumber, Pos: pos, IsInt: true, Int64: int64(cost), Text: strconv.Itoa(cost),
	})
	return &parse.ActionNode{NodeType: parse.NodeAction, Pos: pos, Pipe: &parse.PipeNode{
		NodeType: parse.NodePipe, Pos: pos, Cmds: []*parse.CommandNode{command},
	}}
}

func (h *hardener) command(pos parse.Pos, name string) *parse.CommandNode {
	function := parse.NewIdentifier(name).SetPos(pos).SetTree(h.tree)
	return &parse.CommandNode{NodeType: parse.NodeCommand, Pos: pos, Args: []parse.Node{function}}
}
