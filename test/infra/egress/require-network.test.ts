import assert from 'node:assert/strict';
import { it } from 'node:test';
import { requireNetwork } from '../../../infra/egress/require-network.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { type NetworkMode, networkModes } from '../../../workflows/contracts/network.ts';

it('a task that asks for more network than the operator allows is refused, with the setting to change', () => {
  const allows = (asked: NetworkMode, cap: NetworkMode): boolean => {
    try {
      requireNetwork({ id: 'fetch', network: { mode: asked, hosts: [], ports: [443] } }, cap);
      return true;
    } catch (error) {
      assert.ok(error instanceof TemperFailure);
      assert.equal(error.type, 'UnsupportedTask');
      assert.match(
        error.message,
        new RegExp(`task fetch: .* TEMPER_NETWORK allows, got ${asked}; set TEMPER_NETWORK=`),
      );
      return false;
    }
  };
  const allowed = networkModes.map((cap) => networkModes.filter((asked) => allows(asked, cap)));
  assert.deepEqual(allowed, [['none'], ['none', 'allowlist'], ['none', 'allowlist', 'public']]);
  assert.doesNotThrow(() => requireNetwork({ id: 'offline' }, 'none'));
});
