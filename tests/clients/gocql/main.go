// Tests gocql with its own defaults, in two versions: Apache's 2, and 1.7 with the tag gocql1 and the
// modules of gocql1.mod. Prints a line for each section: "NAME ok", or "NAME failed: REASON"; or "ok"
// after the brief form.
//
// usage: gocql HOST:PORT KEYSPACE, gocql plain HOST:PORT KEYSPACE, gocql login HOST:PORT SUPERUSER
// PASSWORD, gocql tls HOST:PORT DIRECTORY, gocql tls-client HOST:PORT DIRECTORY
//
// With SECTIONS="NAME NAME ..." in the environment it runs only those.
package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

type section struct {
	name string
	run  func()
}

func main() {
	arguments := os.Args[1:]
	var sections []section
	switch arguments[0] {
	case "plain":
		sections = plain(arguments[1], arguments[2])
	case "login":
		sections = login(arguments[1], arguments[2], arguments[3])
	case "tls":
		sections = encrypted(arguments[1], arguments[2])
	case "tls-client":
		sections = withCertificate(arguments[1], arguments[2])
	default:
		brief(arguments[0], arguments[1])
		return
	}
	ok, wanted := true, strings.Fields(os.Getenv("SECTIONS"))
	for _, one := range sections {
		if len(wanted) == 0 || slices.Contains(wanted, one.name) {
			ok = one.ends() && ok
		}
	}
	if !ok {
		os.Exit(1)
	}
}

// Runs a section, which fails by a panic, and prints how it ended.
func (s section) ends() (ok bool) {
	defer func() {
		if reason := recover(); reason != nil {
			fmt.Printf("%s failed: %s\n", s.name, strings.ReplaceAll(fmt.Sprint(reason), "\n", " "))
		}
	}()
	s.run()
	fmt.Println(s.name, "ok")
	return true
}

func check(holds bool, what string, values ...any) {
	if !holds {
		panic(fmt.Sprintf(what, values...))
	}
}

func equal(expected, found any, what string) {
	check(fmt.Sprint(expected) == fmt.Sprint(found), "%s: %v, not %v", what, found, expected)
}

func sure(err error) {
	if err != nil {
		panic(err)
	}
}

func eventually(holds func() bool, what string) {
	for deadline := time.Now().Add(20 * time.Second); !holds(); time.Sleep(20 * time.Millisecond) {
		check(time.Now().Before(deadline), "not within 20 s: %s", what)
	}
}
