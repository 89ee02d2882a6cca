import { Command } from 'commander';
import { isUp, readUpFile } from '../../up/up-file.ts';
import { onInterrupt } from '../follow/interrupt.ts';
import { configOf, type JsonOption, stackCommand } from '../stack/command.ts';
import { Interrupted, UsageError } from '../text/errors.ts';
import { bytes, counted, live, print, printJson } from '../text/output.ts';
import type { ReplaceKeyOptions } from './store/replace-key.ts';

export function storeCommand(): Command {
  const copy = stackCommand(
    'copy',
    'Copies what the stack of a home has kept below the home into the bucket that TEMPER_STORE names, and compares every byte. May be repeated; the home stays as it is.',
    'TEMPER_STORE=s3://my-bucket/one temper store copy',
  )
    .option('--json', 'print one JSON object to stdout')
    .action(copyStore);
  const replace = stackCommand(
    'replace-key',
    "Makes the key that this machine has the only one of its stack: if the stack's key is lost, or at the end of a change, so that the old one is refused. Agents whose secret is of another key get no more answers once the gateways have started again.",
    'TEMPER_STACK_KEY_FILE=/etc/temper/key temper store replace-key',
  )
    .option('--yes', 'do not ask for confirmation')
    .option('--json', 'print one JSON object to stdout')
    .action(async (options: ReplaceKeyOptions) => (await import('./store/replace-key.ts')).replaceKey(options));
  return new Command('store')
    .description("Moves a stack's shared state, and replaces its key.")
    .addCommand(copy)
    .addCommand(replace);
}

/** Refuses a home on which a host worker runs by itself, without `temper up`. */
async function requireNoHost(hostLock: string, home: string): Promise<void> {
  const { tryLock } = await import('../../../infra/process/file-lock.ts');
  const lock = await tryLock(hostLock);
  if (!('holder' in lock)) return await lock.release();
  const { pid } = lock.holder;
  throw new Error(
    `a host worker runs on ${home} (${pid === null ? 'another process' : `process ${pid}`}), which would change what is being copied; stop all processes of the stack first`,
  );
}

async function copyStore(options: JsonOption): Promise<void> {
  const { copyKeyFingerprints, openStackId } = await import('../../../infra/stack.ts');
  const { copyObjects } = await import('../../../infra/store/copy.ts');
  const { openObjects } = await import('../../../infra/store/shared-state.ts');
  const { requireUsable } = await import('../../../infra/store/usable.ts');
  const { home, paths, store } = configOf(options);
  if (store.kind === 'directory') {
    throw new UsageError('expected a bucket to copy to in TEMPER_STORE, such as s3://my-bucket/one, got none');
  }
  const up = await readUpFile(paths.up);
  if (up !== null && isUp(up)) {
    throw new Error(`a stack runs on ${home}, which would change what is being copied; stop it with \`temper down\``);
  }
  await requireNoHost(paths.hostLock, home);
  const interrupt = onInterrupt('ending after the objects that are being copied');
  try {
    const [from, to] = [await openObjects({ kind: 'directory', root: home }), await openObjects(store)];
    await requireUsable(to);
    // A home without an identity gets its own first, so that it cannot take over the stack of the bucket.
    await openStackId(paths, from);
    await openStackId(paths, to);
    await copyKeyFingerprints(from, to);
    const copied = await copyObjects(from, to, {
      signal: interrupt.signal,
      onProgress: ({ objects, bytes: size, sent }) =>
        live(`${counted(objects, 'object')} compared (${bytes(size)}), ${sent} of them sent`),
    });
    live('');
    if (options.json) return printJson({ from: from.location, to: to.location, ...copied });
    print(
      `${to.location} has all ${counted(copied.objects, 'object')} (${bytes(copied.bytes)}) of ${from.location}; sent: ${copied.sent}`,
    );
  } catch (error) {
    if (!interrupt.signal.aborted) throw error;
    throw new Interrupted('interrupted; run the same command again to continue');
  } finally {
    live('');
    interrupt.release();
  }
}
