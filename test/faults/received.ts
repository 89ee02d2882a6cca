import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '../../infra/settings/config.ts';
import type { JournaledUpdate } from '../../infra/trainer/journal.ts';

/** A request in the embedded policy server's own record of what it received. */
export interface Received {
  readonly kind: string;
  readonly modelId: string;
  readonly sequence: number | null;
  readonly checksum: string | null;
  readonly digest: string | null;
}

export const receivedBy = (config: Config): Promise<Received[]> =>
  receivedFrom(join(config.paths.policy, 'received.jsonl'));

/** Reads the record of a policy server, in the order of arrival. */
export async function receivedFrom(path: string): Promise<Received[]> {
  const lines = (await readFile(path, 'utf8')).split('\n').filter((line) => line !== '');
  return lines.map((line) => JSON.parse(line));
}

export function lastChecksum(
  received: readonly Received[],
  update: { modelId: string; optimSequence: number } | undefined,
) {
  const entry = received.find(
    (one) => one.kind === 'optim_step' && one.modelId === update?.modelId && one.sequence === update.optimSequence,
  );
  assert.ok(entry?.checksum);
  return entry.checksum;
}

export function digestsOf(received: readonly Received[], update: JournaledUpdate): (string | null)[] {
  const { modelId, forwardSequence, optimSequence } = update;
  return Array.from({ length: optimSequence - forwardSequence }, (_, index) => {
    const same = received.filter((one) => one.modelId === modelId && one.sequence === forwardSequence + index);
    assert.equal(same.length, 1);
    return same[0]?.digest ?? null;
  });
}
