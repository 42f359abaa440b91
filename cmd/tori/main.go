// Command tori carries issues to verified commits. See README.md.
package main

import (
	"os"

	"toritsugi/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:])) }
