import type { Logger } from 'pino';
import type { Host } from '../activities/host/host.ts';
import type { SandboxChoice } from '../workflows/contracts/sandbox-kinds.ts';

/** Reports in the log which kinds of sandbox are not ready. They must not block the worker: only rollouts that need them wait. */
export async function reportSandboxes(
  { providers }: Pick<Host, 'providers'>,
  { preferred, log }: { readonly preferred: SandboxChoice; readonly log: Pick<Logger, 'warn' | 'info'> },
): Promise<void> {
  const seen = await providers.seen();
  for (const [kind, provider] of providers.all) {
    if (seen.has(kind)) continue;
    const { summary } = await provider.describe();
    const text = `${kind} sandboxes are unavailable; rollouts that need them wait and retry`;
    log[kind === preferred ? 'warn' : 'info']({ kind, got: summary }, text);
  }
}
