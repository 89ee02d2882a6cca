import type { Engine } from '../../infra/engine/engine.ts';

/** Engines that answer and serve another version. One that is away has nothing that could be put right yet. */
export async function enginesWithout(
  version: number,
  engines: readonly Engine[],
  signal: AbortSignal,
): Promise<readonly Engine[]> {
  const healths = await Promise.allSettled(engines.map((engine) => engine.health(signal)));
  signal.throwIfAborted();
  return engines.filter((_, index) => {
    const health = healths[index];
    return health?.status === 'fulfilled' && health.value.ready && health.value.version !== version;
  });
}
