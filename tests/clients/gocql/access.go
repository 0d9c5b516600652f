package main

import (
	"crypto/tls"
	"path/filepath"
	"strings"
)

const question = "SELECT release_version FROM system.local"

// Connects with changed settings, and asks.
func asks(address string, change func(*Cluster)) error {
	session, err := opened(address, change)
	if err != nil {
		return err
	}
	defer session.Close()
	var version string
	return session.Query(question).Scan(&version)
}

func opened(address string, change func(*Cluster)) (*Session, error) {
	cluster := newCluster(address)
	change(cluster)
	return cluster.CreateSession()
}

func as(user, password string) func(*Cluster) {
	return func(cluster *Cluster) {
		cluster.Authenticator = Password{Username: user, Password: password}
	}
}

func login(address, superuser, password string) []section {
	return []section{
		{"login", func() { sure(asks(address, as(superuser, password))) }},
		{"wrong-password", func() {
			err := asks(address, as(superuser, "wrong"))
			check(err != nil && strings.Contains(err.Error(), "incorrect"), "wrong: %v", err)
			check(asks(address, func(*Cluster) {}) != nil, "without a password")
		}},
		{"rights", func() {
			session, err := opened(address, as(superuser, password))
			sure(err)
			defer session.Close()
			keyspace := "of_" + strings.ToLower(name)
			for _, statement := range []string{
				"CREATE KEYSPACE " + keyspace + " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
				"CREATE TABLE " + keyspace + ".t (k int PRIMARY KEY)",
				"CREATE ROLE " + keyspace + " WITH LOGIN = true AND PASSWORD = 'go'",
			} {
				sure(session.Query(statement).Exec())
			}
			reader, err := opened(address, as(keyspace, "go"))
			sure(err)
			defer reader.Close()
			err = reader.Query("SELECT * FROM " + keyspace + ".t").Exec()
			check(isUnauthorized(err), "a read without the right: %v", err)
			sure(session.Query("GRANT SELECT ON " + keyspace + ".t TO " + keyspace).Exec())
			sure(reader.Query("SELECT * FROM " + keyspace + ".t").Exec())
			err = reader.Query("INSERT INTO "+keyspace+".t (k) VALUES (?)", 1).Exec()
			check(isUnauthorized(err), "a write without the right: %v", err)
		}},
	}
}

func trusting(directory string, client bool) func(*Cluster) {
	return func(cluster *Cluster) {
		cluster.SslOpts = &SslOptions{CaPath: filepath.Join(directory, "ca.pem"), EnableHostVerification: true}
		if client {
			cluster.SslOpts.CertPath = filepath.Join(directory, "app.pem")
			cluster.SslOpts.KeyPath = filepath.Join(directory, "app.key")
		}
	}
}

func encrypted(address, directory string) []section {
	return []section{
		{"tls", func() { sure(asks(address, trusting(directory, false))) }},
		{"tls-not-trusted", func() {
			err := asks(address, func(cluster *Cluster) {
				cluster.SslOpts = &SslOptions{Config: &tls.Config{}, EnableHostVerification: true}
			})
			check(err != nil, "an authority that is not trusted")
		}},
		{"tls-in-clear", func() {
			check(asks(address, func(*Cluster) {}) != nil, "in clear")
		}},
	}
}

func withCertificate(address, directory string) []section {
	return []section{
		{"tls-client", func() { sure(asks(address, trusting(directory, true))) }},
		{"tls-no-client", func() {
			check(asks(address, trusting(directory, false)) != nil, "without a certificate")
		}},
	}
}
