import type { Account } from '../sandbox.ts';
import { killAll } from './scripts.ts';
import type { Shell } from './shell.ts';

const rounds = 5;
const never = new AbortController().signal;

/**
 * Kills all processes of an account by one signal, which even a chain of short-lived processes can't outrun. Processes that keep
 * killing the killer first may survive it.
 */
export async function killTogether(shell: Pick<Shell, 'run'>, account: Account): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    const { exitCode } = await shell.run({ role: account, text: killAll, args: [] }, never);
    if (exitCode === 0) return;
  }
}
