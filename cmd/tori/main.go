// Command tori carries issues to verified commits. See README.md.
package main

import (
	"os"

	"toritsugi/internal/cli"
	"toritsugi/internal/sandbox"
)

func main() {
	sandbox.Helper(os.Args) // does not return where the program is a sandbox's helper
	os.Exit(cli.Main(os.Args[1:]))
}
