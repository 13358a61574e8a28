// Command tiny stands in for Syncer in an image.
package main

func main() {}
