import type Docker from 'dockerode';
import { SandboxFailure } from '../../failure.ts';
import type { ReportImage } from '../../image.ts';
import { missingImage } from '../create-container.ts';
import { callDaemon, daemonStatus, fullDisk } from '../daemon.ts';
import { type DaemonEvent, daemonEvents } from './daemon-events.ts';
import type { RegistryAccount } from './registry-accounts.ts';

/** The longest time without progress. The daemon retries a layer after up to 25 s; unpacking a large one reports progress. */
const stallMs = 300_000;
const reportEveryMs = 1_000;
const notThere =
  /not found|manifest unknown|name unknown|does not exist|access denied|unauthorized|authentication required|no basic auth credentials|no matching manifest|invalid reference/i;

/**
 * Pulls an image. The layers of an interrupted pull stay, so that a retry continues from there. Throws `MissingImage` if the
 * registry has no such image for this account, and `ImageUnavailable` if a retry may succeed.
 */
export async function pullImage(
  docker: Docker,
  { image, account }: { readonly image: string; readonly account: RegistryAccount },
  report: ReportImage,
  signal: AbortSignal,
): Promise<void> {
  const stalled = new AbortController();
  const ending = AbortSignal.any([signal, stalled.signal]);
  const watch = setTimeout(() => stalled.abort(), stallMs);
  const layers = createLayers();
  const why = account.problem === undefined ? '' : ` (pulled without an account: ${account.problem})`;
  let reportedAtMs = 0;
  try {
    report({ image, doing: 'pulling' });
    const stream = await callDaemon(() =>
      docker.pull(image, { abortSignal: ending, ...(account.auth && { authconfig: account.auth }) }),
    );
    for await (const event of daemonEvents(stream, ending)) {
      watch.refresh();
      if (event.error !== undefined) throw pullFailure(image, event.error + why);
      layers.see(event);
      if (Date.now() - reportedAtMs < reportEveryMs) continue;
      reportedAtMs = Date.now();
      report({ image, doing: 'pulling', ...layers.progress() });
    }
  } catch (error) {
    if (signal.aborted || error instanceof SandboxFailure) throw error;
    if (stalled.signal.aborted) throw unavailable(image, `no progress for ${stallMs / 1_000} s`, error);
    throw daemonStatus(error) === undefined ? error : pullFailure(image, String(error) + why, error);
  } finally {
    clearTimeout(watch);
  }
}

/** Classifies a failed pull: a registry that does not know the image or the account will not know it in a minute either. */
function pullFailure(image: string, answer: string, cause?: unknown): SandboxFailure {
  const full = fullDisk(new Error(answer));
  if (full) return full;
  if (notThere.test(answer) && !/toomanyrequests|no such host/i.test(answer)) return missingImage(image, cause, answer);
  return unavailable(image, answer, cause);
}

function unavailable(image: string, got: string, cause?: unknown): SandboxFailure {
  const text = `could not pull the image ${image}: ${got.slice(0, 300)}; check the registry and the network of this Docker host`;
  return new SandboxFailure('ImageUnavailable', text, { cause });
}

function createLayers() {
  const done = new Set<string>();
  const bytes = new Map<string, { readonly current: number; readonly total: number }>();
  return {
    see({ id, status, progressDetail }: DaemonEvent): void {
      if (id === undefined || status?.startsWith('Pulling from')) return;
      const { current, total } = progressDetail ?? {};
      const known = bytes.get(id);
      if (status === 'Downloading' && current !== undefined) bytes.set(id, { current, total: total ?? current });
      else if (!known) bytes.set(id, { current: 0, total: 0 });
      if (status === 'Download complete' && known) bytes.set(id, { current: known.total, total: known.total });
      if (status === 'Pull complete' || status === 'Already exists') done.add(id);
    },
    progress() {
      const all = [...bytes.values()];
      const megabytes = (of: 'current' | 'total'): string =>
        (all.reduce((sum, layer) => sum + layer[of], 0) / 1e6).toFixed(1);
      return { layers: `${done.size}/${bytes.size}`, megabytes: `${megabytes('current')}/${megabytes('total')}` };
    },
  };
}
