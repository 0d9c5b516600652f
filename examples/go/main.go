// Quickstart finds books by vectors and by words.
package main

import (
	"cmp"
	"fmt"
	"log"
	"os"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
)

var schema = []string{
	`
	CREATE KEYSPACE IF NOT EXISTS quickstart
		WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}
	`,
	`
	CREATE TABLE IF NOT EXISTS quickstart.books
		(id int PRIMARY KEY, title text, year int, about text, embedding vector<float, 3>)
	`,
	// The columns after the first are those that searches filter by.
	`
	CREATE CUSTOM INDEX IF NOT EXISTS books_by_embedding ON quickstart.books (embedding, year)
		USING 'vector_index' WITH OPTIONS = {'similarity_function': 'cosine'}
	`,
	`
	CREATE CUSTOM INDEX IF NOT EXISTS books_by_words ON quickstart.books (about, year)
		USING 'fulltext_index' WITH OPTIONS = {'analyzer': 'english'}
	`,
}

const (
	insert   = "INSERT INTO quickstart.books (id, title, year, about, embedding) VALUES (?, ?, ?, ?, ?)"
	filtered = "SELECT title, year FROM quickstart.books WHERE year >= ? ORDER BY embedding ANN OF ? LIMIT 2"
	hybrid   = "SELECT title, year FROM quickstart.books ORDER BY RRF(ANN(embedding, ?), BM25(about, ?)) LIMIT 2"
)

type book struct {
	id        int
	title     string
	year      int
	about     string
	embedding []float32
}

// A model makes such vectors of texts. Here the numbers say how much sea, space and love is in a book.
var books = []book{
	{1, "Moby-Dick", 1851, "A captain hunts a white whale across the oceans.", []float32{0.9, 0.0, 0.1}},
	{2, "Pride and Prejudice", 1813, "Two proud people learn to love.", []float32{0.0, 0.0, 1.0}},
	{3, "The Old Man and the Sea", 1952, "An old man rows out alone for one great fish.", []float32{0.9, 0.0, 0.3}},
	{4, "Solaris", 1961, "Far from the Earth, an ocean thinks.", []float32{0.5, 0.8, 0.4}},
}
var sea = []float32{1.0, 0.0, 0.0}

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	session, err := gocql.NewCluster(cmp.Or(os.Getenv("ANNULUS_CQL"), "127.0.0.1:9042")).CreateSession()
	if err != nil {
		return err
	}
	defer session.Close()
	for _, statement := range schema {
		if err := session.Query(statement).Exec(); err != nil {
			return err
		}
	}
	// The driver prepares statements with values, and so learns that a marker is a vector.
	for _, b := range books {
		if err := session.Query(insert, b.id, b.title, b.year, b.about, b.embedding).Exec(); err != nil {
			return err
		}
	}
	if err := show("Near the sea, since 1900:", session.Query(filtered, 1900, sea)); err != nil {
		return err
	}
	return show("Near the sea, or about an ocean:", session.Query(hybrid, sea, "ocean"))
}

func show(question string, query *gocql.Query) error {
	fmt.Println(question)
	found := query.Iter()
	var title string
	var year int
	for found.Scan(&title, &year) {
		fmt.Printf("  %s (%d)\n", title, year)
	}
	return found.Close()
}
