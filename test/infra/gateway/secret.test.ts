import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { it } from 'node:test';
import { createSecretCheck, secretOf } from '../../../infra/gateway/secret.ts';

it('opens a session by the secret of any key of the gateway, and by no other', () => {
  const [newer, older, strange] = [randomBytes(32), randomBytes(32), randomBytes(32)];
  const sessionOf = createSecretCheck([newer, older]);
  // The code of a session is kept after its first request.
  for (const _ of ['first', 'again']) {
    assert.equal(sessionOf(secretOf(older, 'kept.1')), 'kept.1');
    assert.equal(sessionOf(secretOf(newer, 'kept.1')), 'kept.1');
    assert.equal(sessionOf(secretOf(strange, 'kept.1')), null);
  }
});
