'use strict';
// Logins and TLS, each at a server of its own.

const assert = require('assert/strict');
const fs = require('fs');

const { auth, errors } = require('cassandra-driver');

module.exports = ({ connected, others }) => {
  async function release(options) {
    const client = connected(options);
    try {
      await client.connect();
      return (await client.execute('SELECT release_version FROM system.local')).first().release_version;
    } finally {
      await client.shutdown();
    }
  }

  const causeOf = (error) => Object.values(error.innerErrors || {})[0] || error;

  return {
    async login() {
      const { address, user, password } = others.login;
      const as = (name, secret) => release({
        contactPoints: [address], authProvider: new auth.PlainTextAuthProvider(name, secret),
      });
      assert.ok(await as(user, password));
      await assert.rejects(as(user, 'wrong'), (error) => {
        assert.ok(causeOf(error) instanceof errors.AuthenticationError, causeOf(error));
        assert.match(causeOf(error).message, /Provided username .* and\/or password are incorrect/);
        return true;
      });
      await assert.rejects(release({ contactPoints: [address] }), (error) => {
        assert.ok(causeOf(error) instanceof errors.AuthenticationError, causeOf(error));
        return true;
      });
      assert.ok(await release({ contactPoints: [address], credentials: { username: user, password } }));
    },

    async TLS() {
      const { address, ca } = others.tls;
      const trusting = { ca: [fs.readFileSync(ca)], rejectUnauthorized: true };
      assert.ok(await release({ contactPoints: [address], sslOptions: trusting }));
      await assert.rejects(release({ contactPoints: [address], sslOptions: { rejectUnauthorized: true } }), (error) => {
        assert.match(causeOf(error).message, /certificate/);
        return true;
      });
      await assert.rejects(release({ contactPoints: [address] }));
    },
  };
};
