import type { Engine } from '../../infra/engine/engine.ts';

/** Engines that answer and serve another version. One that is away has nothing that could be put right yet: it is told of. */
export async function enginesWithout(
  version: number,
  engines: readonly Engine[],
  onAway: (engine: Engine, reason: unknown) => void,
  signal: AbortSignal,
): Promise<readonly Engine[]> {
  const healths = await Promise.allSettled(engines.map((engine) => engine.health(signal)));
  signal.throwIfAborted();
  return engines.filter((engine, index) => {
    const health = healths[index];
    if (health?.status === 'fulfilled') return health.value.ready && health.value.version !== version;
    onAway(engine, health?.reason);
    return false;
  });
}
