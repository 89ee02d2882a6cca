import assert from 'node:assert/strict';
import { it } from 'node:test';
import { pino } from 'pino';
import { temporalTarget } from '../../infra/temporal/temporal-target.ts';
import { credentialsReplaced } from '../../workers/watch-credentials.ts';
import { createAuthority } from '../helpers/temporal/production/credentials.ts';

it('tells the log and the operator of a certificate that has expired, and ends with its process', async () => {
  await using authority = await createAuthority();
  const env = {
    TEMPORAL_CONFIG_FILE: '/nonexistent/temporal.toml',
    TEMPORAL_ADDRESS: '127.0.0.1:9',
    TEMPORAL_TLS_CLIENT_CERT_PATH: authority.expired.certFile,
    TEMPORAL_TLS_CLIENT_KEY_PATH: authority.expired.keyFile,
  };
  const settings = { env, temporalPort: 9 };
  const lines: string[] = [];
  const notes: (string | null)[] = [];
  const ending = new AbortController();
  const replaced = await credentialsReplaced(
    {
      settings,
      used: temporalTarget(settings),
      log: pino({}, { write: (line: string) => void lines.push(line) }),
      noteExpiry: async (text) => {
        notes.push(text);
        ending.abort();
      },
    },
    ending.signal,
  );
  assert.equal(replaced, false);
  assert.match(notes.join(), /^the client certificate for the Temporal server expired at \S+: have it renewed/);
  assert.deepEqual(
    lines.map((line) => JSON.parse(line).msg),
    notes,
  );
});
